'use strict';

// The int8 model: how far its scores are from fp32's. That neighbours and threads change no bit of them is the matter of
// determinism.node.spec.js.

const fs = require('node:fs');
const path = require('node:path');

const { _getLocalCache, evaluateValue } = require('..');
const { readTraces, root, sharedTraces } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');

const examples = path.join(root, 'examples', 'traces.jsonl');

/** Scores the traces of `file` from an empty memory with the int8 model, in a process of its own. */
async function scoreInt8(file) {
  const { result } = await runForResult(
    `
    const { readTraces } = require(${JSON.stringify(require.resolve('./support/paths.js'))});
    const traces = readTraces(${JSON.stringify(file)});
    const scores = [];
    for (const trace of traces) scores.push(await kp.evaluateValue(trace));
    console.log(JSON.stringify({ scores, status: await kp.embedderStatus() }));
  `,
    { env: { KNOWLEDGEPULSE_DTYPE: 'q8' } },
  );
  expect(result.status).toMatchObject({ available: true, dtype: 'q8', dimensions: 384 });
  return result.scores;
}

async function scoreFp32(file) {
  _getLocalCache().clear();
  const scores = [];
  for (const trace of readTraces(file)) scores.push(await evaluateValue(trace));
  return scores;
}

/** The absolute differences between the models' scores, in ascending order. */
async function differences(file) {
  const [fp32, int8] = [await scoreFp32(file), await scoreInt8(file)];
  expect(int8).toHaveLength(fp32.length);
  return fp32.map((score, index) => Math.abs(score - int8[index])).sort((a, b) => a - b);
}

test('the example traces score as in fp32, within 0.005', async () => {
  const sorted = await differences(examples);
  expect(sorted.at(-1)).toBeLessThanOrEqual(0.005);
  // It is the other model, not the same one twice.
  expect(sorted.at(-1)).toBeGreaterThan(1e-6);
});

// Skipped, and shown as such, where the traces are not at hand.
const testShared = fs.existsSync(sharedTraces) ? test : test.skip;
testShared('a hundred real traces score as in fp32, within 0.003, half of them within 0.0004', async () => {
  const sorted = await differences(sharedTraces);
  expect(sorted.at(-1)).toBeLessThanOrEqual(0.003);
  expect(sorted[sorted.length / 2]).toBeLessThanOrEqual(0.0004);
});
