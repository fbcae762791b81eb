'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const fc = require('fast-check');

const { VectorCache, _getLocalCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');

const axis = (index, dimensions = 3) => Array.from({ length: dimensions }, (_, i) => (i === index ? 1 : 0));

describe('VectorCache', () => {
  test('holds 1,000 vectors of 384 dimensions for ever by default', () => {
    const cache = new VectorCache();
    for (let i = 0; i < 1001; i++) cache.add(axis(i % 384, 384));
    expect(cache.size).toBe(1000);
    cache.evictExpired();
    expect(cache.size).toBe(1000);
  });

  test('an empty cache has similarity 0 and size 0', () => {
    const cache = new VectorCache({ dimensions: 3 });
    expect(cache.maxCosineSimilarity([1, 2, 3])).toBe(0);
    expect(cache.size).toBe(0);
  });

  test('tells the largest similarity, whatever the lengths of the vectors', () => {
    const cache = new VectorCache({ dimensions: 2 });
    cache.add([3, 4]);
    cache.add([0, -5]);
    expect(cache.maxCosineSimilarity([10, 0])).toBeCloseTo(0.6, 6);
    expect(cache.maxCosineSimilarity([0, 1])).toBeCloseTo(0.8, 6);
    expect(cache.maxCosineSimilarity([0, -1e-9])).toBeCloseTo(1, 6);
  });

  test('a similarity may be negative', () => {
    const cache = new VectorCache({ dimensions: 2 });
    cache.add([1, 0]);
    expect(cache.maxCosineSimilarity([-2, 0])).toBeCloseTo(-1, 6);
  });

  test('a zero vector has similarity 0, not a negative zero', () => {
    const cache = new VectorCache({ dimensions: 2 });
    cache.add([1, 1]);
    expect(cache.maxCosineSimilarity([0, 0])).toBe(0);
    cache.clear();
    cache.add([0, 0]);
    expect(cache.maxCosineSimilarity([-1, -1])).toBe(0);
  });

  test('drops the oldest first', () => {
    const cache = new VectorCache({ maxElements: 2, dimensions: 3 });
    cache.add(axis(0));
    cache.add(axis(1));
    cache.add(axis(2));
    expect(cache.size).toBe(2);
    expect([0, 1, 2].map((index) => cache.maxCosineSimilarity(axis(index)))).toEqual([0, 1, 1]);
  });

  test('clear removes everything, and the cache goes on', () => {
    const cache = new VectorCache({ dimensions: 3 });
    cache.add(axis(0));
    cache.clear();
    expect(cache.size).toBe(0);
    expect(cache.maxCosineSimilarity(axis(0))).toBe(0);
    cache.add(axis(0));
    expect(cache.maxCosineSimilarity(axis(0))).toBe(1);
  });

  test('takes any array-like of numbers and copies it', () => {
    const cache = new VectorCache({ dimensions: 2 });
    const vector = new Float32Array([1, 0]);
    cache.add(vector);
    vector.set([0, 1]);
    expect(cache.maxCosineSimilarity({ length: 2, 0: 1, 1: 0 })).toBe(1);
    for (const query of [[1, 0], new Float64Array([1, 0]), new Int8Array([1, 0]), new Float32Array([9, 0])]) {
      expect(cache.maxCosineSimilarity(query)).toBe(1);
    }
  });

  test('has the surface of the SDK', () => {
    const names = Object.getOwnPropertyNames(VectorCache.prototype).sort();
    expect(names).toEqual([
      'add',
      'clear',
      'constructor',
      'dimensions',
      'evictExpired',
      'maxCosineSimilarity',
      'size',
    ]);
    expect(() => VectorCache()).toThrow(TypeError);
    expect(() => VectorCache.prototype.add.call({}, [1])).toThrow(TypeError);
  });
});

describe('time to live', () => {
  test('expired vectors count no more, others do', async () => {
    const [brief, long] = [20, 3_600_000].map((ttlMs) => new VectorCache({ dimensions: 3, ttlMs }));
    for (const cache of [brief, long]) cache.add(axis(0));
    await sleep(60);
    expect([brief.size, long.size]).toEqual([0, 1]);
    expect([brief, long].map((cache) => cache.maxCosineSimilarity(axis(0)))).toEqual([0, 1]);
    brief.evictExpired();
    long.evictExpired();
    expect([brief.size, long.size]).toEqual([0, 1]);
  });

  test('a time to live of 0 keeps nothing', () => {
    const cache = new VectorCache({ dimensions: 3, ttlMs: 0 });
    cache.add(axis(0));
    expect(cache.size).toBe(0);
  });

  test('the wall clock does not matter', () => {
    const now = Date.now;
    const cache = new VectorCache({ dimensions: 3, ttlMs: 60_000 });
    cache.add(axis(0));
    try {
      Date.now = () => now() + 3_600_000;
      expect(cache.size).toBe(1);
    } finally {
      Date.now = now;
    }
  });
});

describe('_getLocalCache', () => {
  test('is one live cache', () => {
    _getLocalCache().clear();
    _getLocalCache().add(axis(0, 384));
    expect(_getLocalCache()).toBe(_getLocalCache());
    expect(_getLocalCache()).toBeInstanceOf(VectorCache);
    expect(_getLocalCache().size).toBe(1);
    _getLocalCache().clear();
    expect(_getLocalCache().size).toBe(0);
  });

  test('holds vectors of 384 dimensions', () => {
    expect(() => _getLocalCache().add([1, 2, 3])).toThrow('Expected 384 dimensions, got 3');
  });
});

describe('property', () => {
  const component = fc.oneof(
    fc.double({ min: -1, max: 1, noNaN: true }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(0, 1, -1),
  );
  const vectors = (dimensions, maxLength) =>
    fc.array(fc.array(component, { minLength: dimensions, maxLength: dimensions }), {
      minLength: 1,
      maxLength,
    });

  /** Scales a vector so that the plain oracle neither overflows nor underflows; no similarity changes. */
  function comfortable(vector) {
    const largest = Math.max(...vector.map(Math.abs));
    return largest === 0 ? vector : vector.map((value) => value / largest);
  }

  test('agrees with double precision within 1e-6', () => {
    const cases = fc.integer({ min: 1, max: 40 }).chain((dimensions) =>
      fc.record({
        maxElements: fc.integer({ min: 0, max: 12 }),
        stored: vectors(dimensions, 20),
        queries: vectors(dimensions, 4),
      }),
    );
    const property = fc.property(cases, ({ maxElements, stored, queries }) => {
      const cache = new VectorCache({ maxElements, dimensions: stored[0].length });
      for (const vector of stored) cache.add(vector);
      const kept = maxElements === 0 ? [] : stored.slice(-maxElements);
      expect(cache.size).toBe(kept.length);
      for (const query of queries) {
        const similarities = kept.map((vector) => cosineSimilarity(comfortable(query), comfortable(vector)));
        const expected = similarities.length === 0 ? 0 : Math.max(...similarities);
        expect(Math.abs(cache.maxCosineSimilarity(query) - expected)).toBeLessThanOrEqual(1e-6);
      }
    });
    fc.assert(property, { numRuns: 500 });
  });

  test('agrees at the size of the real thing', () => {
    const random = fc.sample(fc.float({ min: -1, max: 1, noNaN: true }), { numRuns: 384 * 220, seed: 7 });
    const rows = Array.from({ length: 220 }, (_, i) =>
      Float32Array.from(random.slice(i * 384, (i + 1) * 384)),
    );
    const cache = new VectorCache({ maxElements: 200 });
    for (const row of rows) cache.add(row);
    const kept = rows.slice(-200);
    for (const query of rows) {
      const expected = Math.max(...kept.map((row) => cosineSimilarity(query, row)));
      expect(Math.abs(cache.maxCosineSimilarity(query) - expected)).toBeLessThanOrEqual(1e-6);
    }
  });
});
