'use strict';

// Vectors of every kind that a `VectorCache` takes, and that it keeps copies of them.

const vm = require('node:vm');

const { VectorCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { throwingGetter } = require('./support/hostile.js');

const DIMENSIONS = 384;
const GOOD = Array.from({ length: DIMENSIONS }, (_, index) => Math.sin(index + 1));
const PROBE = Float64Array.from(GOOD, (_, index) => Math.cos(index * index));
const SCALED = GOOD.map((component) => component * 100);

class Floats extends Float32Array {}
class Doubles extends Float64Array {}

/** A subclass that cannot be made from a length alone. */
class Labelled extends Float32Array {
  constructor(buffer, label) {
    if (typeof label !== 'string') throw new Error('no label');
    super(buffer);
    this.set(GOOD);
  }
}

function shared(Type) {
  const vector = new Type(new SharedArrayBuffer(DIMENSIONS * Type.BYTES_PER_ELEMENT));
  vector.set(SCALED);
  return vector;
}

const arrayLike = () => Object.assign({ length: DIMENSIONS }, GOOD);

function toArguments() {
  // biome-ignore lint/complexity/noArguments: it is what is tested
  return arguments;
}

function fromGetters() {
  const getters = GOOD.map((component, index) => [index, { get: () => component }]);
  return Object.defineProperties({ length: DIMENSIONS }, Object.fromEntries(getters));
}

function withInheritedComponent() {
  const vector = [...GOOD];
  delete vector[3];
  return Object.setPrototypeOf(vector, { 3: 0.25, __proto__: Array.prototype });
}

/** A Float32Array that follows its buffer, which grows. */
function growing() {
  const buffer = new ArrayBuffer(4, { maxByteLength: DIMENSIONS * 4 });
  const vector = new Float32Array(buffer);
  buffer.resize(DIMENSIONS * 4);
  vector.set(GOOD);
  return vector;
}

const TYPES = [
  ...[Float32Array, Float64Array, Int8Array, Int16Array, Int32Array],
  ...[Uint8Array, Uint8ClampedArray, Uint16Array, Uint32Array],
];

/** Vectors by their names, with what the reference multiplies their components by. */
const ROWS = [
  ['an array', () => [...GOOD]],
  ['a frozen array', () => Object.freeze([...GOOD])],
  ['an array without a prototype', () => Object.setPrototypeOf([...GOOD], null)],
  ['an array of another realm', () => vm.runInNewContext(`[${GOOD}]`)],
  ['an array with a negative zero', () => [-0, ...GOOD.slice(1)]],
  ['an array whose iterator throws', () => throwingGetter([...GOOD], Symbol.iterator, new Error('iterated'))],
  ['an array with a component of its prototype', withInheritedComponent],
  ['an array-like object', arrayLike],
  ['an inherited array-like object', () => Object.create(arrayLike())],
  ['the arguments of a call', () => toArguments(...GOOD)],
  ['components from getters', fromGetters],
  ['a proxy of an array', () => new Proxy([...GOOD], {})],
  [
    'a proxy of a Float32Array',
    () => new Proxy(Float32Array.from(GOOD), { get: (target, key) => target[key] }),
  ],
  ...TYPES.map((Type) => [`a ${Type.name}`, () => Type.from(SCALED)]),
  ...[Floats, Doubles].map((Type) => [`a subclass, ${Type.name}`, () => Type.from(GOOD)]),
  ...[Float32Array, Float64Array, Int8Array, Floats].map((Type) => [
    ...[`a ${Type.name} in shared memory`, () => shared(Type)],
  ]),
  ['a Buffer', () => Buffer.from(Uint8Array.from(SCALED))],
  ['a Float32Array of another realm', () => vm.runInNewContext(`new Float32Array([${GOOD}])`)],
  ['a part of a Float32Array', () => new Float32Array([9, 9, ...GOOD, 9]).subarray(2, 386)],
  ['a part of a Float64Array', () => new Float64Array([9, ...GOOD, 9]).subarray(1, 385)],
  ['a subclass of its own making', () => new Labelled(new ArrayBuffer(DIMENSIONS * 4), 'a')],
  ['the same in shared memory', () => new Labelled(new SharedArrayBuffer(DIMENSIONS * 4), 'a')],
  [
    'a Float32Array whose buffer throws',
    () => throwingGetter(Float32Array.from(GOOD), 'buffer', new Error()),
  ],
  ['a shared array with a slice of its own', () => Object.assign(shared(Float32Array), { slice: () => [] })],
  ['a Float32Array that follows its buffer', growing],
  ['1e300 in a Float64Array', () => Float64Array.from(GOOD, (component) => component * 1e300), 1e-300],
  ['1e-300 in an array', () => GOOD.map((component) => component * 1e-300), 1e300],
  ['the largest number', () => new Float64Array(DIMENSIONS).fill(Number.MAX_VALUE, 0, 1), 1e-308],
  ['the smallest number', () => new Float64Array(DIMENSIONS).fill(Number.MIN_VALUE, 0, 1), 2 ** 1023],
  ['the largest single', () => Float32Array.from(GOOD, (component) => component * 3e38)],
];

test.each(ROWS)('every method of VectorCache accepts %s', (...row) => {
  const [, make, factor = 1] = row;
  const vector = make();
  // The reference reads neither the length nor hostile fields.
  const components = Float64Array.from({ length: DIMENSIONS }, (_, index) => Number(vector[index]) * factor);

  const added = new VectorCache();
  expect(added.add(vector)).toBe(undefined);
  expect(added.maxCosineSimilarity(components)).toBeCloseTo(1, 6);
  const similarity = added.maxCosineSimilarity(PROBE);
  expect(similarity).toBeCloseTo(cosineSimilarity(components, PROBE), 6);

  const batch = new VectorCache();
  batch.addBatch([vector, vector], ['a', undefined]);
  expect(batch.nearest(PROBE, 3)).toEqual([
    { label: 'a', similarity, index: 0 },
    { label: undefined, similarity, index: 1 },
  ]);

  const asked = new VectorCache();
  expect([asked.maxCosineSimilarity(vector), asked.nearest(vector)]).toEqual([0, []]);
  asked.add(PROBE);
  const found = asked.maxCosineSimilarity(vector);
  expect(found).toBeCloseTo(similarity, 6);
  expect([asked.maxCosineSimilarities([vector]), asked.nearest(vector)[0].similarity]).toEqual([
    [found],
    found,
  ]);
  expect(asked.size).toBe(1);
});

test('a zero vector is similar to nothing', () => {
  const cache = new VectorCache();
  cache.add(new Float32Array(DIMENSIONS));
  for (const query of [GOOD, Array(DIMENSIONS).fill(0), Array(DIMENSIONS).fill(-0)]) {
    expect(cache.maxCosineSimilarity(query)).toBe(0);
  }
});

test('add takes a vector whose getters use the cache', () => {
  const cache = new VectorCache({ dimensions: 2 });
  const get = () => {
    cache.add([0, 1]);
    return cache.maxCosineSimilarity([0, 1]);
  };
  cache.add(Object.defineProperty({ length: 2, 1: 0 }, '0', { get }));
  expect(Array.from(cache, ({ vector }) => [...vector])).toEqual([
    [0, 1],
    [1, 0],
  ]);
});

test('addBatch takes array-like lists whose getters use the cache', () => {
  const cache = new VectorCache({ dimensions: 2 });
  const vectors = {
    length: 2,
    get 0() {
      cache.addBatch([[0, 1]], { length: 1, 0: 'inner' });
      return [1, 0];
    },
    get 1() {
      // The first one waits until all are known to be good.
      return [cache.size, 0];
    },
  };
  cache.addBatch(vectors, vm.runInNewContext("['a', 'b']"));
  expect([...cache].map(({ label }) => label)).toEqual(['inner', 'a', 'b']);
  expect(cache.maxCosineSimilarities([])).toEqual([]);
  cache.addBatch([]);
  cache.addBatch([], []);
  expect(cache.size).toBe(3);
});

test.each([
  ['an array', () => [1, 0]],
  ['an array-like object', () => ({ length: 2, 0: 1, 1: 0 })],
  ...[Float32Array, Float64Array, Int8Array].map((Type) => [`a ${Type.name}`, () => Type.from([1, 0])]),
  ...[Float32Array, Float64Array].map((Type) => [
    `a ${Type.name} in shared memory`,
    () => Object.assign(new Type(new SharedArrayBuffer(2 * Type.BYTES_PER_ELEMENT)), { 0: 1 }),
  ]),
])('add copies %s, and leaves it as it is', (_, make) => {
  const cache = new VectorCache({ dimensions: 2 });
  const vector = make();
  cache.add(vector);
  cache.maxCosineSimilarity(vector);
  expect([vector[0], vector[1]]).toEqual([1, 0]);
  vector[0] = 0;
  vector[1] = 1;
  expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
  expect(cache.maxCosineSimilarity([0, 1])).toBe(0);
});

test('add copies a buffer that is transferred afterwards', () => {
  const cache = new VectorCache({ dimensions: 2 });
  const vector = new Float32Array([1, 0]);
  cache.add(vector);
  structuredClone(vector.buffer, { transfer: [vector.buffer] });
  expect(vector).toHaveLength(0);
  expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
});
