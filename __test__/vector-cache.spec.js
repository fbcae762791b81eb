'use strict';

// A `VectorCache`: its options, and the vectors that it takes and refuses. What it finds is tested in crates/index (vectors/tests.rs).

const { setTimeout: sleep } = require('node:timers/promises');
const vm = require('node:vm');

const { VectorCache, _getLocalCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { claiming, hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { expectError, same, thrownBy } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');

const axis = (index, dimensions = 3) => Array.from({ length: dimensions }, (_, i) => (i === index ? 1 : 0));

test('VectorCache has the surface of the SDK', () => {
  const names = Object.getOwnPropertyNames(VectorCache.prototype);
  const sdk = ['add', 'clear', 'constructor', 'evictExpired', 'maxCosineSimilarity', 'size'];
  expect(names.sort()).toEqual(sdk);
  expect(() => VectorCache()).toThrow(TypeError);
  expect(() => VectorCache.prototype.add.call({}, [1])).toThrow(TypeError);
});

const INVALID = 'ERR_INVALID_OPTION';
const WHOLE = 'a safe integer of at least 0';

test.each([
  ['null', null, TypeError, 'options must be an object, got null'],
  ['an array', [1000, 384], TypeError, 'options must be an object, got array'],
  ['a function', () => {}, TypeError, 'options must be an object, got function'],
  ['maxElements: "10"', { maxElements: '10' }, TypeError, 'options.maxElements must be a number, got string'],
  ['dimensions: null', { dimensions: null }, TypeError, 'options.dimensions must be a number, got null'],
  ['ttlMs: a Date', { ttlMs: new Date(10) }, TypeError, 'options.ttlMs must be a number, got object'],
  ...[-1, 0.5, 2 ** 53, Number.NaN, 1 / 0].map((value) => [
    ...[`maxElements: ${value}`, { maxElements: value }, RangeError],
    `options.maxElements must be ${WHOLE}, got ${value}`,
  ]),
  ...[0, -1, 1.5].map((value) => [
    ...[`dimensions: ${value}`, { dimensions: value }, RangeError],
    `options.dimensions must be a safe integer of at least 1, got ${value}`,
  ]),
  ...[-1, -1 / 0, Number.NaN].map((value) => [
    ...[`ttlMs: ${value}`, { ttlMs: value }, RangeError],
    `options.ttlMs must be a number of at least 0, got ${value}`,
  ]),
  [
    'a getter that throws',
    throwingGetter({}, 'ttlMs', 7),
    TypeError,
    'options.ttlMs could not be read: it threw',
    same(7),
  ],
  [
    'a proxy that throws',
    throwingProxy({}, hostile),
    TypeError,
    /^options\.\w+ could not be read/,
    same(hostile),
  ],
  [
    'a revoked proxy',
    revoked({}),
    TypeError,
    /^options could not be read/,
    (cause) => cause.name === 'TypeError',
  ],
  [
    'an unknown option',
    { maxelements: 3 },
    TypeError,
    /^options\.maxelements is not an option of this call; its/,
  ],
])('new VectorCache refuses %s', (...row) => {
  const [, options, Class, message, isCause] = row;
  expectError(
    thrownBy(() => new VectorCache(options)),
    [Class, INVALID, message, isCause],
  );
});

describe('new VectorCache accepts', () => {
  class Options {}
  Object.defineProperty(Options.prototype, 'maxElements', { get: () => 2 });
  Object.defineProperty(Options.prototype, 'dimensions', { get: () => 3 });
  const TWO = { maxElements: 2, dimensions: 3 };

  test.each([
    ['an infinite ttlMs', { ...TWO, ttlMs: 1 / 0 }],
    ['the largest ttlMs', { ...TWO, ttlMs: Number.MAX_VALUE }],
    ['a fraction as ttlMs', { ...TWO, ttlMs: 60_000.5 }],
    ['options that are undefined, and symbols', { ...TWO, maxelements: undefined, [Symbol('s')]: null }],
    ['options without a prototype', Object.assign(Object.create(null), TWO)],
    ['inherited options', Object.create(TWO)],
    ['frozen options', Object.freeze({ ...TWO })],
    ['an instance with getters', new Options()],
    ['a proxy', new Proxy(TWO, {})],
    ['a Map that has the fields', Object.assign(new Map(), TWO)],
    ['options of another realm', vm.runInNewContext('({ maxElements: 2, dimensions: 3 })')],
  ])('%s', (_, options) => {
    const cache = new VectorCache(options);
    cache.add([1, 0, 0]);
    cache.add([0, 1, 0]);
    cache.evictExpired();
    expect([cache.size, cache.maxCosineSimilarity([1, 0, 0])]).toEqual([2, 1]);
    cache.add([0, 0, 1]);
    expect([cache.size, cache.maxCosineSimilarity([1, 0, 0])]).toEqual([2, 0]);
    expect(thrownBy(() => cache.add([1, 0])).message).toBe('Expected 3 dimensions, got 2');
  });

  test.each([
    ['no options', []],
    ['undefined', [undefined]],
    ['an empty object', [{}]],
    ['undefined options', [{ maxElements: undefined, dimensions: undefined, ttlMs: undefined }]],
  ])('%s, which means the defaults', (_, parameters) => {
    const cache = new VectorCache(...parameters);
    for (let index = 0; index < 1001; index++) cache.add(new Float32Array(384).fill(1));
    expect(cache.size).toBe(1000);
  });

  test.each([{ maxElements: 0 }, { maxElements: -0 }, { ttlMs: 0 }])('%p, which keeps nothing', (options) => {
    const cache = new VectorCache({ dimensions: 2, ...options });
    cache.add([1, 0]);
    cache.evictExpired();
    expect([cache.size, cache.maxCosineSimilarity([1, 0])]).toEqual([0, 0]);
  });

  test('huge limits, without taking memory for them', () => {
    const most = Number.MAX_SAFE_INTEGER;
    const before = process.memoryUsage().rss;
    const caches = Array.from({ length: 100 }, () => new VectorCache({ maxElements: most }));
    const wide = Array.from({ length: 100 }, () => new VectorCache({ maxElements: most, dimensions: most }));
    for (const cache of caches) cache.add(new Float32Array(384).fill(1));
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
    expect(caches[99].maxCosineSimilarity(new Float32Array(384).fill(2))).toBeCloseTo(1, 6);
    expect(wide[99].size).toBe(0);
  });
});

test.each(['add', 'maxCosineSimilarity'])('%s of a cache of huge dimensions refuses', (method) => {
  const length = Number.MAX_SAFE_INTEGER;
  const cache = new VectorCache({ dimensions: length, maxElements: 1 });
  for (const vector of [[1, 2, 3], new Float32Array(3), new Uint8Array(3), { length: 3 }]) {
    const error = thrownBy(() => cache[method](vector));
    expectError(error, [RangeError, 'ERR_INVALID_VECTOR', `Expected ${length} dimensions, got 3`]);
  }
  const error = thrownBy(() => cache[method]({ length, 0: 1 }));
  expect(error).toMatchObject({ name: 'RangeError', code: 'ERR_OUT_OF_MEMORY' });
  expect(error.message).toContain(String(length));
  expect(cache.size).toBe(0);
});

const DIMENSIONS = 384;
const LAST = DIMENSIONS - 1;
const GOOD = Array.from({ length: DIMENSIONS }, (_, index) => Math.sin(index + 1));
/** Some direction that no other vector here has. */
const PROBE = Float64Array.from(GOOD, (_, index) => Math.cos(index * index));

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
  ...[
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a number', 1000, '1000'],
    ['a string', 'a'.repeat(DIMENSIONS), 'string'],
  ].map(([name, vector, found]) => [
    ...[name, () => vector, TypeError, `$ must be an array of numbers, got ${found}`],
  ]),
  ...[
    ['no components', () => [], 0],
    ['one component more', () => [...GOOD, 1], 385],
    ['a Float32Array of 3', () => new Float32Array(3), 3],
    ['a Float64Array of 385', () => new Float64Array(385), 385],
    ['a Buffer of 3', () => Buffer.from([1, 2, 3]), 3],
    ['a part of a Float32Array', () => new Float32Array(DIMENSIONS).subarray(1), LAST],
    ['a shared Float32Array of 3', () => shared(Float32Array, [1, 2, 3]), 3],
    ['a detached Float32Array', () => detached(Float32Array), 0],
    ['a detached Int16Array', () => detached(Int16Array), 0],
    ['a Float32Array on a buffer that shrank', shrunk, 0],
    ['four billion holes', () => new Array(2 ** 32 - 1), 2 ** 32 - 1],
    ...[-1, Number.NaN, 384.5, 2 ** 53].map((length) => [
      ...[`length: ${length}`, () => arrayLike({ length }), length],
    ]),
  ].map(([name, make, found]) => [name, make, RangeError, `Expected 384 dimensions, got ${found}`]),
  ['no length', () => ({ 0: 1 }), TypeError, '$.length must be a number, got undefined'],
  [
    'a string as length',
    () => arrayLike({ length: '384' }),
    TypeError,
    '$.length must be a number, got string',
  ],
  ...[Array, Float32Array, Float64Array].flatMap((Type) =>
    [Number.NaN, 1 / 0, -1 / 0].map((value, at) => [
      `${value} in a ${Type.name}`,
      () => Type.from(withComponent([0, 191, LAST][at], value)),
      RangeError,
      `$[${[0, 191, LAST][at]}] must be a finite number, got ${value}`,
    ]),
  ),
  [
    'NaN in shared memory',
    () => shared(Float32Array, withComponent(200, Number.NaN)),
    RangeError,
    '$[200] must be a finite number, got NaN',
  ],
  ...[
    ['a string', () => withComponent(LAST, '1'), LAST, 'string'],
    ['null', () => withComponent(LAST, null), LAST, 'null'],
    ['a hole', () => Object.assign(new Array(DIMENSIONS), GOOD.slice(0, 7)), 7, 'undefined'],
    ['a BigInt64Array', () => new BigInt64Array(DIMENSIONS), 0, 'bigint'],
  ].map(([name, make, index, found]) => [
    ...[`${name} at ${index}`, make, TypeError, `$[${index}] must be a number, got ${found}`],
  ]),
  ...[
    ['a component that throws', () => throwingGetter([...GOOD], '5', hostile), '[5]', same(hostile)],
    ['a proxy that throws', () => throwingProxy([...GOOD], hostile), '.length', same(hostile)],
    ['a revoked proxy of a Float32Array', () => revoked(Float32Array.from(GOOD)), '.length', isTypeError],
    ['a proxy that is revoked halfway', () => revokedAt(99), '[100]', isTypeError],
  ].map(([name, make, place, isCause]) => [
    ...[name, make, TypeError, `$${place} could not be read: it threw`, isCause],
  ]),
];

describe.each([
  ['add', 'vector', (cache, vector) => cache.add(vector)],
  ['maxCosineSimilarity', 'query', (cache, query) => cache.maxCosineSimilarity(query)],
])('%s', (_method, parameter, call) => {
  test.each(MALFORMED)('refuses %s', (...row) => {
    const [, make, Class, pattern, isCause] = row;
    const cache = new VectorCache({ maxElements: 1 });
    cache.add(PROBE);
    const error = thrownBy(() => call(cache, make()));
    expectError(error, [Class, 'ERR_INVALID_VECTOR', pattern.replace('$', parameter), isCause]);
    // Nothing is displaced from the full cache.
    expect(cache.size).toBe(1);
    expect(cache.maxCosineSimilarity(PROBE)).toBeCloseTo(1, 6);
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

  const asked = new VectorCache();
  expect(asked.maxCosineSimilarity(vector)).toBe(0);
  asked.add(PROBE);
  expect(asked.maxCosineSimilarity(vector)).toBeCloseTo(similarity, 6);
  expect(asked.size).toBe(1);
});

test('VectorCache is garbage in time', async () => {
  const { result } = await runForResult(
    `let most = 0;
    for (let round = 0; round < 25; round++) {
      const cache = new kp.VectorCache({ maxElements: 40_000 });
      for (let count = 0; count < 40_000; count++) cache.add(new Float32Array(384).fill(1));
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
  expect([cache.size, cache.maxCosineSimilarity([1, 0]), cache.maxCosineSimilarity([0, 1])]).toEqual([
    2, 1, 1,
  ]);
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
