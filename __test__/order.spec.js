'use strict';

const { Scorer } = require('..');
const { makeTrace } = require('./support/make-trace.js');
const { root } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');
const { MemoryStore } = require('./support/memory-store.js');

/** Makes calls at the same time, by their names, and gives these in the order of the replies. */
async function orderOf(calls) {
  const order = [];
  const note = (name) => () => order.push(name);
  await Promise.all(Object.entries(calls).map(([name, call]) => call().then(note(name), note(name))));
  return order;
}

/** Calls of every kind, some of which take longer on their way back to the caller than others. */
const callsOn = (scorer, others = {}) => ({
  explanation: () => scorer.explain(makeTrace()),
  cancellable: () => scorer.evaluateValue(makeTrace(), { signal: new AbortController().signal }),
  plain: () => scorer.evaluateValue(makeTrace()),
  invalid: () => scorer.evaluateValue({}),
  ...others,
  batch: () => scorer.evaluateValues(Array(70).fill(makeTrace())),
  'empty batch': () => scorer.evaluateValues([]),
  'invalid batch': () => scorer.evaluateValues([{}]),
  'cancellable batch': () =>
    scorer.evaluateValues([makeTrace(), makeTrace()], { signal: new AbortController().signal }),
  'after the batches': () => scorer.evaluateValue(makeTrace()),
  'invalid after the batches': () => scorer.explain({}),
  flush: () => scorer.flush(),
  last: () => scorer.evaluateValue(makeTrace()),
});

test.each([
  // With a call of another scorer, which compares: there is one channel.
  ['of all kinds', () => callsOn(new Scorer(), { other: () => new Scorer().evaluateValue(makeTrace()) })],
  [
    'where nothing is compared',
    () => ({ ...callsOn(new Scorer({ embedder: null })), cancellable: undefined }),
  ],
  // An invalid trace is replied to without the store, and an empty batch too.
  ['where a store compares', () => callsOn(new Scorer({ memory: new MemoryStore('prefix') }))],
])('replies come in the order of the calls %s', async (_, make) => {
  const { cancellable, ...rest } = make();
  const calls = cancellable ? { cancellable, ...rest } : rest;
  for (let repetition = 0; repetition < 3; repetition++) {
    expect(await orderOf(calls)).toEqual(Object.keys(calls));
  }
});

test('a batch holds up the calls of its own scorer only', async () => {
  const [scorer, other, lone] = [new Scorer(), new Scorer(), new Scorer({ embedder: null })];
  const traces = Array.from({ length: 70 }, (_, index) => makeTrace({ objective: `holds up ${index}` }));
  const order = await orderOf({
    batch: () => scorer.evaluateValues(traces),
    own: () => scorer.evaluateValue(makeTrace()),
    other: () => other.evaluateValue(makeTrace()),
    lone: () => lone.evaluateValue(makeTrace()),
  });
  expect(order).toEqual(['lone', 'other', 'batch', 'own']);
});

test('ten thousand calls at a time, and a thread that ends among its own', async () => {
  const { result, stderr } = await runForResult(`
    const { Worker } = require('node:worker_threads');
    const scorer = new kp.Scorer({ memory: new kp.VectorCache({ maxElements: 1 }) });
    await kp.embedderStatus();
    const order = [];
    const calls = Array.from({ length: 10_000 }, (_, call) =>
      scorer.evaluateValue(makeTrace()).then(() => order.push(call)));
    const code = \`
      const { parentPort, workerData } = require('node:worker_threads');
      const kp = require(workerData.root);
      for (let i = 0; i < 5000; i++) kp.evaluateValue(workerData.trace);
      parentPort.postMessage('busy');
    \`;
    const worker = new Worker(code, { eval: true, workerData: { root: ${JSON.stringify(root)}, trace: makeTrace() } });
    await new Promise((resolve) => worker.on('message', resolve));
    await worker.terminate();
    await Promise.all(calls);
    console.log(JSON.stringify(order.every((call, index) => call === index) && order.length));
  `);
  expect({ result, stderr }).toEqual({ result: 10_000, stderr: '' });
});
