'use strict';

// Life in a process: its threads, and how the package is imported. How it ends is the matter of exits.spec.js.

const fs = require('node:fs');
const path = require('node:path');

const { scoreOf } = require('./oracle/score.js');
const { addon } = require('./support/addon.js');
const { makeTrace } = require('./support/make-trace.js');
const { root, runtimeLibrary } = require('./support/paths.js');
const { run, runForResult, runScript } = require('./support/run-script.js');
const { copyPackage, linkPackages, scratchDirectory } = require('./support/scratch.js');

test('errors of calls that end on another thread have the stack of their callers', async () => {
  const { result } = await runForResult(`
    const missing = '/nowhere/memory.safetensors';
    const calls = {
      loadTraces: async () => await kp.TraceMemory.load(missing),
      saveTraces: async () => await new kp.TraceMemory({ method: 'lexical' }).save(missing),
      cleanNested: async () => {
        let trace = {};
        for (let level = 0; level < 300; level++) trace = { trace };
        await kp.clean(trace);
      },
    };
    const stacks = {};
    for (const [name, call] of Object.entries(calls)) stacks[name] = (await call().catch((error) => error)).stack;
    console.log(JSON.stringify(stacks));
  `);
  // Bun names no caller before the await.
  const callers = process.versions.bun ? {} : result;
  for (const [name, stack] of Object.entries(callers))
    expect(stack).toMatch(new RegExp(`^\\s+at async .*${name}`, 'm'));
  for (const stack of Object.values(result)) expect(stack).toMatch(/^\s+at /m);
});

test('evaluateValue of the main thread and eight workers at once compares with one memory, and loses no call', async () => {
  // Each caller scores 50 tasks of its own, and then those of the next one, which are all known.
  const score = `
    const texts = 'log call ticket invoice build upload proxy parcel'.split(' ');
    const traceOf = (caller, task) => ({ ...makeTrace({ confidence: task / 50 }), task: {
      objective: ['task', task, texts[task % 8], 'of', texts[caller % 8], caller].join(' ') } });
    const score = async (caller) => {
      const order = [];
      const calls = Array.from({ length: 50 }, (_, task) =>
        kp.evaluateValue(traceOf(caller, task)).finally(() => order.push(task)));
      const values = await Promise.all(calls);
      return { values, inOrder: order.every((task, at) => task === at) };
    };`;
  const { result, stderr } = await runForResult(
    `
    const { Worker } = require('node:worker_threads');
    ${score}
    const code = ${JSON.stringify(score)} + \`
      parentPort.on('message', async (caller) => parentPort.postMessage(await score(caller)));\`;
    const head = 'const { parentPort } = require("node:worker_threads");' +
      'const kp = require(' + JSON.stringify(${JSON.stringify(root)}) + ');' +
      'const { makeTrace } = require(' + JSON.stringify(${JSON.stringify(path.join(__dirname, 'support', 'make-trace.js'))}) + ');';
    const workers = Array.from({ length: 8 }, () => new Worker(head + code, { eval: true }));
    const all = (callerOf) => Promise.all([score(callerOf(8)), ...workers.map((worker, at) => {
      worker.postMessage(callerOf(at));
      return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    })]);
    const first = await all((caller) => caller);
    const size = kp._getLocalCache().size;
    const second = await all((caller) => (caller + 1) % 9);
    for (const worker of workers) await worker.terminate();
    const inOrder = [...first, ...second].every((each) => each.inOrder);
    console.log(JSON.stringify({ size, inOrder, values: second.map(({ values }) => values) }));
    `,
    { env: { KNOWLEDGEPULSE_DTYPE: 'q8' } },
  );
  expect({ stderr, size: result.size, inOrder: result.inOrder }).toEqual({
    stderr: '',
    size: 450,
    inOrder: true,
  });
  const known = Array.from({ length: 50 }, (_, task) =>
    expect.closeTo(scoreOf(makeTrace({ confidence: task / 50 }), 0), 5),
  );
  for (const values of result.values) expect(values).toEqual(known);
});

const names =
  'KnowledgePulseError Scorer TraceMemory VectorCache _getLocalCache clean cleanPii configureEmbedder embed embedderStatus evaluateValue readTraces select sessions share traceFromMessages'.split(
    ' ',
  );

const directory = scratchDirectory('import');
linkPackages(directory, { '@knowledgepulse/native': root });

test('the package for browsers has each test of a type that the package takes from node:util', () => {
  const lib = path.join(root, 'lib');
  const files = fs
    .readdirSync(lib, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js'));
  const taken = files.flatMap((file) => {
    const text = fs.readFileSync(path.join(lib, file), 'utf8');
    const [, destructured = ''] = /const \{([^}]+)\} = require\('node:util'\)\.types;/.exec(text) ?? [];
    return [...destructured.split(','), ...(text.match(/(?<=\btypes\.)is\w+/g) ?? [])];
  });
  const names = new Set(taken.map((name) => name.trim()).filter(Boolean));
  expect(names).toContain('isMap');
  const text = fs.readFileSync(path.join(root, 'wasm', 'browser', 'node.mjs'), 'utf8');
  const [, listed] = /export const types = \{\n(.*?)\n\};/s.exec(text);
  const offered = listed.match(/(?<=^ {2})is\w+/gm);
  expect([...names].filter((name) => !offered.includes(name))).toEqual([]);
});

test('require gives the exports of the package, and so does its package for browsers', () => {
  expect(Object.keys(require('..')).sort()).toEqual(names);
  const browser = fs.readFileSync(path.join(root, 'wasm', 'browser', 'main.mjs'), 'utf8');
  const [, exported] = /^export const \{([^}]+)\} = api;$/m.exec(browser);
  expect(exported.match(/\w+/g).sort()).toEqual(names);
});

test('require without the package of the platform throws an error with what is missing and the way out', async () => {
  const alone = copyPackage(path.join(directory, 'alone'));
  const script =
    'try { require(process.argv[1]); } catch ({ code, message }) { console.log(code, message); }';
  const env = { KNOWLEDGEPULSE_NATIVE_ADDON: undefined };
  const { stdout } = await run(process.execPath, ['-e', script, alone], env);
  const place = `${process.platform}-${process.arch}`;
  const missing = `@knowledgepulse/native-${path.basename(path.dirname(addon))}`;
  for (const part of [
    'ERR_ADDON_LOAD',
    `on ${place}.`,
    `  ${missing}: `,
    'optional dependencies',
    'KNOWLEDGEPULSE_NATIVE_ADDON',
  ])
    expect(stdout).toContain(part);
});

/** Runs an ES module in a project that has the package installed. */
async function runModule(source) {
  const file = path.join(directory, 'script.mjs');
  fs.writeFileSync(file, source);
  const { code, stdout, stderr } = await run(process.execPath, [file]);
  return { code, stdout, stderr };
}

test('an ES module can name the exports of the package', async () => {
  const result = await runModule(
    `import everything, { ${names.join(', ')} } from '@knowledgepulse/native';
       console.log([${names.join(', ')}].every((value) => value !== undefined), everything.VectorCache === VectorCache);`,
  );
  expect(result).toEqual({ code: 0, stdout: 'true true\n', stderr: '' });
});

// Only Linux shows the libraries of a process.
const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('requiring the package loads neither the runtime nor the model', async () => {
  const loaded = `require('node:fs').readFileSync('/proc/self/maps', 'utf8').includes('knowledgepulse_onnxruntime')`;
  const { stdout } = await runScript(`
      kp.configureEmbedder({ engine: 'onnxruntime', runtimePath: ${JSON.stringify(runtimeLibrary)} });
      const before = ${loaded};
      await kp.embedderStatus();
      console.log(before, ${loaded});
    `);
  expect(stdout).toBe('false true\n');
});
