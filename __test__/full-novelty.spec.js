'use strict';

// Novelty over the whole text of a trace: `new Scorer({ novelty: 'full' })`.

const fc = require('fast-check');

const { Embedder, Scorer } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { xxh3 } = require('./oracle/xxh3.js');
const { makeTrace } = require('./support/make-trace.js');

/** Where docs/novelty.md cuts a text of ASCII that is too long for a window. */
function cutOf(text) {
  const positions = Array.from({ length: 751 }, (_, index) => 250 + index);
  const spaces = positions.filter((position) => /\s/.test(text[position]));
  const hashes = (spaces.length > 0 ? spaces : positions).map((position) => [
    xxh3(Buffer.from(text.slice(position - 32, position))),
    position,
  ]);
  return hashes.reduce((a, b) => (b[0] <= a[0] ? b : a))[1];
}

/** The windows of a trace as docs/novelty.md describes them, for texts of ASCII and of no more than 32 windows. */
function windowsOf(trace) {
  const bytes = new Map();
  for (const part of [trace.task.objective, ...trace.steps.map(({ content }) => content ?? '')]) {
    let rest = part.trim();
    while (rest !== '') {
      const end = rest.length > 1000 ? cutOf(rest) : rest.length;
      const piece = rest.slice(0, end).trim();
      bytes.set(piece, (bytes.get(piece) ?? 0) + piece.length);
      rest = rest.slice(end).trim();
    }
  }
  if (bytes.size === 0) bytes.set('', 1);
  return bytes;
}

/** A scorer of the oracle's: novelty by the formula of docs/novelty.md. */
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
  const part = fc
    .tuple(fc.array(word, { maxLength: 300 }), fc.constantFrom(' ', '_'))
    .map(([words, glue]) => words.join(glue));
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

test('a log with a line in front is old but for that line', async () => {
  const scorer = new Scorer({ novelty: 'full' });
  const verbs = ['opened', 'closed', 'read', 'wrote', 'lost', 'found'];
  const lines = Array.from({ length: 900 }, (_, i) => `${(i * 7919) % 1009} ${verbs[(i * i) % 6]} file ${i}`);
  const log = (content) => makeTrace({ objective: 'o', steps: [{ type: 'observation', content }] });
  await scorer.evaluateValue(log(lines.join('\n')));
  const ask = (content) => noveltyOf(scorer, log(content), { remember: false });
  expect(await ask(lines.join('\n'))).toBeCloseTo(0, 6);
  // Two windows of 32 at most.
  const aLittle = 0.02;
  expect(await ask(`Indeed\n${lines.join('\n')}`)).toBeLessThan(aLittle);
  expect(await ask(lines.slice(3).join('\n'))).toBeLessThan(aLittle);
  expect(
    await ask([...lines.slice(0, 400), 'the disk was full', ...lines.slice(400)].join('\n')),
  ).toBeLessThan(aLittle);
});

describe('a window of dense text', () => {
  const numbers = Array.from({ length: 400 }, (_, i) => (i * 7919) % 1009);
  const upTo = (text) => {
    let end = text.length;
    while (Buffer.byteLength(text.slice(0, end)) > 990) end--;
    return text.slice(0, end);
  };
  test.each([
    ['JSON of numbers', upTo(JSON.stringify(numbers.map((n) => [n % 10, n % 7])))],
    ['CSV', upTo(numbers.map((n) => `${n % 10},${n % 7},;${n % 3}`).join('\n'))],
    ['code', upTo('f(x)=>{a[i]+=!b?~c:-d;}'.repeat(60))],
    ['consonants', upTo(numbers.map((n) => `q${String.fromCharCode(97 + (n % 26))}xzvkqj`).join(' '))],
    ['Hangul', upTo('힣쀍꿹뷁쮒쯼 '.repeat(60))],
    ['ideographs', upTo('龘靐齉爩鱻麤'.repeat(60))],
    ['emoji', upTo('👩🏽‍🚀🦀 '.repeat(100))],
  ])('is compared to its end: %s', async (_, content) => {
    const prefix = new Scorer();
    const full = new Scorer({ novelty: 'full' });
    const trace = (content) => makeTrace({ objective: '', steps: [{ type: 'thought', content }] });
    await full.evaluateValue(trace(content));
    const { tokens, truncated, dimensions } = await full.explain(trace(content), { remember: false });
    expect(full.cache.size).toBe(1);
    expect(truncated).toBe(false);
    expect(dimensions.novelty).toBeCloseTo(0, 6);
    const seen = await prefix.explain(trace(content));
    if (seen.truncated) expect(tokens).toBeGreaterThan(512);
    else expect(tokens).toBe(seen.tokens);
    expect(await noveltyOf(full, trace(`${content} end`), { remember: false })).toBeGreaterThan(1e-6);
  });

  test('has the mean of the embeddings of its parts', async () => {
    // Marks are one token each: 900, in two parts of 450.
    const content = ',;'.repeat(225) + '?!'.repeat(225);
    const embedder = new Embedder();
    const [first, second] = await embedder.embedBatch([content.slice(0, 450), content.slice(450)]);
    const mean = first.map((x, i) => x + second[i]);
    const scorer = new Scorer({ novelty: 'full' });
    await scorer.evaluateValue(makeTrace({ objective: content, steps: [] }));
    expect(scorer.cache.maxCosineSimilarity(mean)).toBeCloseTo(1, 5);
  });
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
