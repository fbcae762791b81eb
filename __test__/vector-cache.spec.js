'use strict';

// A `VectorCache`: its options and the vectors that it takes. What it finds is tested in crates/index (vectors/tests.rs), and what it
// refuses in refused-arguments.node.spec.js.

const { setTimeout: sleep } = require('node:timers/promises');
const vm = require('node:vm');

const { VectorCache, _getLocalCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { claiming, hostile, throwingGetter } = require('./support/hostile.js');
const { thrownBy } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');

test('VectorCache has the surface of the SDK', () => {
  const names = Object.getOwnPropertyNames(VectorCache.prototype);
  const sdk = ['add', 'clear', 'constructor', 'evictExpired', 'maxCosineSimilarity', 'size'];
  expect(names.sort()).toEqual(sdk);
  expect(() => VectorCache()).toThrow(TypeError);
  expect(() => VectorCache.prototype.add.call({}, [1])).toThrow(TypeError);
});

const TWO = { maxElements: 2, dimensions: 3 };

test.each([
  ['an infinite ttlMs', { ...TWO, ttlMs: 1 / 0 }],
  ['a fraction as ttlMs', { ...TWO, ttlMs: 60_000.5 }],
  ['null as ttlMs, as the SDK does', { ...TWO, ttlMs: null }],
  ['options that the SDK ignores', { ...TWO, maxelements: 1, [Symbol('s')]: null }],
  ['inherited options', Object.create(TWO)],
  ['options of another realm', vm.runInNewContext('({ maxElements: 2, dimensions: 3 })')],
])('new VectorCache accepts %s', (_, options) => {
  const cache = new VectorCache(options);
  for (const vector of [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ])
    cache.add(vector);
  cache.evictExpired();
  expect([cache.size, cache.maxCosineSimilarity([1, 0, 0])]).toEqual([2, 0]);
  expect(thrownBy(() => cache.add([1, 0])).message).toBe('Expected 3 dimensions, got 2');
});

test.each([[[]], [[undefined]], [[{ maxElements: undefined, dimensions: undefined, ttlMs: undefined }]]])(
  'new VectorCache of %j keeps 1,000 vectors of 384 numbers',
  (parameters) => {
    const cache = new VectorCache(...parameters);
    for (let index = 0; index < 1001; index++) cache.add(new Float32Array(384).fill(1));
    expect(cache.size).toBe(1000);
  },
);

test.each([{ maxElements: -0 }, { ttlMs: 0 }])('VectorCache with %p keeps nothing', (options) => {
  const cache = new VectorCache({ dimensions: 2, ...options });
  cache.add([1, 0]);
  cache.evictExpired();
  expect([cache.size, cache.maxCosineSimilarity([1, 0])]).toEqual([0, 0]);
});

test('new VectorCache with huge limits takes no memory for them', () => {
  const most = Number.MAX_SAFE_INTEGER;
  const before = process.memoryUsage().rss;
  const caches = Array.from({ length: 100 }, () => new VectorCache({ maxElements: most }));
  const wide = Array.from({ length: 100 }, () => new VectorCache({ maxElements: most, dimensions: most }));
  for (const cache of caches) cache.add(new Float32Array(384).fill(1));
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  expect(caches[99].maxCosineSimilarity(new Float32Array(384).fill(2))).toBeCloseTo(1, 6);
  expect(wide[99].size).toBe(0);
});

const DIMENSIONS = 384;
const GOOD = Array.from({ length: DIMENSIONS }, (_, index) => Math.sin(index + 1));
const SCALED = GOOD.map((component) => component * 100);
/** Some direction that no other vector here has. */
const PROBE = Float64Array.from(GOOD, (_, index) => Math.cos(index * index));

function shared(Type, values = SCALED) {
  const vector = new Type(new SharedArrayBuffer(values.length * Type.BYTES_PER_ELEMENT));
  vector.set(values);
  return vector;
}

function fromGetters() {
  const getters = GOOD.map((component, index) => [index, { get: () => component }]);
  return Object.defineProperties({ length: DIMENSIONS }, Object.fromEntries(getters));
}

/** A Float32Array that follows its buffer, which grows. */
function growing() {
  const buffer = new ArrayBuffer(4, { maxByteLength: DIMENSIONS * 4 });
  const vector = new Float32Array(buffer);
  buffer.resize(DIMENSIONS * 4);
  vector.set(GOOD);
  return vector;
}

const TYPES = [Float32Array, Float64Array, Int8Array];

test.each([
  ['an array of another realm', () => vm.runInNewContext(`[${GOOD}]`)],
  ['components from getters', fromGetters],
  ['a proxy of a Float32Array', () => claiming(Float32Array.from(GOOD), DIMENSIONS)],
  ...TYPES.map((Type) => [`a ${Type.name}`, () => Type.from(SCALED)]),
  ...TYPES.map((Type) => [`a ${Type.name} in shared memory`, () => shared(Type)]),
  ['a Float32Array of another realm', () => vm.runInNewContext(`new Float32Array([${GOOD}])`)],
  ['a part of a Float32Array', () => new Float32Array([9, 9, ...GOOD, 9]).subarray(2, 386)],
  ['a part of a Float64Array', () => new Float64Array([9, ...GOOD, 9]).subarray(1, 385)],
  ['a Float32Array whose buffer throws', () => throwingGetter(Float32Array.from(GOOD), 'buffer', hostile)],
  ['a Float32Array that follows its buffer', growing],
  ['1e300 in a Float64Array', () => Float64Array.from(GOOD, (component) => component * 1e300), 1e-300],
  ['1e-300 in an array', () => GOOD.map((component) => component * 1e-300), 1e300],
])('every method of VectorCache accepts %s', (...row) => {
  const [, make, factor = 1] = row;
  const vector = make();
  // The reference reads neither the length nor hostile fields.
  const components = Float64Array.from({ length: DIMENSIONS }, (_, index) => Number(vector[index]) * factor);

  const added = new VectorCache();
  expect(added.add(vector)).toBe(undefined);
  expect(added.maxCosineSimilarity(components)).toBeCloseTo(1, 6);
  const similarity = added.maxCosineSimilarity(PROBE);
  expect(similarity).toBeCloseTo(cosineSimilarity(components, PROBE), 6);

  const asked = new VectorCache();
  expect(asked.maxCosineSimilarity(vector)).toBe(0);
  asked.add(PROBE);
  expect(asked.maxCosineSimilarity(vector)).toBeCloseTo(similarity, 6);
  expect(asked.size).toBe(1);
});

test('VectorCache is garbage in time', async () => {
  const { result } = await runForResult(
    `let most = 0;
    const vector = new Float32Array(384).fill(1);
    for (let round = 0; round < 20; round++) {
      const cache = new kp.VectorCache({ maxElements: 40_000 });
      for (let count = 0; count < 40_000; count++) cache.add(vector);
      await new Promise(setImmediate);
      most = Math.max(most, process.memoryUsage().rss);
    }
    console.log(JSON.stringify(most));`,
  );
  // Each takes 78 MB.
  expect(result).toBeLessThan(1e9);
});

test('add takes a vector whose getters use the cache', () => {
  const cache = new VectorCache({ dimensions: 2 });
  const get = () => {
    cache.add([0, 1]);
    return cache.maxCosineSimilarity([0, 1]);
  };
  cache.add(Object.defineProperty({ length: 2, 1: 0 }, '0', { get }));
  const similarities = [
    [1, 0],
    [0, 1],
  ].map((query) => cache.maxCosineSimilarity(query));
  expect([cache.size, ...similarities]).toEqual([2, 1, 1]);
});

test.each([
  ['an array', () => [1, 0]],
  ['an array-like object', () => ({ length: 2, 0: 1, 1: 0 })],
  ...TYPES.map((Type) => [`a ${Type.name}`, () => Type.from([1, 0])]),
  ...[Float32Array, Float64Array].map((Type) => [`a shared ${Type.name}`, () => shared(Type, [1, 0])]),
])('add copies %s, and leaves it as it is', (_, make) => {
  const cache = new VectorCache({ dimensions: 2 });
  const vector = make();
  cache.add(vector);
  cache.maxCosineSimilarity(vector);
  expect([vector[0], vector[1]]).toEqual([1, 0]);
  vector[0] = 0;
  vector[1] = 1;
  if (vector instanceof Float32Array && vector.buffer instanceof ArrayBuffer)
    structuredClone(vector.buffer, { transfer: [vector.buffer] });
  expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
  expect(cache.maxCosineSimilarity([0, 1])).toBe(0);
});

test('VectorCache leaves out expired vectors, and counts others', async () => {
  const [brief, long] = [20, 3_600_000].map((ttlMs) => new VectorCache({ dimensions: 1, ttlMs }));
  for (const cache of [brief, long]) cache.add([1]);
  await sleep(60);
  expect([brief.size, long.size]).toEqual([0, 1]);
  expect([brief, long].map((cache) => cache.maxCosineSimilarity([1]))).toEqual([0, 1]);
});

test('_getLocalCache returns one live cache', () => {
  const cache = _getLocalCache();
  expect(cache).toBeInstanceOf(VectorCache);
  cache.clear();
  cache.add(PROBE);
  expect(_getLocalCache()).toBe(cache);
  expect(cache.size).toBe(1);
  cache.clear();
});
