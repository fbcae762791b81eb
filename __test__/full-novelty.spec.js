'use strict';

// Scorers that compare words, and the digest: a scorer with a `TraceMemory`. The measure itself is tested with
// the trace memory.

const path = require('node:path');

const { Scorer, TraceMemory, embed } = require('..');
const { makeTrace } = require('./support/make-trace.js');
const { runForResult } = require('./support/run-script.js');

/** A trace with these texts in its steps. */
const traceOf = (id, ...contents) => {
  const steps = contents.map((content) => ({ type: 'observation', content }));
  return { ...makeTrace({ objective: 'help the customer', steps }), id };
};

const TRACES = [
  traceOf('a', 'The customer wants a refund', 'The flight to Boston was cancelled'),
  traceOf('b', 'The linker reports an undefined symbol', 'A library is missing'),
  traceOf('c', 'The flight to Boston was cancelled', 'The customer wants a refund'),
  traceOf('d', 'The customer wants another flight', 'There is one to Seattle'),
  traceOf('e'),
  traceOf('f', 'A LIBRARY is missing!', 'the linker: reports an "undefined symbol"'),
];

/** The comparisons of a memory that is used by itself, one trace after another. */
async function expectedOf(novelty, traces) {
  const memory = new TraceMemory({ novelty });
  const found = [];
  for (const trace of traces) {
    const [vector] = novelty === 'full' ? await embed([TraceMemory.digest(trace)]) : [];
    found.push(await memory.compareAndAdd(trace, { vector }));
  }
  return found;
}

const contents = (memory) => Array.from(memory, ({ label, words }) => [label, [...words]]);

describe.each(['lexical', 'full'])('novelty %s', (novelty) => {
  test('is that of the trace memory, with the parts of the similarity', async () => {
    const scorer = new Scorer({ memory: new TraceMemory({ novelty }) });
    const expected = await expectedOf(novelty, TRACES);
    for (const [index, trace] of TRACES.entries()) {
      const { dimensions, nearest, noveltyBasis, tokens, truncated } = await scorer.explain(trace);
      expect(dimensions.novelty).toBe(expected[index].novelty);
      expect(noveltyBasis).toBe(index === 0 ? 'empty-cache' : 'cache');
      expect(truncated).toBe(false);
      expect(tokens === null).toBe(novelty === 'lexical');
      const found = expected[index].nearest;
      if (found === null) expect(nearest).toBe(null);
      else {
        const { label, similarity, lexical, contained, embedded = null } = found;
        expect(nearest).toMatchObject({ label: label ?? null, similarity, lexical, contained, embedded });
      }
    }
    expect(scorer.memory.size).toBe(TRACES.length);
    const { dimensions, nearest } = await scorer.explain(TRACES[2], { remember: false });
    expect([dimensions.novelty, nearest.label]).toEqual([0, 'a']);
    expect(scorer.memory.size).toBe(TRACES.length);
  });

  test('explain lists the heaviest shared and new words', async () => {
    const scorer = new Scorer({ memory: new TraceMemory({ novelty }) });
    for (const trace of TRACES.slice(0, 2)) await scorer.evaluateValue(trace);
    const { nearest } = await scorer.explain(
      traceOf('g', 'The flight to Seattle was cancelled', 'The customer wants a REFUND: Seattle!'),
    );
    const { sharedWords, newWords, contained, lexical } = nearest;
    const sum = (words) => words.reduce((sum, { weight }) => sum + weight, 0);
    expect(newWords).toEqual([{ word: 'seattle', weight: expect.closeTo(1 - contained, 9), traces: 0 }]);
    expect(sharedWords).toHaveLength(10);
    expect(sharedWords.map(({ weight }) => weight)).toEqual(
      sharedWords.map(({ weight }) => weight).toSorted((a, b) => b - a),
    );
    expect(sum(sharedWords)).toBeCloseTo(lexical, 9);
    // What both remembered traces have weighs less.
    expect(sharedWords.at(-1)).toMatchObject({ word: 'a', traces: 2 });
    expect(sharedWords).toContainEqual({ word: 'refund', weight: expect.any(Number), traces: 1 });
  });

  test('batches score and remember as one call after another, with a signal and without', async () => {
    const one = new Scorer({ memory: new TraceMemory({ novelty }) });
    const expected = [];
    for (const trace of [...TRACES, ...TRACES]) expected.push(await one.evaluateValue(trace));
    for (const signal of [undefined, new AbortController().signal]) {
      const scorer = new Scorer({ memory: new TraceMemory({ novelty }) });
      const batch = scorer.evaluateValues(TRACES, { signal });
      const later = TRACES.map((trace) => scorer.evaluateValue(trace));
      expect([...(await batch), ...(await Promise.all(later))]).toEqual(expected);
      expect(contents(scorer.memory)).toEqual(contents(one.memory));
    }
  });

  test.each([3, 1000])('an aborted batch leaves a memory of %d traces unchanged', async (maxElements) => {
    // With 3, it gives back what its own traces displaced.
    const memory = new TraceMemory({ novelty, maxElements });
    const scorer = new Scorer({ memory });
    await scorer.evaluateValues(TRACES.slice(0, 4));
    const before = contents(memory);
    const nearest = () => scorer.explain(TRACES[2], { remember: false });
    const expected = await nearest();
    for (const stop of [1, 5, 12]) {
      const controller = new AbortController();
      const onProgress = ({ done }) => done === stop && controller.abort();
      const batch = scorer.evaluateValues([...TRACES, ...TRACES], { signal: controller.signal, onProgress });
      await expect(batch).rejects.toMatchObject({ name: 'AbortError' });
      expect(contents(memory)).toEqual(before);
      expect(await nearest()).toEqual(expected);
    }
  });

  test('a batch with a signal is invisible to other users of the memory until its end', async () => {
    const memory = new TraceMemory({ novelty });
    const [scorer, other] = [new Scorer({ memory }), new Scorer({ memory })];
    await scorer.evaluateValue(TRACES[0]);
    const seen = [];
    const others = [];
    const onProgress = ({ done }) => {
      seen.push(memory.size);
      if (done === 2) seen.push(contents(memory).map(([label]) => label));
      if (done === 4) others.push(other.explain(TRACES[4]));
    };
    const { signal } = new AbortController();
    // More than are in flight at a time, so that some come after those of the other scorer.
    const traces = Array.from({ length: 100 }, (_, index) => ({
      ...TRACES[index % 4],
      id: `batch ${index}`,
    }));
    await scorer.evaluateValues(traces, { signal, onProgress });
    const [{ nearest }] = await Promise.all(others);
    expect(nearest?.label ?? 'a').toBe('a');
    const [first, second, labels, ...rest] = seen;
    expect([first, second, labels]).toEqual([1, 1, ['a']]);
    for (const size of rest) expect(size === 1 || size === 2).toBe(true);
    expect(contents(memory).map(([label]) => label)).toEqual(['a', 'e', ...traces.map(({ id }) => id)]);
  });
});

test('words need no model, and a digest without one costs the novelty', async () => {
  const { result } = await runForResult(
    `
    const explain = async (novelty, embedder) => {
      const scorer = new kp.Scorer({ memory: new kp.TraceMemory({ novelty }), embedder });
      await scorer.evaluateValue(makeTrace());
      const { dimensions, noveltyBasis } = await scorer.explain(makeTrace());
      return [dimensions.novelty, noveltyBasis, scorer.memory.size];
    };
    console.log(JSON.stringify([
      await explain('lexical'), await explain('lexical', null), await explain('full'), await explain('full', null),
    ]));
  `,
    { env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(__dirname, 'nowhere') } },
  );
  const [known, unknown] = [
    [0, 'cache', 2],
    [0.5, 'no-embedder', 0],
  ];
  expect(result).toEqual([known, known, unknown, unknown]);
});
