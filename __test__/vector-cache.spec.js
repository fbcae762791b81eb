'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const fc = require('fast-check');

const { VectorCache, _getLocalCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { runForResult } = require('./support/run-script.js');

const axis = (index, dimensions = 3) => Array.from({ length: dimensions }, (_, i) => (i === index ? 1 : 0));

test('VectorCache has the surface of the SDK, and more', () => {
  const { prototype } = VectorCache;
  const classes = [prototype, Object.getPrototypeOf(prototype)];
  const names = [...new Set(classes.flatMap((each) => Object.getOwnPropertyNames(each)))];
  const sdk = ['add', 'clear', 'constructor', 'evictExpired', 'maxCosineSimilarity', 'size'];
  const more = 'addBatch dimensions maxCosineSimilarities maxElements method model nearest'.split(' ');
  expect(names.sort()).toEqual([...sdk, ...more, 'save', 'ttlMs'].sort());
  expect(() => VectorCache()).toThrow(TypeError);
  expect(() => VectorCache.prototype.add.call({}, [1])).toThrow(TypeError);
});

describe('nearest', () => {
  test('tells the most similar first, and of equals the oldest', () => {
    const all = [
      { label: 'east', similarity: 1, index: 0 },
      { label: '', similarity: 1, index: 3 },
      { label: 'north', similarity: 0, index: 1 },
      { label: undefined, similarity: -1, index: 2 },
    ];
    const cache = new VectorCache({ dimensions: 2 });
    cache.addBatch([axis(0, 2), axis(1, 2), [-1, 0], [2, 0]], ['east', 'north', undefined, '']);
    expect(cache.nearest([5, 0])).toEqual(all.slice(0, 1));
    expect(cache.nearest([5, 0], undefined)).toEqual(all.slice(0, 1));
    for (let k = 0; k <= 5; k++) expect(cache.nearest([5, 0], k)).toEqual(all.slice(0, k));
    expect(cache.nearest([5, 0], Number.MAX_SAFE_INTEGER)).toEqual(all);
    expect(cache.nearest([5, 0])).toBeInstanceOf(Array);
  });

  test('labels keep every character; a lone surrogate becomes U+FFFD', () => {
    const cache = new VectorCache({ dimensions: 1 });
    const labels = ['a\0b', '\u00e9\u{1f980}\ufeff', '\ud800', 'x\udc00\ud800y', 'kp:trace:1'];
    for (const label of labels) cache.add([1], label);
    const expected = ['a\0b', '\u00e9\u{1f980}\ufeff', '\ufffd', 'x\ufffd\ufffdy', 'kp:trace:1'];
    expect(cache.nearest([1], 9).map(({ label }) => label)).toEqual(expected);
    expect([...cache].map(({ label }) => label)).toEqual(expected);
  });
});

describe('iteration', () => {
  const filled = (options) => {
    const cache = new VectorCache({ dimensions: 1, ...options });
    for (let i = 0; i < 10; i++) cache.add([i + 1], `${i}`);
    return cache;
  };

  test('goes from the oldest to the newest', () => {
    const entries = [...filled({ maxElements: 4 })];
    expect(entries[0].vector).toBeInstanceOf(Float32Array);
    expect(entries).toEqual(
      [7, 8, 9, 10].map((value, index) => ({ vector: Float32Array.of(value), label: `${value - 1}`, index })),
    );
  });

  test('gives copies', () => {
    const cache = filled();
    for (const { vector } of cache) vector.fill(0);
    expect([...cache].map(({ vector }) => vector[0])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('gives vectors that can be added again without a change, also where it is another scale', () => {
    const cache = new VectorCache({ dimensions: 2 });
    const tiny = axis(0, 2).map((component) => component * 1e-300);
    const vectors = [[1e300, -1e300], tiny, [0.1, 1 / 3], [0, 0], [2 ** -40, 2 ** 40]];
    cache.addBatch(vectors);
    const first = [...cache].map(({ vector }) => vector);
    cache.clear();
    cache.addBatch(first);
    expect([...cache].map(({ vector }) => vector)).toEqual(first);
    expect(first.slice(2)).toEqual(vectors.slice(2).map((vector) => Float32Array.from(vector)));
  });

  test('iteration leaves out evicted and added vectors', () => {
    const cache = filled({ maxElements: 10 });
    const seen = [];
    for (const { label, index } of cache) {
      seen.push([label, index]);
      // Each takes the place of the oldest.
      if (index === 2) for (let i = 0; i < 5; i++) cache.add([i], 'new');
    }
    expect(seen.map(([label]) => label)).toEqual(['0', '1', '2', '5', '6', '7', '8', '9']);
    expect(seen.map(([, index]) => index)).toEqual([0, 1, 2, 5, 6, 7, 8, 9]);
  });

  test('ends when the cache is cleared', () => {
    const cache = filled();
    const iterator = cache[Symbol.iterator]();
    expect(iterator.next().value.label).toBe('0');
    cache.clear();
    for (let i = 0; i < 20; i++) cache.add([1], 'new');
    expect(iterator.next()).toEqual({ value: undefined, done: true });
    expect([...cache]).toHaveLength(20);
  });

  test('begins when the iterator is made', () => {
    const cache = filled();
    const iterator = cache[Symbol.iterator]();
    cache.add([1], 'new');
    expect([...iterator].map(({ label }) => label)).toEqual([...'0123456789']);
    expect([...new VectorCache()]).toEqual([]);
  });

  test('iteration leaves out expired vectors', async () => {
    const cache = filled({ ttlMs: 20 });
    const iterator = cache[Symbol.iterator]();
    await sleep(60);
    expect([...iterator]).toEqual([]);
  });
});

test('VectorCache tells its bounds as they were given', () => {
  const bounds = ({ maxElements, dimensions, ttlMs, model }) => [maxElements, dimensions, ttlMs, model];
  expect(bounds(new VectorCache())).toEqual([1000, 384, Number.POSITIVE_INFINITY, null]);
  for (const ttlMs of [0, 0.5, 1, 60_000.25, 86_400_000, 1e300]) {
    const told = ttlMs === 1e300 ? Number.POSITIVE_INFINITY : ttlMs;
    expect(bounds(new VectorCache({ maxElements: 0, dimensions: 7, ttlMs }))).toEqual([0, 7, told, null]);
  }
  expect(bounds(_getLocalCache()).slice(0, 3)).toEqual([1000, 384, Number.POSITIVE_INFINITY]);
});

test('VectorCache leaves out expired vectors, and counts others', async () => {
  const [brief, long] = [20, 3_600_000].map((ttlMs) => new VectorCache({ dimensions: 3, ttlMs }));
  for (const cache of [brief, long]) cache.add(axis(0));
  await sleep(60);
  expect([brief.size, long.size]).toEqual([0, 1]);
  expect([brief, long].map((cache) => cache.maxCosineSimilarity(axis(0)))).toEqual([0, 1]);
  brief.evictExpired();
  long.evictExpired();
  expect([brief.size, long.size]).toEqual([0, 1]);
});

test('_getLocalCache returns one live cache', () => {
  const cache = _getLocalCache();
  expect(cache).toBeInstanceOf(VectorCache);
  cache.clear();
  cache.add(axis(0, 384));
  expect(_getLocalCache()).toBe(cache);
  expect(cache.size).toBe(1);
  cache.clear();
});

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

test('VectorCache agrees with double precision within 1e-6', () => {
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
      const ranked = cache.nearest(query, kept.length);
      expect(ranked.map(({ index }) => index).sort((a, b) => a - b)).toEqual([...kept.keys()]);
      for (const [rank, { similarity, index }] of ranked.entries()) {
        expect(Math.abs(similarity - similarities[index])).toBeLessThanOrEqual(1e-6);
        const next = ranked[rank + 1];
        if (next === undefined) break;
        expect(similarity > next.similarity || index < next.index).toBe(true);
        expect(similarity).toBeGreaterThanOrEqual(next.similarity);
      }
      expect(cache.nearest(query, 3)).toEqual(ranked.slice(0, 3));
    }
    const all = queries.map((query) => cache.maxCosineSimilarity(query));
    expect(cache.maxCosineSimilarities(queries)).toEqual(all);
  });
  fc.assert(property, { numRuns: 500 });
});

test('a refused batch leaves no garbage', async () => {
  const { result } = await runForResult(
    `const cache = new kp.VectorCache({ maxElements: 40_000 });
    const vectors = Array(40_000).fill(new Float32Array(384).fill(1));
    vectors.push('no vector');
    let most = 0;
    for (let round = 0; round < 20; round++) {
      try {
        cache.addBatch(vectors);
      } catch {}
      most = Math.max(most, process.memoryUsage().rss);
    }
    console.log(JSON.stringify({ most, size: cache.size }));`,
  );
  expect(result.size).toBe(0);
  expect(result.most).toBeLessThan(1e9);
});
