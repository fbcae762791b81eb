'use strict';

// Every way in which a process or a thread can end, again and again, with work in flight and without. What counts is
// that the script's own exit code comes out, and that nothing of ours is on the terminal.

const fs = require('node:fs');
const path = require('node:path');

const { testTimeout } = require('../jest.config.js');
const { run } = require('./support/run-script.js');
const { scratchDirectory } = require('./support/scratch.js');

/** Crashes at exit are races; once proves little. `npm run test:all` does it thirty times. */
const REPETITIONS = Number(process.env.KNOWLEDGEPULSE_TEST_REPETITIONS || 2);

/** Two at a time: a busy machine brings out more races than an idle one. */
const SIDE_BY_SIDE = 2;

// The small model loads in a third of the time, and the library is the same.
const ENVIRONMENT = { KNOWLEDGEPULSE_DTYPE: 'q8' };

const PRELUDE = `'use strict';
const { inWorker, long, makeTrace, native, within } = require(${JSON.stringify(require.resolve('./support/exit-script.js'))});
`;

const directory = scratchDirectory('exits');

let scripts = 0;
function writeScript(body) {
  const file = path.join(directory, `script-${scripts++}.cjs`);
  fs.writeFileSync(file, `${PRELUDE}(async () => {\n${body}\n})();\n`);
  return file;
}

/** Runs a script; sends it `signal` as soon as it prints something. */
function runFile(file, signal) {
  return run(process.execPath, [file], ENVIRONMENT, undefined, (child) => {
    if (signal) child.stdout.once('data', () => child.kill(signal));
  });
}

/** Runs `body` so often, and expects the same end each time. */
async function expectEnd(body, { code = 0, signal = null, send, stderr = '' } = {}) {
  const file = writeScript(body);
  let left = REPETITIONS;
  const one = async () => {
    while (left-- > 0) {
      const end = await runFile(file, send);
      expect({ code: end.code, signal: end.signal }).toEqual({ code, signal });
      if (stderr === '') expect(end.stderr).toBe('');
      else expectOnly(end.stderr, stderr);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, one));
}

/** The runtime prints the error that was thrown on purpose; a crash of ours would add to that. */
function expectOnly(stderr, expected) {
  expect(stderr).toContain(expected);
  expect(stderr).not.toMatch(/panick|onnx|terminate called|segmentation|abort|fatal|core dumped/i);
}

const KP = 'const kp = require(native);';
const LOADED = `${KP} await kp.embedderStatus();`;
const IN_FLIGHT = 'for (let i = 0; i < 20; i++) kp.evaluateValue(long(i));';
const states = {
  'nothing loaded': KP,
  'while loading': `${KP} ${IN_FLIGHT}`,
  'in mid-inference': `${LOADED} ${IN_FLIGHT} await within(5);`,
  'idle after a score': `${LOADED} await kp.evaluateValue(makeTrace());`,
};

// The limit of all tests, or more for many repetitions. Bun takes it from its command line.
if (typeof jest !== 'undefined') jest.setTimeout?.(Math.max(testTimeout, REPETITIONS * 40_000));

describe.each(Object.entries(states))('%s', (_, state) => {
  test('a process that calls process.exit(3) ends with 3', () =>
    expectEnd(`${state} process.exit(3);`, { code: 3 }));
  test.each([
    "setTimeout(() => { throw new Error('on purpose'); });",
    "Promise.reject(new Error('on purpose'));",
  ])('a process with an uncaught error ends with 1: %s', (body) =>
    expectEnd(`${state} ${body}`, { code: 1, stderr: 'on purpose' }),
  );
});

test('a process at its natural end waits for a pending promise', () =>
  expectEnd(
    `${KP} process.exitCode = 4;
     kp.evaluateValue(long(1)).then((score) => { process.exitCode = score > 0 ? 0 : 5; });`,
  ));

test('a process at its natural end after work ends with 0', () => expectEnd(states['idle after a score']));

test('a process at its natural end after loading ends with 0', () => expectEnd(LOADED));

// Windows knows no signals; it just ends a process.
const describeSignals = process.platform === 'win32' ? describe.skip : describe;
describeSignals.each(['SIGTERM', 'SIGINT'])('%s', (signal) => {
  const busy = `${LOADED} ${IN_FLIGHT} console.log('ready'); setInterval(() => {}, 1000);`;
  test('a process without a handler is ended by its signal', () =>
    expectEnd(busy, { send: signal, code: null, signal }));
  test('a process with a handler that exits ends as that says', () =>
    expectEnd(`process.on('${signal}', () => process.exit(5)); ${busy}`, { send: signal, code: 5 }));
  test('a process with a handler that lets the work finish ends with 0', () =>
    expectEnd(
      `${LOADED}
       process.on('${signal}', () => clearInterval(timer));
       const timer = setInterval(() => {}, 1000);
       const scores = [1, 2, 3].map((i) => kp.evaluateValue(long(i)));
       console.log('ready');
       if (!(await Promise.all(scores)).every((score) => score > 0)) process.exitCode = 6;`,
      { send: signal },
    ));
});

describe('worker threads', () => {
  test('a worker is terminated in mid-embedding', () =>
    expectEnd(`
      await inWorker("await kp.embedderStatus(); for (let i = 0; i < 10; i++) kp.evaluateValue(long(i)); parentPort.postMessage('busy');", true);
      ${KP}
      if (!((await kp.evaluateValue(makeTrace())) > 0)) process.exitCode = 6;
    `));

  test('a process ends with 0 where only a worker loads the addon', () =>
    expectEnd(`await inWorker("if (!((await kp.evaluateValue(makeTrace())) > 0)) process.exitCode = 6;");`));

  test('a process ends while a worker, which was the first, is loading', () =>
    expectEnd(`
      ${KP}
      inWorker("kp.evaluateValue(long(1)); parentPort.postMessage('busy'); setInterval(() => {}, 1000);");
      await within(150);
      process.exit(0);
    `));

  test('the main thread stops the embedder at its end, whichever thread configured it, and once', () =>
    expectEnd(`
      ${KP}
      await inWorker('kp.configureEmbedder({ threads: 1 });');
      await kp.evaluateValue(makeTrace());
      if (process.listenerCount('exit') !== 1) process.exitCode = 6;
    `));

  test('the addon is loaded in a worker, gone, and loaded again in the main thread', () =>
    expectEnd(`
      await inWorker('await kp.evaluateValue(makeTrace());');
      ${KP}
      await kp.evaluateValue(makeTrace());
      await inWorker('await kp.evaluateValue(makeTrace());');
      if (kp._getLocalCache().size !== 3) process.exitCode = 6;
    `));
});

test('the package is dropped from the cache of modules and loaded again', () =>
  expectEnd(`
    for (let i = 0; i < 3; i++) {
      for (const name of Object.keys(require.cache)) if (name.startsWith(native)) delete require.cache[name];
      const kp = require(native);
      await kp.evaluateValue(makeTrace());
      if (kp._getLocalCache().size !== i + 1) process.exitCode = 6;
    }
  `));

test('the package scores in vm contexts', () =>
  expectEnd(`
    ${KP}
    const vm = require('node:vm');
    for (let i = 0; i < 5; i++) {
      const score = await vm.runInNewContext('kp.evaluateValue(trace)', { kp, trace: makeTrace() });
      if (!(score > 0)) process.exitCode = 6;
    }
    vm.runInNewContext('kp.evaluateValue(trace)', { kp, trace: long(1) });
  `));

test('the package scores in a forked child process', () =>
  expectEnd(`
    const { fork } = require('node:child_process');
    if (process.send) {
      ${KP}
      process.send(await kp.evaluateValue(makeTrace()));
      process.disconnect();
    } else {
      ${LOADED} ${IN_FLIGHT}
      const child = fork(__filename);
      const score = await new Promise((resolve) => child.once('message', resolve));
      const code = await new Promise((resolve) => child.once('exit', resolve));
      process.exit(score > 0 && code === 0 ? 0 : 6);
    }
  `));

test('eight workers are created, score and are terminated several times over', async () => {
  const file = writeScript(`
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let cycle = 0; cycle < ${4 * REPETITIONS}; cycle++) {
        await inWorker("kp.evaluateValue(long(1)); await kp.evaluateValue(makeTrace()); parentPort.postMessage('done');", true);
      }
    }));
    ${KP}
    if (!((await kp.evaluateValue(makeTrace())) > 0)) process.exitCode = 6;
  `);
  const { code, signal, stderr } = await runFile(file);
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
});
