'use strict';

// The same sequence gives the same bits: run after run, on any number of threads, beside other work.

const path = require('node:path');

const { root } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');

const examples = JSON.stringify(path.join(root, 'examples', 'traces.jsonl'));

const READ = `
  const { readTraces } = require(${JSON.stringify(require.resolve('./support/paths.js'))});
  const traces = readTraces(${examples}).slice(0, 16);
`;

const inSequence = `
  const scores = [];
  for (const trace of traces) scores.push(await kp.evaluateValue(trace));
`;

const inBatch = 'const scores = (await new kp.Scorer().scoreAll(traces)).map(({ value }) => value);';

/** Other work that goes on all the while: its embeddings, its caches, its worker thread. */
const NEIGHBOURS = `
  const { Worker } = require('node:worker_threads');
  const busy = new Worker('for (;;) Math.sqrt(Math.random());', { eval: true });
  const cache = new kp.VectorCache();
  const timer = setInterval(() => {
    const vector = Float32Array.from({ length: 384 }, Math.random);
    cache.maxCosineSimilarity(vector);
    cache.add(vector);
  }, 1);
`;

/** The scripts by what they do, with a number of threads if it matters. */
const ways = {
  again: [inSequence],
  'on one thread': [inSequence, '1'],
  'on two': [inSequence, '2'],
  'on five': [inSequence, '5'],
  'in a batch': [inBatch],
  'in a batch on five threads': [inBatch, '5'],
  'all in flight': ['const scores = await Promise.all(traces.map((trace) => kp.evaluateValue(trace)));'],
  'beside busy neighbours': [`${NEIGHBOURS} ${inSequence} clearInterval(timer); await busy.terminate();`],
};

describe.each(['fp32', 'q8'])('%s', (dtype) => {
  const score = async ([body, threads]) => {
    const { result } = await runForResult(
      `${READ} ${body}
       const { available, dtype } = await kp.embedderStatus();
       console.log(JSON.stringify({ available, dtype, scores }));`,
      { env: { KNOWLEDGEPULSE_DTYPE: dtype, KNOWLEDGEPULSE_THREADS: threads } },
    );
    expect(result).toMatchObject({ available: true, dtype });
    return result.scores;
  };

  let expected;
  beforeAll(async () => {
    expected = await score([inSequence]);
    expect(new Set(expected).size).toBeGreaterThan(12);
  });

  test.each(Object.keys(ways))('%s', async (name) => {
    expect(await score(ways[name])).toEqual(expected);
  });
});
