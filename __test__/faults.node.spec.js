'use strict';

// What is broken on purpose while it runs: the call rejects with its code or falls back to a neutral novelty, and the
// next call works.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { scoreOf } = require('./oracle/score.js');
const { makeTrace } = require('./support/make-trace.js');
const { ONNXRUNTIME, root } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');
const { cacheFileIn, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('faults');

/** Three calls, one after another, of which the second meets the fault; and what is remembered of them. */
const THREE_CALLS = `
  const warnings = [];
  process.on('warning', ({ code, message }) => warnings.push({ code, message }));
  const results = [];
  for (const objective of ['first', 'second', 'third']) {
    const trace = makeTrace({ objective: \`the \${objective} task is about something else\` });
    results.push(await kp.evaluateValue(trace).catch(({ name, code, message }) => ({ name, code, message })));
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  const status = await kp.embedderStatus();
  console.log(JSON.stringify({ results, warnings, status, size: kp._getLocalCache().size }));
`;

/** What a script prints where the stage of `fault` panics, as it can in the addon of a checkout. */
async function resultWith(fault, body, env = {}) {
  return (await runForResult(body, { env: { KNOWLEDGEPULSE_FAULT: fault, ...env } })).result;
}

const Q8 = { KNOWLEDGEPULSE_DTYPE: 'q8' };

const threeCalls = (fault, engine = 'builtin') =>
  resultWith(fault, THREE_CALLS, { ...Q8, ...ONNXRUNTIME, KNOWLEDGEPULSE_ENGINE: engine });

const NEUTRAL = scoreOf(makeTrace(), 0.5);

describe('a panic in a stage', () => {
  let healthy;
  beforeAll(async () => {
    healthy = await threeCalls('');
    expect(healthy).toMatchObject({ warnings: [], size: 3, status: { available: true } });
  });

  test('a panic while embedding gives a neutral novelty, and one warning', async () => {
    const { results, warnings, size, status } = await threeCalls('embedding:2');
    expect(results[0]).toBe(healthy.results[0]);
    expect(results[1]).toBeCloseTo(NEUTRAL, 12);
    expect(results[2]).toBeGreaterThan(0);
    expect(size).toBe(2);
    expect(warnings).toEqual([{ code: 'ERR_INTERNAL', message: expect.stringContaining('`embedding`') }]);
    expect(status.available).toBe(true);
  });

  // The first on the thread of the caller, the second on that of the engine.
  test.each(['trace', 'novelty'])('a panic in %s rejects that call', async (stage) => {
    const { results, warnings, status } = await threeCalls(`${stage}:2`);
    expect(results[0]).toBe(healthy.results[0]);
    const message = expect.stringContaining(`\`${stage}\``);
    expect(results[1]).toEqual({ name: 'Error', code: 'ERR_INTERNAL', message });
    expect(results[2]).toBeGreaterThan(0);
    expect(warnings).toEqual([]);
    expect(status.available).toBe(true);
  });

  test.each([
    ['model', 'builtin'],
    ['tokenizer', 'builtin'],
    ['lane', 'builtin'],
    ['runtime', 'onnxruntime'],
    ['lane', 'onnxruntime'],
  ])('%s, %s: there is no embedder, which is told once', async (stage, engine) => {
    const { results, warnings, size, status } = await threeCalls(stage, engine);
    for (const score of results) expect(score).toBeCloseTo(NEUTRAL, 12);
    expect(size).toBe(0);
    expect(warnings).toHaveLength(1);
    expect(status).toMatchObject({ available: false, code: 'ERR_INTERNAL' });
    expect(status.reason).toContain(`\`${stage}\``);
  });

  test('a panic in clean fails that call, on this thread or another', async () => {
    const body = `
      const told = ({ name, code, message }) => ({ name, code, message });
      const attempt = async (act) => {
        try { return await act(); } catch (error) { return told(error); }
      };
      const calls = [
        () => kp.cleanPii('mail bob@example.com').cleaned,
        async () => (await kp.clean('mail bob@example.com')).cleaned,
      ];
      const results = [];
      for (const call of [...calls, ...calls]) results.push(await attempt(call));
      console.log(JSON.stringify(results));
    `;
    const cleaned = ['mail [REDACTED:email]', 'mail [REDACTED:email-1]'];
    for (const time of [1, 2]) {
      const expected = [...cleaned, ...cleaned];
      const message = expect.stringContaining('`clean`');
      expected[time - 1] = { name: 'Error', code: 'ERR_INTERNAL', message };
      expect(await resultWith(`clean:${time}`, body)).toEqual(expected);
    }
  });

  test.each([
    ['lane', ['lane:2', 'lane:3'], ONNXRUNTIME],
    // The first pass is that of the first trace, which was there before the others.
    ['embedding, of a shared pass', ['embedding:2'], Q8],
  ])('%s, of a batch: the batch is scored all the same', async (_, faults, env) => {
    const body = `
      const traces = Array.from({ length: 30 }, (_, i) => makeTrace({ objective: \`task \${i}\` }));
      const warnings = [];
      process.on('warning', ({ code }) => warnings.push(code));
      const scores = (await new kp.Scorer().scoreAll(traces)).map(({ value }) => value);
      await new Promise((resolve) => setTimeout(resolve, 20));
      console.log(JSON.stringify({ scores, warnings }));
    `;
    const expected = await resultWith('', body, env);
    expect(expected.warnings).toEqual([]);
    for (const fault of faults) expect(await resultWith(fault, body, env)).toEqual(expected);
  });

  test.each(['save', 'load'])('a panic in %s rejects that call, and the next one works', async (stage) => {
    const file = cacheFileIn(scratch);
    const body = `
      const file = ${JSON.stringify(file)};
      const memory = new kp.TraceMemory({ method: 'lexical' });
      await memory.add(makeTrace());
      const codes = [];
      for (let i = 0; i < 3; i++) {
        for (const act of [() => memory.save(file), () => kp.TraceMemory.load(file)]) {
          codes.push(await act().then((loaded) => loaded?.size ?? null, ({ code }) => code));
        }
      }
      console.log(JSON.stringify(codes));
    `;
    // The second save fails, or the second load.
    const expected = [null, 1, null, 1, null, 1];
    expected[stage === 'save' ? 2 : 3] = 'ERR_INTERNAL';
    expect(await resultWith(`${stage}:2`, body)).toEqual(expected);
    expect(fs.readdirSync(path.dirname(file))).toEqual([path.basename(file)]);
  });

  test('a panic in postings: the trace that was being added is not remembered, and the others are whole', async () => {
    const body = `
      const traceOf = (name) => ({ ...makeTrace({ objective: \`the task \${name} of \${name}s\` }), id: name });
      const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
      const memory = new kp.TraceMemory({ method: 'lexical', maxElements: 4 });
      const idsIn = async () => (await memory.nearest(traceOf('one'), 9)).map(({ id }) => id).sort();
      const scorer = new kp.Scorer({ memory });
      const code = (error) => error.code;
      const codes = [];
      for (const name of names.slice(0, 5)) codes.push(await scorer.score(traceOf(name)).then(() => null, code));
      const before = await idsIn();
      codes.push(await scorer.scoreAll(names.slice(5).map(traceOf)).then(() => null, code));
      const after = await idsIn();
      const found = [];
      for (const name of names) found.push(await memory.nearest(traceOf(name), 9));
      const again = new kp.TraceMemory({ method: 'lexical' });
      for (const name of names.filter((name) => after.includes(name))) await again.add(traceOf(name));
      const expected = [];
      for (const name of names) expected.push(await again.nearest(traceOf(name), 9));
      console.log(JSON.stringify({ codes, before, after, isSame: JSON.stringify(found) === JSON.stringify(expected) }));
    `;
    const fault = 'ERR_INTERNAL';
    expect(await resultWith('postings:3', body)).toEqual({
      codes: [null, null, fault, null, null, null],
      before: ['five', 'four', 'one', 'two'],
      after: ['five', 'four', 'seven', 'six'],
      isSame: true,
    });
    // In scoreAll, which ends there.
    expect(await resultWith('postings:7', body)).toEqual({
      codes: [null, null, null, null, null, fault],
      before: ['five', 'four', 'three', 'two'],
      after: ['five', 'four', 'six', 'three'],
      isSame: true,
    });
  });
});

/** Runs `body` after `limits`, a line of shell; without root's exemption from them if `user` is given. */
function runLimited(limits, body, user) {
  const script = `
    const kp = require(${JSON.stringify(root)});
    const { makeTrace } = require(${JSON.stringify(path.join(__dirname, 'support', 'make-trace.js'))});
    (async () => {${body}})();
  `;
  const shell = ['sh', '-c', `${limits}; exec "$0" "$@"`, process.execPath, '-e', script];
  const [command, ...args] =
    user === undefined ? shell : ['setpriv', `--reuid=${user}`, '--clear-groups', ...shell];
  const env = { ...process.env, KNOWLEDGEPULSE_DTYPE: 'q8' };
  return spawnSync(command, args, { env, encoding: 'utf8' });
}

const LONG_CALLS = `
  const warnings = [];
  process.on('warning', ({ code }) => warnings.push(code));
  const scores = [];
  for (const objective of ['short', 'word '.repeat(600)]) scores.push(await kp.evaluateValue(makeTrace({ objective })));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { available, code } = await kp.embedderStatus();
  console.log(JSON.stringify({ scores, warnings, available, code }));
`;

const isLinux = process.platform === 'linux';
const describeLimits = isLinux ? describe : describe.skip;

describeLimits('refused by the system', () => {
  let healthy;
  beforeAll(() => {
    healthy = JSON.parse(runLimited('true', LONG_CALLS).stdout);
    expect(healthy).toMatchObject({ warnings: [], available: true });
  });

  test('refused memory: there is no embedder, which is told once, and no limit ends the process', () => {
    const peak = `console.log(require('node:fs').readFileSync('/proc/self/status', 'utf8').match(/VmPeak:\\s+(\\d+)/)[1])`;
    const kilobytes = Number(runLimited('true', peak).stdout);
    const outcomes = [20, 150, 300, 700].map((megabytes) => {
      const { status, stdout } = runLimited(`ulimit -v ${kilobytes + megabytes * 1024}`, LONG_CALLS);
      expect({ megabytes, status }).toEqual({ megabytes, status: 0 });
      return JSON.parse(stdout);
    });
    expect(outcomes.pop()).toEqual(healthy);
    expect(outcomes[0].available).toBe(false);
    // How much address space suffices depends on how many arenas the threads' allocations make.
    for (const { scores, ...outcome } of outcomes.filter(({ available }) => !available)) {
      for (const score of scores) expect(score).toBeCloseTo(NEUTRAL, 12);
      expect(outcome).toEqual({
        warnings: ['ERR_OUT_OF_MEMORY'],
        available: false,
        code: 'ERR_OUT_OF_MEMORY',
      });
    }
    for (const outcome of outcomes.filter(({ available }) => available)) expect(outcome).toEqual(healthy);
  });

  const USER = 65_533;
  const canTry = isLinux && runLimited('true', '', USER).status === 0;
  (canTry ? test : test.skip)('refused threads are done without', () => {
    const outcomes = new Set();
    for (const threads of [8, 10, 11, 12, 14, 16, 19, 23]) {
      const { status, stdout } = runLimited(`ulimit -u ${threads}`, LONG_CALLS, USER);
      // Node.js itself does not start with too few.
      if (outcomes.size === 0 && status !== 0) continue;
      expect({ threads, status }).toEqual({ threads, status: 0 });
      const outcome = JSON.parse(stdout);
      outcomes.add(outcome.available);
      if (outcome.available) expect(outcome).toEqual(healthy);
      else for (const score of outcome.scores) expect(score).toBeCloseTo(NEUTRAL, 12);
    }
    expect(outcomes).toContain(true);
  });
});
