'use strict';

// What is broken on purpose while it runs: the call rejects with its code or falls back to a neutral novelty, and the
// next call works.

const { embedderStatus } = require('..');
const { scoreOf } = require('./oracle/score.js');
const { buildFaultAddon } = require('./support/fault-addon.js');
const { makeTrace } = require('./support/make-trace.js');
const { runForResult } = require('./support/run-script.js');

let addon;
let runtime;
beforeAll(async () => {
  addon = buildFaultAddon();
  runtime = (await embedderStatus()).runtimePath;
}, 600_000);

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

async function threeCalls(fault) {
  const { result } = await runForResult(THREE_CALLS, {
    env: {
      KNOWLEDGEPULSE_NATIVE_ADDON: addon,
      KNOWLEDGEPULSE_ONNXRUNTIME: runtime,
      KNOWLEDGEPULSE_DTYPE: 'q8',
      KNOWLEDGEPULSE_FAULT: fault,
    },
  });
  return result;
}

const NEUTRAL = scoreOf(makeTrace(), 0.5);

describe('a panic in a stage', () => {
  let healthy;
  beforeAll(async () => {
    healthy = await threeCalls('');
    expect(healthy).toMatchObject({ warnings: [], size: 3, status: { available: true } });
  });

  test.each(['tokens', 'embedding'])('%s: neutral novelty, one warning', async (stage) => {
    const { results, warnings, size, status } = await threeCalls(`${stage}:2`);
    expect(results[0]).toBe(healthy.results[0]);
    expect(results[1]).toBeCloseTo(NEUTRAL, 12);
    expect(results[2]).toBeGreaterThan(0);
    expect(size).toBe(2);
    expect(warnings).toHaveLength(1);
    expect(warnings[0].code).toBe('ERR_INTERNAL');
    expect(warnings[0].message).toContain(`\`${stage}\``);
    expect(status.available).toBe(true);
  });

  test.each(['trace', 'features', 'text', 'novelty', 'composite', 'overrides'])(
    '%s: that call rejects',
    async (stage) => {
      const { results, warnings, status } = await threeCalls(`${stage}:2`);
      expect(results[0]).toBe(healthy.results[0]);
      expect(results[1]).toMatchObject({ name: 'Error', code: 'ERR_INTERNAL' });
      expect(results[1].message).toContain(`\`${stage}\``);
      expect(results[2]).toBeGreaterThan(0);
      expect(warnings).toEqual([]);
      expect(status.available).toBe(true);
    },
  );

  test.each(['model', 'runtime', 'tokenizer', 'lane'])(
    '%s: there is no embedder, which is told once',
    async (stage) => {
      const { results, warnings, size, status } = await threeCalls(stage);
      for (const score of results) expect(score).toBeCloseTo(NEUTRAL, 12);
      expect(size).toBe(0);
      expect(warnings).toHaveLength(1);
      expect(status).toMatchObject({ available: false, code: 'ERR_INTERNAL' });
      expect(status.reason).toContain(`\`${stage}\``);
    },
  );

  test('lane, of a batch: the batch is scored all the same', async () => {
    const body = `
      const traces = Array.from({ length: 30 }, (_, i) => makeTrace({ objective: \`task \${i}\` }));
      console.log(JSON.stringify(await kp.evaluateValues(traces)));
    `;
    const env = { KNOWLEDGEPULSE_NATIVE_ADDON: addon, KNOWLEDGEPULSE_ONNXRUNTIME: runtime };
    const { result: expected } = await runForResult(body, { env });
    for (const time of [2, 3]) {
      const { result } = await runForResult(body, { env: { ...env, KNOWLEDGEPULSE_FAULT: `lane:${time}` } });
      expect(result).toEqual(expected);
    }
  });

  test('the published addon has no such faults', async () => {
    const { result } = await runForResult(THREE_CALLS, {
      env: { KNOWLEDGEPULSE_DTYPE: 'q8', KNOWLEDGEPULSE_FAULT: 'tokens:2' },
    });
    expect(result.results).toEqual(healthy.results);
  });
});
