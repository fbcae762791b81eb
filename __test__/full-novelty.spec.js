'use strict';

// Novelty over the whole text of a trace: `new Scorer({ novelty: 'full' })`.

const fs = require('node:fs');

const fc = require('fast-check');

const { Embedder, Scorer } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { makeTrace } = require('./support/make-trace.js');
const { readTraces, sharedTraces } = require('./support/paths.js');

/** The windows of a trace as the README describes them, for texts of ASCII and of no more than 32 windows. */
function windowsOf(trace) {
  const bytes = new Map();
  for (const part of [trace.task.objective, ...trace.steps.map(({ content }) => content ?? '')]) {
    let rest = part.trim();
    while (rest !== '') {
      let end = Math.min(rest.length, 1000);
      if (end < rest.length) {
        const space = rest.slice(500, 1000).search(/\s\S*$/);
        if (space >= 0) end = 500 + space;
      }
      const piece = rest.slice(0, end).trim();
      bytes.set(piece, (bytes.get(piece) ?? 0) + piece.length);
      rest = rest.slice(end).trim();
    }
  }
  if (bytes.size === 0) bytes.set('', 1);
  return bytes;
}

/** A scorer of the oracle's: novelty by the README's formula. */
class Oracle {
  #memory = [];
  #embedder = new Embedder();

  async noveltyOf(trace) {
    const windows = [...windowsOf(trace)];
    const embeddings = await this.#embedder.embedBatch(windows.map(([text]) => text));
    const empty = this.#memory.length === 0;
    let newness = 0;
    let total = 0;
    for (const [index, [, bytes]] of windows.entries()) {
      const similarities = this.#memory.map((vector) => cosineSimilarity(vector, embeddings[index]));
      newness += bytes * (1 - Math.max(...similarities));
      total += bytes;
    }
    this.#memory.push(...embeddings);
    return empty ? 0.5 : newness / total;
  }
}

const noveltyOf = async (scorer, trace, options) => (await scorer.explain(trace, options)).dimensions.novelty;

test('is the weighted mean of what is new in each window', async () => {
  const word = fc.constantFrom('flight', 'refund', 'the', 'customer', 'retry', 'error', 'timeout', 'a');
  const part = fc.array(word, { maxLength: 300 }).map((words) => words.join(' '));
  const trace = fc
    .tuple(part, fc.array(part, { maxLength: 6 }))
    .map(([objective, contents]) =>
      makeTrace({ objective, steps: contents.map((content) => ({ type: 'thought', content })) }),
    );
  const property = fc.asyncProperty(fc.array(trace, { minLength: 1, maxLength: 4 }), async (traces) => {
    const [scorer, oracle] = [new Scorer({ novelty: 'full' }), new Oracle()];
    for (const each of traces) {
      expect(Math.abs((await noveltyOf(scorer, each)) - (await oracle.noveltyOf(each)))).toBeLessThan(1e-6);
    }
  });
  await fc.assert(property, { numRuns: 12 });
});

test('a text of one window has the novelty of its prefix', async () => {
  const [full, prefix] = ['full', 'prefix'].map((novelty) => new Scorer({ novelty }));
  for (const objective of ['fix the build', 'fix the failing build', 'book a flight', 'book the flight']) {
    const trace = makeTrace({ objective, steps: [] });
    const [a, b] = [await full.explain(trace), await prefix.explain(trace)];
    expect(a.dimensions.novelty).toBeCloseTo(b.dimensions.novelty, 6);
    expect(a.tokens).toBe(b.tokens);
  }
});

test('what is new after 512 tokens counts, and what is old there too', async () => {
  const opening = 'we look at the log again and find nothing of interest in it. '.repeat(45);
  const trace = (start, end) =>
    makeTrace({
      objective: 'diagnose',
      steps: [
        { type: 'thought', content: start },
        { type: 'observation', content: end },
      ],
    });
  const end = 'The disk of the build machine was full, because nobody had deleted old artefacts. '.repeat(20);
  const other = 'Contract law requires offer, acceptance and consideration between two parties. '.repeat(20);
  const remembered = trace(opening, end);
  const sameStart = trace(opening, other);
  const sameEnd = trace('An unrelated poem about the sea in winter and its grey birds. '.repeat(45), end);
  for (const novelty of ['prefix', 'full']) {
    const scorer = new Scorer({ novelty });
    await scorer.evaluateValue(remembered);
    const ask = (trace) => noveltyOf(scorer, trace, { remember: false });
    expect(await ask(remembered)).toBeCloseTo(0, 5);
    if (novelty === 'prefix') {
      expect(await ask(sameStart)).toBeCloseTo(0, 5);
      expect(await ask(sameEnd)).toBeGreaterThan(0.5);
    } else {
      expect(await ask(sameStart)).toBeGreaterThan(0.2);
      expect(await ask(sameEnd)).toBeLessThan(0.7);
    }
  }
});

test('names the trace that most of the text resembles, with its share', async () => {
  const scorer = new Scorer({ novelty: 'full' });
  const [a, b] = [
    'The customer wants a refund for the cancelled flight',
    'The linker reports an undefined symbol',
  ];
  const part = (text, count) =>
    Array.from({ length: count }, (_, i) => ({ type: 'thought', content: `${text} ${i}` }));
  const trace = (id, steps) => ({ ...makeTrace({ objective: '', steps }), id });
  await scorer.evaluateValue(trace('a', part(a, 8)));
  await scorer.evaluateValue(trace('b', part(b, 8)));
  const mixed = trace('mixed', [...part(a, 3), ...part(b, 6)]);
  const { nearest, noveltyBasis } = await scorer.explain(mixed);
  expect(noveltyBasis).toBe('cache');
  expect(nearest.label).toBe('b');
  expect(nearest.similarity).toBeCloseTo(1, 5);
  const bytes = (text) => text.length + 2;
  expect(nearest.share).toBeCloseTo((6 * bytes(b)) / (6 * bytes(b) + 3 * bytes(a)), 9);
});

test('the cost is bounded, and what is left out is told', async () => {
  const scorer = new Scorer({ novelty: 'full' });
  expect(scorer.cache.maxElements).toBe(32_000);
  const steps = (count) =>
    Array.from({ length: count }, (_, i) => ({
      type: 'thought',
      content: `the observation with number ${i}`,
    }));
  expect((await scorer.explain(makeTrace({ objective: 'o', steps: steps(31) }))).truncated).toBe(false);
  expect(scorer.cache.size).toBe(32);
  expect((await scorer.explain(makeTrace({ objective: 'o', steps: steps(32) }))).truncated).toBe(true);
  expect(scorer.cache.size).toBe(64);
  // Megabytes are read up to a limit.
  const huge = Array.from({ length: 40 }, (_, i) => ({
    type: 'thought',
    content: `${i} ${'same '.repeat(20_000)}`,
  }));
  const breakdown = await scorer.explain(makeTrace({ objective: 'o', steps: huge }));
  expect(breakdown.truncated).toBe(true);
  expect(scorer.cache.size).toBeLessThanOrEqual(96);
});

test('no text at all has a novelty too', async () => {
  const scorer = new Scorer({ novelty: 'full' });
  const empty = makeTrace({
    objective: ' ',
    steps: [{ type: 'thought' }, { type: 'thought', content: '\n' }],
  });
  expect(await scorer.explain(empty)).toMatchObject({ noveltyBasis: 'empty-cache', tokens: 2 });
  expect(await noveltyOf(scorer, empty)).toBeCloseTo(0, 6);
});

const describeShared = fs.existsSync(sharedTraces) ? describe : describe.skip;
describeShared('on real traces', () => {
  // The first 512 tokens are about 2,200 characters of these.
  const PREFIX = 2_600;
  const COUNT = 8;

  const stepsUpTo = ({ steps }, characters) => {
    let length = 0;
    return steps.findIndex(({ content }) => {
      length += (content ?? '').length;
      return length >= characters;
    });
  };
  const withSteps = (trace, objective, steps) => ({ ...trace, task: { objective }, steps });
  const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

  let remembered;
  let unknown;
  let scorers;
  let noveltyOfUnknown;
  beforeAll(async () => {
    const traces = readTraces(sharedTraces).filter((trace) => stepsUpTo(trace, PREFIX) > 0);
    remembered = traces.slice(0, COUNT);
    unknown = traces.slice(-COUNT);
    scorers = { prefix: new Scorer(), full: new Scorer({ novelty: 'full' }) };
    for (const scorer of Object.values(scorers)) await scorer.evaluateValues(remembered);
    noveltyOfUnknown = await medians(unknown);
  });

  async function medians(traces) {
    const result = {};
    for (const [name, scorer] of Object.entries(scorers)) {
      const novelties = [];
      for (const trace of traces) novelties.push(await noveltyOf(scorer, trace, { remember: false }));
      result[name] = median(novelties);
    }
    return result;
  }

  test('the same trace again is old', async () => {
    const { prefix, full } = await medians(remembered);
    expect(prefix).toBeCloseTo(0, 5);
    expect(full).toBeCloseTo(0, 5);
  });

  test('the same steps in another order are old, where the prefix takes them for new', async () => {
    const shuffled = remembered.map((trace, index) => {
      const steps = fc.sample(fc.shuffledSubarray(trace.steps, { minLength: trace.steps.length }), {
        numRuns: 1,
        seed: index,
      })[0];
      return withSteps(trace, trace.task.objective, steps);
    });
    const { prefix, full } = await medians(shuffled);
    expect(full).toBeCloseTo(0, 5);
    expect(prefix).toBeGreaterThan(noveltyOfUnknown.prefix / 2);
  });

  test('a duplicate with another beginning is found', async () => {
    const spliced = remembered.map((trace, index) => {
      const start = unknown[index];
      const steps = [
        ...start.steps.slice(0, stepsUpTo(start, PREFIX) + 1),
        ...trace.steps.slice(stepsUpTo(trace, PREFIX)),
      ];
      return withSteps(trace, start.task.objective, steps);
    });
    const { prefix, full } = await medians(spliced);
    // The prefix sees the unknown trace alone.
    expect(prefix).toBeCloseTo(noveltyOfUnknown.prefix, 5);
    expect(full).toBeLessThan(noveltyOfUnknown.full * 0.75);
  });

  test('novelty after the beginning is found', async () => {
    const spliced = remembered.map((trace, index) => {
      const steps = [...trace.steps.slice(0, stepsUpTo(trace, PREFIX) + 1), ...unknown[index].steps];
      return withSteps(trace, trace.task.objective, steps);
    });
    const { prefix, full } = await medians(spliced);
    expect(prefix).toBeCloseTo(0, 5);
    expect(full).toBeGreaterThan(noveltyOfUnknown.full / 4);
  });
});
