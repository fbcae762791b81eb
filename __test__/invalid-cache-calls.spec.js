'use strict';

// Which vectors and lists the methods of a `VectorCache` refuse, and with which error.

const { VectorCache } = require('..');
const { hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
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
      [
        `a length that throws ${name}`,
        () => throwingGetter(arrayLike(), 'length', thrown),
        '.length',
        same(thrown),
      ],
      [`a component that throws ${name}`, () => throwingGetter([...GOOD], '5', thrown), '[5]', same(thrown)],
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
    expectError(
      thrownBy(() => call(cache, make())),
      [Class, 'ERR_INVALID_VECTOR', message, isCause],
    );
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
  ['addBatch', 'vectors', 'ERR_INVALID_VECTOR', (cache, list) => cache.addBatch(list)],
  [
    'maxCosineSimilarities',
    'queries',
    'ERR_INVALID_VECTOR',
    (cache, list) => cache.maxCosineSimilarities(list),
  ],
  ['addBatch', 'labels', 'ERR_INVALID_LABEL', (cache, list) => cache.addBatch([GOOD], list)],
])('%s', (_method, parameter, code, call) => {
  test.each(LISTS)(`refuses ${parameter} that are %s`, (...row) => {
    const [, list, Class, pattern, isCause] = row;
    const cache = new VectorCache();
    const message = pattern.replace('$', parameter);
    expectError(
      thrownBy(() => call(cache, list)),
      [Class, code, message, isCause],
    );
    expect(cache.size).toBe(0);
  });
});
