'use strict';

// Which vectors and lists the methods of a `VectorCache` take, as copies, and which they refuse with which error.

const vm = require('node:vm');

const { VectorCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { claiming, hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { expectError, same, thrownBy } = require('./support/refusals.js');
const { NOT_NUMBERS, NOT_OBJECTS, NOT_WHOLE, THROWN } = require('./support/wrong-values.js');

const DIMENSIONS = 384;
const LAST = DIMENSIONS - 1;
const GOOD = Array.from({ length: DIMENSIONS }, (_, index) => Math.sin(index + 1));
/** Some direction that no other vector here has. */
const PROBE = Float64Array.from(GOOD, (_, index) => Math.cos(index * index));

const MISSING = ['undefined', undefined, 'undefined'];
const NOT_FINITE = [Number.NaN, 1 / 0, -1 / 0];
const isTypeError = (cause) => cause?.name === 'TypeError';

/** A vector like `GOOD` with another component. */
const withComponent = (index, value) => Object.assign([...GOOD], { [index]: value });

/** An object like `GOOD` that is no array, with other fields. */
const arrayLike = (fields) => Object.assign({ length: DIMENSIONS }, GOOD, fields);

function shared(Type, values) {
  const vector = new Type(new SharedArrayBuffer(values.length * Type.BYTES_PER_ELEMENT));
  vector.set(values);
  return vector;
}

function detached(Type) {
  const vector = Type.from(GOOD);
  structuredClone(vector.buffer, { transfer: [vector.buffer] });
  return vector;
}

/** A Float32Array on a buffer that has become too short for it. */
function shrunk() {
  const buffer = new ArrayBuffer(DIMENSIONS * 4, { maxByteLength: DIMENSIONS * 4 });
  const vector = new Float32Array(buffer, 0, DIMENSIONS);
  buffer.resize(100);
  return vector;
}

/** A proxy that is revoked while its components are read. */
function revokedAt(index) {
  const { proxy, revoke } = Proxy.revocable([...GOOD], {
    get(target, key) {
      if (key === String(index)) revoke();
      return target[key];
    },
  });
  return proxy;
}

/** Malformed vectors: their class of errors, and the message, in which `$` stands for the name of the parameter. */
const MALFORMED = [
  ...[MISSING, ...NOT_OBJECTS].map(([name, vector, found]) => [
    ...[name, () => vector, TypeError, `$ must be an array of numbers, got ${found}`],
  ]),
  ...[
    ['no components', () => [], 0],
    ['one component less', () => GOOD.slice(1), LAST],
    ['one component more', () => [...GOOD, 1], 385],
    ['a Float32Array of 3', () => new Float32Array(3), 3],
    ['a Float64Array of 385', () => new Float64Array(385), 385],
    ['a Buffer of 3', () => Buffer.from([1, 2, 3]), 3],
    ['a BigInt64Array of 3', () => new BigInt64Array(3), 3],
    ['a part of a Float32Array', () => new Float32Array(DIMENSIONS).subarray(1), LAST],
    ['a shared Float32Array of 3', () => shared(Float32Array, [1, 2, 3]), 3],
    ...[Float32Array, Float64Array, Int16Array].map((Type) => [
      `a detached ${Type.name}`,
      () => detached(Type),
      0,
    ]),
    ['a Float32Array on a buffer that shrank', shrunk, 0],
    ['a boxed string of 3', () => new String('abc'), 3],
    ['four billion holes', () => new Array(2 ** 32 - 1), 2 ** 32 - 1],
    ...[0, -1, Number.NaN, 1 / 0, 384.5, 2 ** 32 + DIMENSIONS, 2 ** 53].map((length) => [
      ...[`length: ${length}`, () => arrayLike({ length }), length],
    ]),
  ].map(([name, make, found]) => [name, make, RangeError, `Expected 384 dimensions, got ${found}`]),
  ...[MISSING, ...NOT_NUMBERS].map(([name, length, found]) => [
    ...[
      `${name} as length`,
      () => arrayLike({ length }),
      TypeError,
      `$.length must be a number, got ${found}`,
    ],
  ]),
  ...[Array, Float32Array, Float64Array].flatMap((Type) =>
    [0, 191, LAST].flatMap((index) =>
      NOT_FINITE.map((value) => [
        `${value} at ${index} of a ${Type.name}`,
        () => Type.from(withComponent(index, value)),
        RangeError,
        `$[${index}] must be a finite number, got ${value}`,
      ]),
    ),
  ),
  [
    'NaN in shared memory',
    () => shared(Float32Array, withComponent(200, Number.NaN)),
    RangeError,
    '$[200] must be a finite number, got NaN',
  ],
  ...[
    ...[MISSING, ...NOT_NUMBERS].map(([name, value, found]) => [
      ...[name, () => withComponent(LAST, value), LAST, found],
    ]),
    ['a hole', () => Object.assign(new Array(DIMENSIONS), GOOD.slice(0, 7)), 7, 'undefined'],
    ['a boxed string', () => new String('1'.repeat(DIMENSIONS)), 0, 'string'],
    ['a BigInt64Array', () => new BigInt64Array(DIMENSIONS), 0, 'bigint'],
  ].map(([name, make, index, found]) => [
    ...[`${name} at ${index}`, make, TypeError, `$[${index}] must be a number, got ${found}`],
  ]),
  ...[
    ...THROWN.flatMap(([name, thrown]) => [
      ...[
        ['length', () => throwingGetter(arrayLike(), 'length', thrown), '.length'],
        ['component', () => throwingGetter([...GOOD], '5', thrown), '[5]'],
      ].map(([what, ...row]) => [`a ${what} that throws ${name}`, ...row, same(thrown)]),
    ]),
    ['a proxy that throws', () => throwingProxy([...GOOD], hostile), '.length', same(hostile)],
    ['a revoked proxy of an array', () => revoked(GOOD), '.length', isTypeError],
    ['a revoked proxy of a Float32Array', () => revoked(Float32Array.from(GOOD)), '.length', isTypeError],
    ['a proxy that is revoked halfway', () => revokedAt(99), '[100]', isTypeError],
  ].map(([name, make, place, isCause]) => [
    ...[name, make, TypeError, `$${place} could not be read: it threw`, isCause],
  ]),
];

/** Each takes a malformed vector, alone or after a good one, under a name. */
const METHODS = [
  ['add', 'vector', (cache, vector) => cache.add(vector, 'label')],
  ['maxCosineSimilarity', 'query', (cache, query) => cache.maxCosineSimilarity(query)],
  ['nearest', 'query', (cache, query) => cache.nearest(query, 2)],
  ['addBatch', 'vectors[1]', (cache, vector) => cache.addBatch([GOOD, vector])],
  ['maxCosineSimilarities', 'queries[1]', (cache, query) => cache.maxCosineSimilarities([PROBE, query])],
];

describe.each(METHODS)('%s', (_method, parameter, call) => {
  test.each(MALFORMED)('refuses %s', (...row) => {
    const [, make, Class, pattern, isCause] = row;
    const cache = new VectorCache({ maxElements: 1 });
    cache.add(PROBE);
    // The SDK's text names no vector, so one of a list is put before it.
    const isUnnamed = parameter.endsWith(']') && pattern.startsWith('Expected');
    const message = (isUnnamed ? `$: ${pattern}` : pattern).replace('$', parameter);
    const error = thrownBy(() => call(cache, make()));
    expectError(error, [Class, 'ERR_INVALID_VECTOR', message, isCause]);
    // Nothing is displaced from the full cache.
    expect(cache.size).toBe(1);
    expect(cache.maxCosineSimilarity(PROBE)).toBeCloseTo(1, 6);
  });
});

/** Malformed lists of vectors, queries or labels. */
const LISTS = [
  ...NOT_OBJECTS.map(([name, list, found]) => [name, list, TypeError, `$ must be an array, got ${found}`]),
  ...[MISSING, ...NOT_NUMBERS].map(([name, length, found]) => [
    ...[`${name} as length`, { length, 0: GOOD }, TypeError, `$.length must be a number, got ${found}`],
  ]),
  ...NOT_WHOLE.map((length) => [
    `length: ${length}`,
    { length, 0: GOOD },
    RangeError,
    `$.length must be a safe integer of at least 0, got ${length}`,
  ]),
  ...THROWN.flatMap(([name, thrown]) =>
    ['length', '0'].map((key) => [
      `a ${key} that throws ${name}`,
      throwingGetter({ length: 1 }, key, thrown),
      TypeError,
      `$${key === '0' ? '[0]' : '.length'} could not be read: it threw`,
      same(thrown),
    ]),
  ),
];

describe.each([
  ['addBatch', 'vectors', 'ERR_INVALID_VECTOR', (list) => [list]],
  ['maxCosineSimilarities', 'queries', 'ERR_INVALID_VECTOR', (list) => [list]],
  ['addBatch', 'labels', 'ERR_INVALID_LABEL', (list) => [[GOOD], list]],
])('%s', (method, parameter, code, argumentsOf) => {
  test.each(LISTS)(`refuses ${parameter} that are %s`, (...row) => {
    const [, list, Class, pattern, isCause] = row;
    const cache = new VectorCache();
    const error = thrownBy(() => cache[method](...argumentsOf(list)));
    expectError(error, [Class, code, pattern.replace('$', parameter), isCause]);
    expect(cache.size).toBe(0);
  });
});

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
  ['a proxy of a Float32Array', () => claiming(Float32Array.from(GOOD), DIMENSIONS)],
  ...TYPES.map((Type) => [`a ${Type.name}`, () => Type.from(SCALED)]),
  ...[Floats, Doubles].map((Type) => [`a subclass, ${Type.name}`, () => Type.from(GOOD)]),
  ...[Float32Array, Float64Array, Int8Array, Floats].map((Type) => [
    ...[`a ${Type.name} in shared memory`, () => shared(Type, SCALED)],
  ]),
  ['a Buffer', () => Buffer.from(Uint8Array.from(SCALED))],
  ['a Float32Array of another realm', () => vm.runInNewContext(`new Float32Array([${GOOD}])`)],
  ['a part of a Float32Array', () => new Float32Array([9, 9, ...GOOD, 9]).subarray(2, 386)],
  ['a part of a Float64Array', () => new Float64Array([9, ...GOOD, 9]).subarray(1, 385)],
  ['a subclass of its own making', () => new Labelled(new ArrayBuffer(DIMENSIONS * 4), 'a')],
  ['the same in shared memory', () => new Labelled(new SharedArrayBuffer(DIMENSIONS * 4), 'a')],
  ['a Float32Array whose buffer throws', () => throwingGetter(Float32Array.from(GOOD), 'buffer', hostile)],
  ['its own slice, shared', () => Object.assign(shared(Float32Array, SCALED), { slice: () => [] })],
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
  expect(asked.maxCosineSimilarities([vector])).toEqual([found]);
  expect(asked.nearest(vector)[0].similarity).toBe(found);
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
  expect([vector.length, cache.maxCosineSimilarity([1, 0])]).toEqual([0, 1]);
});
