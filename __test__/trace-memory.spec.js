'use strict';

// Novelty by words and digests: every number against the plain reference, and what must never change one.

const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const { TraceMemory, VectorCache } = require('..');
const { OracleMemory, countsOf, digestOf } = require('./oracle/novelty.js');
const { readTraces, sharedTraces } = require('./support/paths.js');
const { scratchDirectory } = require('./support/scratch.js');
const { rejectionOf } = require('./support/refusals.js');
const { makeTrace } = require('./support/make-trace.js');

const scratch = scratchDirectory('traces');

/** @param {string} objective @param {string[]} contents */
function traceOf(objective, contents, id) {
  const steps = contents.map((content, step_id) => ({ step_id, type: 'thought', content }));
  return { ...makeTrace(), id, task: { objective }, steps };
}

/** Texts of words that many, several or few traces have, in several scripts. */
const text = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: fc.nat(5).map((number) => `common${number}`) },
      { weight: 3, arbitrary: fc.nat(40).map((number) => `Several_${number}`) },
      {
        weight: 2,
        arbitrary: fc.constantFrom(...'Straße ΛΌΓΟΣ 東京都 データ ﬁne cafe\u0301 ² … สวัสดี'.split(' ')),
      },
      fc.nat().map((number) => `rare${number}`),
    ),
    { maxLength: 20 },
  )
  .map((words) => words.join(', '));

const trace = fc
  .tuple(text, fc.array(text, { maxLength: 6 }))
  .map(([objective, contents]) => traceOf(objective, contents));

const vector = fc
  .array(fc.integer({ min: -9, max: 9 }), { minLength: 5, maxLength: 5 })
  .map((v) => [...v, 10]);

describe('the measure', () => {
  test('is that of the reference', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(trace, vector), { minLength: 1, maxLength: 12 }),
        fc.constantFrom('lexical', 'full'),
        async (traces, novelty) => {
          const memory = new TraceMemory({ novelty, dimensions: 6 });
          const oracle = new OracleMemory();
          for (const [trace, vector] of traces) {
            const own = novelty === 'full' ? vector : undefined;
            if (own && oracle.entries.length > 2 && oracle.isUndecided()) return;
            const found = await memory.compareAndAdd(trace, { vector });
            // Counts are kept with 12 bits, and embeddings in single precision.
            expect(Math.abs(found.novelty - oracle.novelty(trace, own))).toBeLessThan(2e-3);
            if (found.nearest !== null) {
              const expected = oracle.similarities(trace, own)[found.nearest.index];
              for (const part of ['lexical', 'contained', 'similarity'])
                expect(Math.abs(found.nearest[part] - expected[part])).toBeLessThan(2e-3);
            }
            oracle.add(trace, own);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('reads the words and the digest of the reference', () =>
    fc.assert(
      fc.asyncProperty(trace, fc.string({ unit: 'binary-ascii', maxLength: 4000 }), async (trace, long) => {
        const longer = { ...trace, steps: [...trace.steps, { step_id: 9, type: 'thought', content: long }] };
        expect(TraceMemory.digest(longer)).toBe(digestOf(longer));
        const memory = new TraceMemory();
        await memory.add(longer);
        const [{ words }] = memory;
        const sorted = (counts) => [...counts].sort((a, b) => a - b);
        const expected = sorted(countsOf(longer).values());
        if (expected.length > 480) return expect(words.size).toBe(480);
        expect(words.size).toBe(expected.length);
        sorted(words.values()).forEach((count, index) => {
          expect(Math.abs(count / expected[index] - 1)).toBeLessThan(1 / 2048);
        });
      }),
      { numRuns: 60 },
    ));

  test('is 0.5 for an empty memory, and 0 for a remembered trace in any order, case and spacing', async () => {
    for (const novelty of ['lexical', 'full']) {
      const memory = new TraceMemory({ novelty, dimensions: 2 });
      const trace = traceOf('Book a flight, please', ['First: Straße 東京 x_1', 'second step', 'third']);
      const changed = traceOf('  book A FLIGHT ... please!', [
        'THIRD',
        'SECOND\tSTEP',
        'first STRASSE,\n東京 X_1',
      ]);
      const other = traceOf('Something else', ['entirely']);
      const compare = (trace, vector) => memory.compare(trace, { vector });
      expect(await compare(trace, [1, 0])).toEqual({ novelty: 0.5, nearest: null });
      await memory.add(trace, { vector: [1, 0] });
      for (const same of [trace, changed]) {
        expect((await compare(same, [1, 0])).novelty).toBe(0);
        expect((await compare(same, [0, 1])).novelty).toBe(0);
      }
      expect((await compare(other, [0, 1])).novelty).toBe(1);
    }
  });

  test('bounds the memory of a trace', async () => {
    const memory = new TraceMemory();
    const words = Array.from({ length: 200_000 }, (_, index) => `word${index}`).join(' ');
    for (const content of ['a'.repeat(10_000_000), words]) {
      await memory.add(traceOf('o', [content]));
      expect((await memory.compare(traceOf('o', [content]))).novelty).toBe(0);
    }
    for (const { words } of memory) expect(words.size).toBeLessThanOrEqual(480);
  });
});

describe('a trace memory', () => {
  test('evicts the oldest, and iterates over the rest', async () => {
    const memory = new TraceMemory({ maxElements: 2, novelty: 'full', dimensions: 2 });
    for (const id of ['a', 'b', 'c'])
      await memory.add(traceOf(`objective ${id}`, [], id), { vector: [1, 0.5] });
    expect(memory.size).toBe(2);
    expect(Array.from(memory, ({ label, index, vector }) => [label, index, [...vector]])).toEqual([
      ['b', 0, [1, 0.5]],
      ['c', 1, [1, 0.5]],
    ]);
    const nearest = await memory.nearest(traceOf('objective c', []), 9, { vector: [1, 0.5] });
    expect(nearest.map(({ label }) => label)).toEqual(['c', 'b']);
    expect(nearest[0]).toMatchObject({ index: 1, similarity: 1, lexical: 1, contained: 1 });
    memory.clear();
    expect([...memory]).toEqual([]);
  });

  test('finds the same at any scale of the embeddings', async () => {
    let seed = 1;
    const random = () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed / 2 ** 31 - 1;
    };
    const dimensions = 40;
    // Most components are negative, so that the difference of one from the mean can be larger than any component.
    const component = () => (random() < 0.7 ? -1 : 1) * (1.7 + random() / 5);
    const vectors = Array.from({ length: 60 }, () => Array.from({ length: dimensions }, component));
    const queries = vectors
      .slice(20, 50)
      .map((vector) => vector.map((component) => component + random() / 20));
    const found = async (exponent) => {
      const memory = new TraceMemory({ novelty: 'full', dimensions });
      const scaled = (vector) => ({
        vector: vector.map((component) => Math.fround(component) * 2 ** exponent),
      });
      // No two share a word, so that the embeddings alone decide.
      for (const [index, vector] of vectors.entries()) {
        await memory.add(traceOf(`word${index}`, [], `${index}`), scaled(vector));
      }
      return Promise.all(queries.map((query) => memory.compare(traceOf('other', []), scaled(query))));
    };
    const expected = await found(0);
    expect(expected.map(({ nearest }) => nearest.label)).toEqual(queries.map((_, index) => `${index + 20}`));
    for (const exponent of [-40, -39, 39]) expect(await found(exponent)).toEqual(expected);
  });

  test('works on calls in their order', async () => {
    const memory = new TraceMemory();
    const compared = Array.from({ length: 20 }, () => memory.compareAndAdd(traceOf('the same', ['steps'])));
    const novelties = (await Promise.all(compared)).map(({ novelty }) => novelty);
    expect(novelties).toEqual([0.5, ...new Array(19).fill(0)]);
  });

  test('refuses incomparable traces', async () => {
    const memory = new TraceMemory({ novelty: 'full', dimensions: 2 });
    const trace = traceOf('o', []);
    const vector = [1, 2];
    const wrong = { ...trace, steps: [{}] };
    const type = expect.stringContaining('trace.steps[0].type');
    for (const [call, error] of [
      [() => memory.add(trace), { name: 'TypeError', code: 'ERR_INVALID_VECTOR' }],
      [() => memory.add(trace, { vector: [1] }), { code: 'ERR_INVALID_VECTOR' }],
      [() => memory.add(trace, { vector: [1, Number.NaN] }), { code: 'ERR_INVALID_VECTOR' }],
      [() => memory.add(trace, { vector: new Float32Array(3) }), { code: 'ERR_INVALID_VECTOR' }],
      [() => memory.add(wrong, { vector }), { code: 'ERR_INVALID_TRACE', message: type }],
      [() => memory.nearest(trace, -1, { vector }), { code: 'ERR_INVALID_OPTION' }],
    ])
      expect(await rejectionOf(call())).toMatchObject(error);
    const reason = new Error('never mind');
    expect(await rejectionOf(memory.add(trace, { vector, signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(memory.size).toBe(0);
    expect(() => new TraceMemory({ novelty: 'prefix' })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    );
  });

  test('is saved and loaded, and told from a vector cache', async () => {
    const file = path.join(scratch, 'traces.safetensors');
    const memory = new TraceMemory({ novelty: 'full', dimensions: 3, maxElements: 7 });
    const traces = ['flight to Seattle', 'flight to Boston', 'hotel in Boston'].map((text) =>
      traceOf(text, [], text),
    );
    for (const [index, trace] of traces.entries()) await memory.add(trace, { vector: [1, index, 2] });
    await memory.save(file);
    const loaded = await TraceMemory.load(file);
    expect(loaded).toMatchObject({ size: 3, maxElements: 7, novelty: 'full', ttlMs: 1 / 0 });
    expect([...loaded]).toEqual([...memory]);
    const query = traceOf('flight to Boston tomorrow', []);
    expect(await loaded.nearest(query, 3, { vector: [1, 1, 1] })).toEqual(
      await memory.nearest(query, 3, { vector: [1, 1, 1] }),
    );
    expect((await TraceMemory.load(file, { maxElements: 1 })).size).toBe(1);

    expect(await rejectionOf(VectorCache.load(file))).toMatchObject({
      name: 'Error',
      code: 'ERR_MEMORY_OTHER_METHOD',
      message: `${file} holds traces of novelty 'full', not vectors: use another file, or load it as what it holds`,
    });
    await new VectorCache().save(file);
    expect(await rejectionOf(TraceMemory.load(file))).toMatchObject({
      code: 'ERR_MEMORY_OTHER_METHOD',
      message: `${file} holds vectors, not traces: use another file, or load it as what it holds`,
    });
  });
});

const describeShared = fs.existsSync(sharedTraces) ? describe : describe.skip;

describeShared('real traces', () => {
  test('take at most 8 KB each, and are known again after junk', async () => {
    const traces = readTraces(sharedTraces);
    const full = new TraceMemory({ novelty: 'full', maxElements: 1_000 });
    const vector = new Float32Array(384).fill(0.05);
    for (const trace of traces) await full.add(trace, { vector });
    expect(full.bytes / traces.length).toBeLessThan(8192);
    const memory = new TraceMemory();
    for (const trace of traces) await memory.add(trace);
    const junk = Array.from({ length: 400 }, (_, index) => `junk${index}`).join(' ');
    const novelties = [];
    for (const trace of traces) {
      expect((await memory.compare(trace)).novelty).toBe(0);
      const step = { step_id: 0, type: 'observation', content: junk };
      const attacked = { ...trace, steps: [step, ...trace.steps] };
      novelties.push((await memory.compare(attacked)).novelty);
    }
    expect(novelties.sort((a, b) => a - b)[traces.length >> 1]).toBeLessThan(0.15);
  });
});
