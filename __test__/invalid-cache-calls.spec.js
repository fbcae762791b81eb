'use strict';

const vm = require('node:vm');

const { VectorCache, _getLocalCache } = require('..');
const { cosineSimilarity } = require('./oracle/score.js');
const { hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');

/** Calls `act`, which must throw, and returns what it threw. */
function thrownBy(act) {
  let result;
  try {
    result = act();
  } catch (error) {
    return error;
  }
  throw new Error(`nothing was thrown; the result is ${typeof result}`);
}

/** Checks an error. `cause` is undefined where there must be none. */
function expectError(error, { Class, code, message, cause }) {
  if (typeof message === 'string') expect(error.message).toBe(message);
  else expect(error.message).toMatch(message);
  expect(error).toBeInstanceOf(Class);
  expect(error.code).toBe(code);
  if (cause) expect(cause(error.cause)).toBe(true);
  else expect(error.cause).toBe(undefined);
}

const close = (a, b) => expect(Math.abs(a - b)).toBeLessThan(1e-6);

const THROWN = [
  ['an error', new Error('thrown')],
  ['null', null],
  ['undefined', undefined],
  ['a string', 'thrown'],
  ['a symbol', Symbol('thrown')],
  ['an object whose toString throws', hostile],
  ['a revoked proxy', revoked({})],
];

const same = (thrown) => (cause) => Object.is(cause, thrown);
const isTypeError = (cause) => cause?.name === 'TypeError';

describe('new VectorCache refuses', () => {
  const OPTION = { Class: TypeError, code: 'ERR_INVALID_OPTION' };

  const NO_OBJECTS = [
    ['null', null, 'null'],
    ['a number', 1000, '1000'],
    ['NaN', Number.NaN, 'NaN'],
    ['a string', 'options', 'string'],
    ['a boolean', true, 'boolean'],
    ['a symbol', Symbol('options'), 'symbol'],
    ['a bigint', 1000n, 'bigint'],
    ['a function', () => {}, 'function'],
    ['an array', [1000, 384], 'array'],
  ].map(([name, options, found]) => ({
    ...OPTION,
    name: `${name} as options`,
    options,
    message: `options must be an object, got ${found}`,
  }));

  const WRONG_TYPES = [
    ['a string', () => '10', 'string'],
    ['an empty string', () => '', 'string'],
    ['null', () => null, 'null'],
    ['a bigint', () => 10n, 'bigint'],
    ['a boolean', () => true, 'boolean'],
    ['an object', () => ({}), 'object'],
    ['an object with valueOf', () => ({ valueOf: () => 10 }), 'object'],
    ['a boxed number', () => new Number(10), 'object'],
    ['a Date', () => new Date(10), 'object'],
    ['an array', () => [10], 'array'],
    ['a symbol', () => Symbol('s'), 'symbol'],
    ['a function', () => () => 10, 'function'],
    ['a revoked proxy', () => revoked({}), 'object'],
    ['a revoked proxy of an array', () => revoked([]), '(object|array)'],
  ].flatMap(([name, value, found]) =>
    ['maxElements', 'dimensions', 'ttlMs'].map((option) => ({
      ...OPTION,
      name: `${name} as ${option}`,
      options: { [option]: value() },
      message: new RegExp(`^options\\.${option} must be a number, got ${found}$`),
    })),
  );

  const integers = [-1, -Number.MIN_VALUE, 0.5, 1.5, 2 ** 53, -(2 ** 53), 1e300, Number.NaN, 1 / 0, -1 / 0];
  const WRONG_NUMBERS = [
    ...integers.map((value) => ['maxElements', value, 'a safe integer of at least 0']),
    ...[0, -0, ...integers].map((value) => ['dimensions', value, 'a safe integer of at least 1']),
    ...[-1, -Number.MIN_VALUE, -0.5, -1 / 0, Number.NaN].map((value) => [
      'ttlMs',
      value,
      'a number of at least 0',
    ]),
  ].map(([option, value, expected]) => ({
    Class: RangeError,
    code: 'ERR_INVALID_OPTION',
    name: `${Object.is(value, -0) ? '-0' : value} as ${option}`,
    options: { [option]: value },
    message: `options.${option} must be ${expected}, got ${value}`,
  }));

  const THROWING = [
    ...['maxElements', 'dimensions', 'ttlMs'].flatMap((option) =>
      THROWN.map(([name, thrown]) => ({
        ...OPTION,
        name: `${option} that throws ${name}`,
        options: throwingGetter({}, option, thrown),
        message: `options.${option} could not be read: it threw`,
        cause: same(thrown),
      })),
    ),
    {
      ...OPTION,
      name: 'a proxy that throws',
      options: throwingProxy({}, hostile),
      message: /^options\.\w+ could not be read: it threw$/,
      cause: same(hostile),
    },
    {
      ...OPTION,
      name: 'a revoked proxy as options',
      options: revoked({}),
      message: /^options\b/,
      cause: () => true,
    },
    {
      ...OPTION,
      name: 'a revoked proxy of an array',
      options: revoked([]),
      message: /^options\b/,
      cause: () => true,
    },
  ];

  const UNKNOWN = [
    {
      ...OPTION,
      name: 'an unknown option',
      options: { maxelements: 3 },
      message:
        'options.maxelements is not an option of this call; its options are maxElements, dimensions, ttlMs',
    },
  ];

  const ROWS = [...NO_OBJECTS, ...WRONG_TYPES, ...WRONG_NUMBERS, ...THROWING, ...UNKNOWN];

  for (const row of ROWS) {
    test(row.name, () => {
      expectError(
        thrownBy(() => new VectorCache(row.options)),
        row,
      );
      // What is refused has no lasting effect.
      const cache = new VectorCache({ dimensions: 2 });
      cache.add([1, 0]);
      expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
    });
  }

  test('a call without new', () => {
    expect(thrownBy(() => VectorCache({}))).toBeInstanceOf(TypeError);
  });
});

describe('new VectorCache accepts', () => {
  class Options {
    get maxElements() {
      return 2;
    }
    get dimensions() {
      return 3;
    }
    get ttlMs() {
      return 60_000;
    }
  }

  const THREE = { maxElements: 2, dimensions: 3 };
  const ROWS = [
    ['three dimensions', THREE],
    ['an infinite ttlMs', { ...THREE, ttlMs: Number.POSITIVE_INFINITY }],
    ['the largest ttlMs', { ...THREE, ttlMs: Number.MAX_VALUE }],
    ['a fraction as ttlMs', { ...THREE, ttlMs: 60_000.5 }],
    ['ttlMs: undefined', { ...THREE, ttlMs: undefined }],
    ['options that are undefined, and symbols', { ...THREE, maxelements: undefined, [Symbol('s')]: null }],
    ['options without a prototype', Object.assign(Object.create(null), THREE)],
    ['inherited options', Object.create(THREE)],
    ['frozen options', Object.freeze({ ...THREE })],
    ['an instance with getters', new Options()],
    ['a proxy', new Proxy(THREE, {})],
    ['a Map that has the fields', Object.assign(new Map(), THREE)],
    ['options of another realm', vm.runInNewContext('({ maxElements: 2, dimensions: 3 })')],
  ];

  for (const [name, options] of ROWS) {
    test(name, () => {
      const cache = new VectorCache(options);
      cache.add([1, 0, 0]);
      cache.add([0, 1, 0]);
      cache.evictExpired();
      expect(cache.size).toBe(2);
      expect(cache.maxCosineSimilarity([1, 0, 0])).toBe(1);
      cache.add([0, 0, 1]);
      expect(cache.size).toBe(2);
      expect(cache.maxCosineSimilarity([1, 0, 0])).toBe(0);
      const error = thrownBy(() => cache.add([1, 0]));
      expect(error.message).toBe('Expected 3 dimensions, got 2');
    });
  }

  const DEFAULTS = [
    ['no options', []],
    ['undefined', [undefined]],
    ['an empty object', [{}]],
    ['undefined options', [{ maxElements: undefined, dimensions: undefined, ttlMs: undefined }]],
  ];

  for (const [name, parameters] of DEFAULTS) {
    test(`${name}, which means the defaults`, () => {
      const cache = new VectorCache(...parameters);
      const vector = new Float32Array(384).fill(1);
      for (let index = 0; index < 1001; index++) cache.add(vector);
      expect(cache.size).toBe(1000);
      const error = thrownBy(() => cache.add(new Float32Array(3)));
      expect(error.message).toBe('Expected 384 dimensions, got 3');
    });
  }

  for (const maxElements of [0, -0]) {
    test(`maxElements: ${Object.is(maxElements, -0) ? '-0' : '0'}, which stores nothing`, () => {
      const cache = new VectorCache({ maxElements, dimensions: 2 });
      for (let index = 0; index < 3; index++) cache.add([1, 0]);
      expect(cache.size).toBe(0);
      expect(cache.maxCosineSimilarity([1, 0])).toBe(0);
      cache.evictExpired();
      cache.clear();
      expect(cache.size).toBe(0);
    });
  }

  test('ttlMs: 0, with which nothing lives', () => {
    const cache = new VectorCache({ dimensions: 2, ttlMs: 0 });
    cache.add([1, 0]);
    expect(cache.size).toBe(0);
    expect(cache.maxCosineSimilarity([1, 0])).toBe(0);
  });

  test('a huge maxElements, without taking memory for it', () => {
    const before = process.memoryUsage().rss;
    const caches = Array.from(
      { length: 100 },
      () => new VectorCache({ maxElements: Number.MAX_SAFE_INTEGER }),
    );
    for (const cache of caches) {
      cache.add(new Float32Array(384).fill(1));
      expect(cache.size).toBe(1);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
    close(caches[99].maxCosineSimilarity(new Float32Array(384).fill(2)), 1);
  });
});

describe('a VectorCache of huge dimensions', () => {
  const HUGE = Number.MAX_SAFE_INTEGER;
  for (const method of ['add', 'maxCosineSimilarity', 'nearest']) {
    test(`${method} refuses honest short vectors`, () => {
      const cache = new VectorCache({ dimensions: HUGE });
      for (const vector of [
        [1, 2, 3],
        new Float32Array(3),
        new Float64Array(3),
        new Uint8Array(3),
        { length: 3 },
      ]) {
        expectError(
          thrownBy(() => cache[method](vector)),
          { Class: RangeError, code: 'ERR_INVALID_VECTOR', message: `Expected ${HUGE} dimensions, got 3` },
        );
      }
      expect(cache.size).toBe(0);
    });

    test(`${method} refuses a vector that claims as many`, () => {
      const cache = new VectorCache({ dimensions: HUGE, maxElements: 1 });
      for (const vector of [{ length: HUGE }, { length: HUGE, 0: 1 }]) {
        const error = thrownBy(() => cache[method](vector));
        expect(error).toBeInstanceOf(RangeError);
        expect(error.code).toBe('ERR_OUT_OF_MEMORY');
        expect(error.message).toContain(String(HUGE));
      }
      expect(cache.size).toBe(0);
      cache.clear();
      cache.evictExpired();
      expect(cache.size).toBe(0);
    });
  }

  test('is no burden before that', () => {
    const before = process.memoryUsage().rss;
    const caches = Array.from(
      { length: 100 },
      () => new VectorCache({ dimensions: HUGE, maxElements: HUGE }),
    );
    expect(caches.every((cache) => cache.size === 0)).toBe(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  });
});

/** A vector of 384 components, none of which is 0. */
function honest() {
  return Array.from({ length: 384 }, (_, index) => Math.sin(index + 1));
}

/** An honest vector but for one component. */
function withComponent(index, value) {
  const vector = honest();
  vector[index] = value;
  return vector;
}

function withHole(index) {
  const vector = honest();
  delete vector[index];
  return vector;
}

/** An honest vector that is no array, with the given fields replaced. */
function arrayLike(fields) {
  return Object.assign({ length: 384 }, honest(), fields);
}

function detached(Type) {
  const vector = Type.from(honest());
  structuredClone(vector.buffer, { transfer: [vector.buffer] });
  return vector;
}

/** A typed array on a buffer that became too short for it. */
function shrunk() {
  const buffer = new ArrayBuffer(384 * 4, { maxByteLength: 384 * 4 });
  const vector = new Float32Array(buffer, 0, 384);
  buffer.resize(100);
  return vector;
}

const canResize = typeof ArrayBuffer.prototype.resize === 'function';

/**
 * Malformed vectors for a cache of 384 dimensions. `message` takes the name of the parameter, because messages
 * name it.
 */
const MALFORMED = [
  ...[
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a number', 384, '384'],
    ['a string', 'abc', 'string'],
    ['a string of the right length', 'a'.repeat(384), 'string'],
    ['a string of digits', '1'.repeat(384), 'string'],
    ['a boolean', true, 'boolean'],
    ['a symbol', Symbol('vector'), 'symbol'],
    ['a bigint', 384n, 'bigint'],
    ['a function', () => {}, 'function'],
    ['a class', class Vector {}, 'function'],
  ].map(([name, vector, found]) => ({
    name,
    make: () => vector,
    Class: TypeError,
    message: (name) => `${name} must be an array of numbers, got ${found}`,
  })),

  ...[
    ['no components', () => [], 0],
    ['3 components', () => [1, 2, 3], 3],
    ['383 components', () => honest().slice(1), 383],
    ['385 components', () => [...honest(), 1], 385],
    ['a Float32Array of none', () => new Float32Array(0), 0],
    ['a Float32Array of 3', () => new Float32Array(3), 3],
    ['a Float32Array of 385', () => new Float32Array(385), 385],
    ['a Float64Array of 383', () => new Float64Array(383), 383],
    ['an Int8Array of 3', () => new Int8Array(3), 3],
    ['a Buffer of 3', () => Buffer.from([1, 2, 3]), 3],
    ['a BigInt64Array of 3', () => new BigInt64Array(3), 3],
    ['a part of a Float32Array', () => new Float32Array(384).subarray(1), 383],
    ['a shared Float32Array of 3', () => new Float32Array(new SharedArrayBuffer(12)), 3],
    ['a detached Float32Array', () => detached(Float32Array), 0],
    ['a detached Float64Array', () => detached(Float64Array), 0],
    ['a detached Int16Array', () => detached(Int16Array), 0],
    ...(canResize ? [['a Float32Array on a buffer that shrank', shrunk, 0]] : []),
    ['a boxed string of 3', () => new String('abc'), 3],
    ['length: 0', () => arrayLike({ length: 0 }), 0],
    ['length: -1', () => ({ length: -1 }), -1],
    ['length: NaN', () => ({ length: Number.NaN }), 'NaN'],
    ['length: Infinity', () => ({ length: 1 / 0 }), 'Infinity'],
    ['length: 384.5', () => arrayLike({ length: 384.5 }), 384.5],
    ['length: 2**40', () => ({ length: 2 ** 40 }), 2 ** 40],
    ['length: 2**32 + 384', () => arrayLike({ length: 2 ** 32 + 384 }), 2 ** 32 + 384],
    ['length: 2**53', () => ({ length: 2 ** 53 }), 2 ** 53],
    ['an array of four billion holes', () => new Array(2 ** 32 - 1), 2 ** 32 - 1],
  ].map(([name, make, found]) => ({
    name,
    make,
    Class: RangeError,
    message: () => `Expected 384 dimensions, got ${found}`,
  })),

  ...[
    ['an empty object', () => ({}), 'undefined'],
    ['a Map', () => new Map(honest().entries()), 'undefined'],
    ['a Set', () => new Set(honest()), 'undefined'],
    ['a Date', () => new Date(0), 'undefined'],
    ['a DataView', () => new DataView(new ArrayBuffer(384)), 'undefined'],
    ['an ArrayBuffer', () => new ArrayBuffer(384 * 4), 'undefined'],
    ['an iterator', () => honest()[Symbol.iterator](), 'undefined'],
    ['a promise', () => Promise.resolve(honest()), 'undefined'],
    ['a boxed number', () => new Number(384), 'undefined'],
    ['another cache', () => new VectorCache(), 'undefined'],
    ["length: '384'", () => arrayLike({ length: '384' }), 'string'],
    ["length: '3'", () => ({ length: '3' }), 'string'],
    ['length: null', () => arrayLike({ length: null }), 'null'],
    ['length: 384n', () => arrayLike({ length: 384n }), 'bigint'],
    ['length: true', () => ({ length: true }), 'boolean'],
    ['length: an object', () => arrayLike({ length: { valueOf: () => 384 } }), 'object'],
    ['length: a revoked proxy', () => arrayLike({ length: revoked({}) }), 'object'],
  ].map(([name, make, found]) => ({
    name,
    make,
    Class: TypeError,
    message: (name) => `${name}.length must be a number, got ${found}`,
  })),

  ...[0, 191, 383].flatMap((index) =>
    [Number.NaN, 1 / 0, -1 / 0].flatMap((value) =>
      [
        ['an array', (vector) => vector],
        ['a Float32Array', (vector) => Float32Array.from(vector)],
        ['a Float64Array', (vector) => Float64Array.from(vector)],
        ['an array-like object', (vector) => Object.assign({ length: 384 }, vector)],
      ].map(([name, convert]) => ({
        name: `${value} at ${index} of ${name}`,
        make: () => convert(withComponent(index, value)),
        Class: RangeError,
        message: (name) => `${name}[${index}] must be a finite number, got ${value}`,
      })),
    ),
  ),
  {
    name: 'NaN in shared memory',
    make: () => {
      const vector = new Float32Array(new SharedArrayBuffer(384 * 4));
      vector[200] = Number.NaN;
      return vector;
    },
    Class: RangeError,
    message: (name) => `${name}[200] must be a finite number, got NaN`,
  },

  ...[
    ['a string', () => 'a', 'string'],
    ['a number in a string', () => '0.5', 'string'],
    ['a bigint', () => 1n, 'bigint'],
    ['undefined', () => undefined, 'undefined'],
    ['null', () => null, 'null'],
    ['a boolean', () => true, 'boolean'],
    ['an object', () => ({ valueOf: () => 1 }), 'object'],
    ['an object whose valueOf throws', () => ({ valueOf: hostile.toString }), 'object'],
    ['a boxed number', () => new Number(1), 'object'],
    ['a Date', () => new Date(1), 'object'],
    ['an array', () => [1], 'array'],
    ['a symbol', () => Symbol('s'), 'symbol'],
    ['a function', () => () => 1, 'function'],
    ['a revoked proxy', () => revoked({}), 'object'],
  ].flatMap(([name, value, found]) =>
    [0, 191, 383].map((index) => ({
      name: `${name} at ${index}`,
      make: () => withComponent(index, value()),
      Class: TypeError,
      message: (name) => `${name}[${index}] must be a number, got ${found}`,
    })),
  ),
  ...[
    ['a hole first', () => withHole(0), 0, 'undefined'],
    ['a hole last', () => withHole(383), 383, 'undefined'],
    ['nothing but holes', () => new Array(384), 0, 'undefined'],
    ['an array-like object without components', () => ({ length: 384 }), 0, 'undefined'],
    ['a boxed string of 384', () => new String('1'.repeat(384)), 0, 'string'],
    ['a BigInt64Array', () => new BigInt64Array(384), 0, 'bigint'],
    ['a BigUint64Array', () => new BigUint64Array(384), 0, 'bigint'],
    ['nested arrays', () => honest().map((component) => [component]), 0, 'array'],
  ].map(([name, make, index, found]) => ({
    name,
    make,
    Class: TypeError,
    message: (name) => `${name}[${index}] must be a number, got ${found}`,
  })),

  ...THROWN.flatMap(([name, thrown]) => [
    {
      name: `a length that throws ${name}`,
      make: () => throwingGetter(arrayLike(), 'length', thrown),
      Class: TypeError,
      message: (name) => `${name}.length could not be read: it threw`,
      cause: same(thrown),
    },
    {
      name: `a component that throws ${name}`,
      make: () => throwingGetter(honest(), '5', thrown),
      Class: TypeError,
      message: (name) => `${name}[5] could not be read: it threw`,
      cause: same(thrown),
    },
  ]),
  {
    name: 'a proxy that throws',
    make: () => throwingProxy(honest(), hostile),
    Class: TypeError,
    message: (name) => `${name}.length could not be read: it threw`,
    cause: same(hostile),
  },
  {
    name: 'a revoked proxy',
    make: () => revoked(honest()),
    Class: TypeError,
    message: (name) => `${name}.length could not be read: it threw`,
    cause: isTypeError,
  },
  {
    name: 'a revoked proxy of a Float32Array',
    make: () => revoked(Float32Array.from(honest())),
    Class: TypeError,
    message: (name) => `${name}.length could not be read: it threw`,
    cause: isTypeError,
  },
  {
    name: 'a proxy that is revoked halfway',
    make: () => {
      const { proxy, revoke } = Proxy.revocable(honest(), {
        get(target, key) {
          if (key === '99') revoke();
          return target[key];
        },
      });
      return proxy;
    },
    Class: TypeError,
    message: (name) => `${name}[100] could not be read: it threw`,
    cause: isTypeError,
  },
];

/** Some direction that no other vector here has. */
const PROBE = Float64Array.from({ length: 384 }, (_, index) => Math.cos(index * index));

/** Each takes a malformed vector, alone or after a good one, and names it. */
const METHODS = [
  { method: 'add', name: 'vector', call: (cache, vector) => cache.add(vector) },
  { method: 'add with a label', name: 'vector', call: (cache, vector) => cache.add(vector, 'label') },
  { method: 'maxCosineSimilarity', name: 'query', call: (cache, query) => cache.maxCosineSimilarity(query) },
  { method: 'nearest', name: 'query', call: (cache, query) => cache.nearest(query, 2) },
  { method: 'addBatch', name: 'vectors[1]', call: (cache, vector) => cache.addBatch([honest(), vector]) },
  {
    method: 'maxCosineSimilarities',
    name: 'queries[1]',
    call: (cache, query) => cache.maxCosineSimilarities([PROBE, query]),
  },
];

/** That a cache of one vector, `PROBE`, is as good as new. */
function expectIntact(cache) {
  expect(cache.size).toBe(1);
  close(cache.maxCosineSimilarity(PROBE), 1);
  const good = honest();
  close(cache.maxCosineSimilarity(good), cosineSimilarity(good, PROBE));
  cache.add(good);
  expect(cache.size).toBe(2);
  close(cache.maxCosineSimilarity(good), 1);
  close(cache.maxCosineSimilarity(PROBE), 1);
}

for (const { method, name, call } of METHODS) {
  describe(`${method} refuses`, () => {
    const refuse = (act, row) => {
      const cache = new VectorCache();
      cache.add(PROBE);
      const error = thrownBy(() => act(cache));
      const message = row.message(name);
      // The SDK's text names no vector.
      const isUnnamed = name.endsWith(']') && message.startsWith('Expected');
      expectError(error, {
        ...row,
        code: 'ERR_INVALID_VECTOR',
        message: isUnnamed ? `${name}: ${message}` : message,
      });
      expectIntact(cache);
    };

    if (!name.endsWith(']')) {
      test('a call without an argument', () => {
        const row = MALFORMED.find(({ name }) => name === 'undefined');
        refuse((cache) => cache[method.split(' ')[0]](), row);
      });
    }

    for (const row of MALFORMED) {
      test(row.name, () => refuse((cache) => call(cache, row.make()), row));
    }
  });
}

/** Malformed lists of vectors or labels; `name` is that of the parameter. */
const LISTS = (name) => [
  ...[
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a number', 2, '2'],
    ['a string', 'ab', 'string'],
    ['a function', () => {}, 'function'],
    ['a symbol', Symbol('list'), 'symbol'],
  ].map(([title, list, found]) => [title, list, TypeError, `${name} must be an array, got ${found}`]),
  ...[
    ['an object without a length', {}, 'undefined'],
    ['a Set', new Set([[1, 0]]), 'undefined'],
    ['a length that is a string', { length: '1', 0: [1, 0] }, 'string'],
    ['a length that is a bigint', { length: 1n, 0: [1, 0] }, 'bigint'],
  ].map(([title, list, found]) => [title, list, TypeError, `${name}.length must be a number, got ${found}`]),
  ...[-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53].map((length) => [
    `length: ${length}`,
    { length, 0: [1, 0] },
    RangeError,
    `${name}.length must be a safe integer of at least 0, got ${length}`,
  ]),
  ...THROWN.map(([title, thrown]) => [
    `a length that throws ${title}`,
    throwingGetter({}, 'length', thrown),
    TypeError,
    `${name}.length could not be read: it threw`,
    same(thrown),
  ]),
  ['a revoked proxy', revoked([]), TypeError, `${name}.length could not be read: it threw`, isTypeError],
];

describe.each([
  ['addBatch', 'vectors', 'ERR_INVALID_VECTOR', (cache, list) => cache.addBatch(list)],
  [
    'maxCosineSimilarities',
    'queries',
    'ERR_INVALID_VECTOR',
    (cache, list) => cache.maxCosineSimilarities(list),
  ],
  ['addBatch', 'labels', 'ERR_INVALID_LABEL', (cache, list) => cache.addBatch([[1, 0]], list)],
])('%s refuses %s that are', (_method, name, code, call) => {
  // Labels may be left out.
  const rows = LISTS(name).filter(([title]) => name !== 'labels' || title !== 'undefined');
  for (const [title, list, Class, message, cause] of rows) {
    test(title, () => {
      const cache = new VectorCache({ dimensions: 2 });
      expectError(
        thrownBy(() => call(cache, list)),
        { Class, code, message, cause },
      );
      expect(cache.size).toBe(0);
    });
  }

  test.each(THROWN)('a list with an element that throws %s', (_title, thrown) => {
    const list = throwingGetter([[1, 0]], '0', thrown);
    const cache = new VectorCache({ dimensions: 2 });
    expectError(
      thrownBy(() => call(cache, list)),
      { Class: TypeError, code, message: `${name}[0] could not be read: it threw`, cause: same(thrown) },
    );
    expect(cache.size).toBe(0);
  });
});

describe('labels', () => {
  const NO_LABELS = [
    ['null', null, 'null'],
    ['a number', 7, '7'],
    ['a bigint', 7n, 'bigint'],
    ['a boolean', true, 'boolean'],
    ['a boxed string', new String('a'), 'object'],
    ['an object', { toString: () => 'a' }, 'object'],
    ['an object whose toString throws', hostile, 'object'],
    ['an array', ['a'], 'array'],
    ['a symbol', Symbol('a'), 'symbol'],
    ['a function', () => 'a', 'function'],
    ['a revoked proxy', revoked({}), 'object'],
  ];

  test.each(NO_LABELS)('%s is refused', (_title, label, found) => {
    const cache = new VectorCache({ dimensions: 2 });
    const refused = { Class: TypeError, code: 'ERR_INVALID_LABEL' };
    expectError(
      thrownBy(() => cache.add([1, 0], label)),
      { ...refused, message: `label must be a string, got ${found}` },
    );
    expectError(
      thrownBy(() =>
        cache.addBatch(
          [
            [1, 0],
            [0, 1],
          ],
          ['a', label],
        ),
      ),
      { ...refused, message: `labels[1] must be a string, got ${found}` },
    );
    expect(cache.size).toBe(0);
  });

  test.each([
    ['ASCII', 'a'.repeat(1024), 'a'],
    ['two bytes each', '\u00e9'.repeat(512), 'a'],
    ['four bytes each', '\u{1f980}'.repeat(256), 'a'],
    ['lone surrogates', '\ud800'.repeat(341), 'ab'],
  ])('may be 1,024 bytes long and no longer: %s', (_title, longest, more) => {
    const cache = new VectorCache({ dimensions: 2 });
    cache.add([1, 0], longest);
    expect(cache.nearest([1, 0])[0].label).toBe(longest.replaceAll('\ud800', '\ufffd'));
    expectError(
      thrownBy(() => cache.add([1, 0], longest + more)),
      {
        Class: RangeError,
        code: 'ERR_INVALID_LABEL',
        message: 'label must be at most 1024 bytes of UTF-8, got 1025',
      },
    );
    expectError(
      thrownBy(() => cache.addBatch([[1, 0]], [longest + more])),
      {
        Class: RangeError,
        code: 'ERR_INVALID_LABEL',
        message: 'labels[0] must be at most 1024 bytes of UTF-8, got 1025',
      },
    );
    expect(cache.size).toBe(1);
  });

  test.each([
    [[], 1],
    [['a', 'b'], 1],
    [new Array(3), 2],
  ])('of a batch must be as many as the vectors', (labels, count) => {
    const cache = new VectorCache({ dimensions: 2 });
    const vectors = new Array(count).fill([1, 0]);
    expectError(
      thrownBy(() => cache.addBatch(vectors, labels)),
      {
        Class: RangeError,
        code: 'ERR_INVALID_LABEL',
        message: `labels must be as many as vectors: expected ${count}, got ${labels.length}`,
      },
    );
    expect(cache.size).toBe(0);
  });
});

describe('nearest refuses as k', () => {
  test.each([
    ['null', null, TypeError, 'a number, got null'],
    ['a string', '1', TypeError, 'a number, got string'],
    ['a bigint', 1n, TypeError, 'a number, got bigint'],
    ['an object', { valueOf: () => 1 }, TypeError, 'a number, got object'],
    ['-1', -1, RangeError, 'a safe integer of at least 0, got -1'],
    ['0.5', 0.5, RangeError, 'a safe integer of at least 0, got 0.5'],
    ['NaN', Number.NaN, RangeError, 'a safe integer of at least 0, got NaN'],
    ['Infinity', 1 / 0, RangeError, 'a safe integer of at least 0, got Infinity'],
    ['2**53', 2 ** 53, RangeError, `a safe integer of at least 0, got ${2 ** 53}`],
  ])('%s', (_title, k, Class, expected) => {
    const cache = new VectorCache({ dimensions: 2 });
    cache.add([1, 0]);
    expectError(
      thrownBy(() => cache.nearest([1, 0], k)),
      { Class, code: 'ERR_INVALID_OPTION', message: `k must be ${expected}` },
    );
  });
});

describe('save and load refuse', () => {
  const rejectionOf = (promise) =>
    promise.then(
      () => Promise.reject(new Error('it was fulfilled')),
      (error) => error,
    );

  test.each([
    ['undefined', undefined, TypeError, 'path must be a string, got undefined'],
    ['null', null, TypeError, 'path must be a string, got null'],
    ['a number', 7, TypeError, 'path must be a string, got 7'],
    ['an object', { toString: () => 'file' }, TypeError, 'path must be a string, got object'],
    ['a boxed string', new String('file'), TypeError, 'path must be a string, got object'],
    ['a revoked proxy', revoked({}), TypeError, 'path must be a string, got object'],
    ['an empty path', '', RangeError, 'path must not be empty'],
  ])('%s', async (_title, file, Class, message) => {
    const refused = { Class, code: 'ERR_INVALID_OPTION', message };
    expectError(await rejectionOf(new VectorCache().save(file)), refused);
    expectError(await rejectionOf(VectorCache.load(file)), refused);
  });

  test('a path that no system has', async () => {
    const error = await rejectionOf(new VectorCache().save('a\0b'));
    expect(error).toBeInstanceOf(Error);
    expect(error.code).toBe('ERR_MEMORY_IO');
    expect((await rejectionOf(VectorCache.load('a\0b'))).code).toBe('ERR_MEMORY_IO');
  });

  const OPTIONS = [
    ['null', null, TypeError, 'options must be an object, got null'],
    ['an array', [], TypeError, 'options must be an object, got array'],
    ['a string', 'any', TypeError, 'options must be an object, got string'],
    ['model: null', { model: null }, RangeError, "options.model must be 'check' or 'any'"],
    ['model: true', { model: true }, RangeError, "options.model must be 'check' or 'any'"],
    ['another model', { model: 'all' }, RangeError, "options.model must be 'check' or 'any'"],
    [
      'maxElements: -1',
      { maxElements: -1 },
      RangeError,
      'options.maxElements must be a safe integer of at least 0, got -1',
    ],
    [
      'an unknown option',
      { dimensions: 3 },
      TypeError,
      'options.dimensions is not an option of this call; its options are signal, maxElements, ttlMs, model',
    ],
    ["ttlMs: '1'", { ttlMs: '1' }, TypeError, 'options.ttlMs must be a number, got string'],
    [
      'ttlMs: NaN',
      { ttlMs: Number.NaN },
      RangeError,
      'options.ttlMs must be a number of at least 0, got NaN',
    ],
    [
      'a getter that throws',
      throwingGetter({}, 'model', hostile),
      TypeError,
      'options.model could not be read: it threw',
      same(hostile),
    ],
  ];

  for (const [title, options, Class, message, cause] of OPTIONS) {
    test(`${title} as options`, async () => {
      const error = await rejectionOf(VectorCache.load('missing', options));
      expectError(error, { Class, code: 'ERR_INVALID_OPTION', message, cause });
    });
  }

  test('an object that is no cache', async () => {
    for (const receiver of [
      {},
      null,
      Object.create(VectorCache.prototype),
      new Proxy(new VectorCache(), {}),
    ]) {
      expect(await rejectionOf(VectorCache.prototype.save.call(receiver, 'file'))).toBeInstanceOf(TypeError);
    }
  });
});

describe('malformed calls', () => {
  test('are as many as the suite promises, and all different', () => {
    expect(MALFORMED.length).toBeGreaterThanOrEqual(45);
    expect(new Set(MALFORMED.map(({ name }) => name)).size).toBe(MALFORMED.length);
  });

  test('name the wrong length as the SDK does', () => {
    const error = thrownBy(() => new VectorCache().add([1, 2, 3]));
    expect(error.message).toBe('Expected 384 dimensions, got 3');
  });

  test('of other dimensions name those', () => {
    const cache = new VectorCache({ dimensions: 3 });
    const refused = (vector) => thrownBy(() => cache.add(vector)).message;
    expect(refused('abc')).toBe('vector must be an array of numbers, got string');
    expect(refused([1, 2])).toBe('Expected 3 dimensions, got 2');
    expect(refused(new Float32Array(384))).toBe('Expected 3 dimensions, got 384');
    // biome-ignore lint/suspicious/noSparseArray: it is what is tested
    expect(refused([1, , 3])).toBe('vector[1] must be a number, got undefined');
    expect(cache.size).toBe(0);
  });

  /** Calls every method with everything malformed; the rows above are for how it is refused. */
  const refuseAll = (cache) => {
    for (const { make } of MALFORMED) {
      for (const { call } of METHODS) thrownBy(() => call(cache, make()));
    }
  };

  for (const [name, makeCache] of [
    ['a cache', () => new VectorCache()],
    ['a cache with a time to live', () => new VectorCache({ ttlMs: 3_600_000 })],
    ['the cache of the scorer', () => _getLocalCache()],
  ]) {
    test(`leave ${name} as it is`, () => {
      const cache = makeCache();
      cache.clear();
      cache.add(PROBE);
      refuseAll(cache);
      expectIntact(cache);
      cache.clear();
    });
  }

  test('are refused by an empty cache', () => {
    const cache = new VectorCache();
    refuseAll(cache);
    expect(cache.size).toBe(0);
    cache.add(PROBE);
    expectIntact(cache);
  });

  test('are refused by a cache that stores nothing', () => {
    const cache = new VectorCache({ maxElements: 0 });
    refuseAll(cache);
    expect(cache.size).toBe(0);
    cache.add(PROBE);
    expect(cache.maxCosineSimilarity(PROBE)).toBe(0);
  });

  test('displace nothing from a full cache', () => {
    const cache = new VectorCache({ maxElements: 2 });
    cache.add(PROBE);
    cache.add(honest());
    refuseAll(cache);
    expect(cache.size).toBe(2);
    close(cache.maxCosineSimilarity(PROBE), 1);
    close(cache.maxCosineSimilarity(honest()), 1);
  });

  test('on an object that is no cache are a TypeError', () => {
    const methods = ['add', 'addBatch', 'maxCosineSimilarity', 'maxCosineSimilarities', 'nearest'];
    for (const method of [...methods, 'evictExpired', 'clear', Symbol.iterator]) {
      for (const receiver of [
        {},
        null,
        Object.create(VectorCache.prototype),
        new Proxy(new VectorCache(), {}),
      ]) {
        const error = thrownBy(() => VectorCache.prototype[method].call(receiver, honest()));
        expect(error).toBeInstanceOf(TypeError);
      }
    }
    for (const getter of ['size', 'maxElements', 'dimensions', 'ttlMs', 'model']) {
      expect(thrownBy(() => Object.create(VectorCache.prototype)[getter])).toBeInstanceOf(TypeError);
    }
  });
});

describe('add, maxCosineSimilarity and the others accept', () => {
  class Vector extends Array {}
  class Floats extends Float32Array {}
  class Doubles extends Float64Array {}

  /** A subclass that cannot be made from a length alone. */
  class Labelled extends Float32Array {
    constructor(buffer, label) {
      if (typeof label !== 'string') throw new Error('no label');
      super(buffer);
      this.label = label;
    }
  }

  const shared = (Type) => {
    const vector = new Type(new SharedArrayBuffer(384 * Type.BYTES_PER_ELEMENT));
    vector.set(honest().map((component) => component * 100));
    return vector;
  };

  const scaled = (Type) => Type.from(honest(), (component) => component * 100);

  const ROWS = [
    ['an array', honest],
    ['a frozen array', () => Object.freeze(honest())],
    ['a subclass of Array', () => Vector.from(honest())],
    ['an array without a prototype', () => Object.setPrototypeOf(honest(), null)],
    ['an array of another realm', () => vm.runInNewContext(`[${honest()}]`)],
    ['integers', () => honest().map((component) => Math.round(component * 100))],
    ['negative zeros among them', () => withComponent(7, -0)],
    ['an array-like object', () => arrayLike()],
    ['an array-like object without a prototype', () => Object.setPrototypeOf(arrayLike(), null)],
    ['an inherited array-like object', () => Object.create(arrayLike())],
    ['the arguments of a call', () => toArguments(...honest())],
    ['a proxy of an array', () => new Proxy(honest(), {})],
    [
      'a proxy of a Float32Array',
      () => new Proxy(scaled(Float32Array), { get: (target, key) => target[key] }),
    ],
    ['components from getters', () => fromGetters()],
    [
      'an array whose iterator throws',
      () => throwingGetter(honest(), Symbol.iterator, new Error('iterated')),
    ],
    [
      'a hole that the prototype fills',
      () => Object.setPrototypeOf(withHole(3), { 3: 0.25, __proto__: Array.prototype }),
    ],
    ['a Float32Array', () => scaled(Float32Array)],
    ['a Float64Array', () => scaled(Float64Array)],
    ['an Int8Array', () => scaled(Int8Array)],
    ['an Int16Array', () => scaled(Int16Array)],
    ['an Int32Array', () => scaled(Int32Array)],
    ['a Uint8Array', () => scaled(Uint8Array)],
    ['a Uint8ClampedArray', () => scaled(Uint8ClampedArray)],
    ['a Uint16Array', () => scaled(Uint16Array)],
    ['a Uint32Array', () => scaled(Uint32Array)],
    ['a Buffer', () => Buffer.from(scaled(Uint8Array))],
    ['a Float32Array of another realm', () => vm.runInNewContext(`new Float32Array([${honest()}])`)],
    ['a part of a Float32Array', () => new Float32Array([9, 9, ...honest(), 9]).subarray(2, 386)],
    ['a part of a Float64Array', () => new Float64Array([9, ...honest(), 9]).subarray(1, 385)],
    ['a subclass of Float32Array', () => Floats.from(honest())],
    ['a subclass of Float64Array', () => Doubles.from(honest())],
    ['a Float32Array in shared memory', () => shared(Float32Array)],
    ['a Float64Array in shared memory', () => shared(Float64Array)],
    ['an Int8Array in shared memory', () => shared(Int8Array)],
    ['a subclass of Float32Array in shared memory', () => shared(Floats)],
    ['a subclass of its own making in shared memory', () => labelled(new SharedArrayBuffer(384 * 4))],
    ['a subclass of its own making', () => labelled(new ArrayBuffer(384 * 4))],
    [
      'a Float32Array whose buffer cannot be read',
      () => throwingGetter(scaled(Float32Array), 'buffer', new Error('buffer')),
    ],
    [
      'a Float32Array in shared memory with a slice of its own',
      () => Object.assign(shared(Float32Array), { slice: () => [] }),
    ],
    ...(canResize ? [['a Float32Array that follows its buffer', growing]] : []),
    ['1e300 in a Float64Array', () => Float64Array.from(honest(), (component) => component * 1e300), 1e-300],
    ['1e-300 in an array', () => honest().map((component) => component * 1e-300), 1e300],
    [
      'the largest number alone',
      () => new Float64Array(384).fill(Number.MAX_VALUE, 0, 1),
      1 / Number.MAX_VALUE,
    ],
    ['the smallest number alone', () => new Float64Array(384).fill(Number.MIN_VALUE, 0, 1), 2 ** 1023],
    ['the largest single', () => Float32Array.from(honest(), (component) => component * 3e38)],
  ];

  function toArguments() {
    // biome-ignore lint/complexity/noArguments: it is what is tested
    return arguments;
  }

  function fromGetters() {
    const vector = { length: 384 };
    for (const [index, component] of honest().entries()) {
      Object.defineProperty(vector, index, { get: () => component });
    }
    return vector;
  }

  function labelled(buffer) {
    const vector = new Labelled(buffer, 'a');
    vector.set(honest());
    return vector;
  }

  function growing() {
    const buffer = new ArrayBuffer(4, { maxByteLength: 384 * 4 });
    const vector = new Float32Array(buffer);
    buffer.resize(384 * 4);
    vector.set(honest());
    return vector;
  }

  for (const [name, make, factor = 1] of ROWS) {
    test(name, () => {
      const vector = make();
      // The reference takes no part of the length or of hostile fields.
      const components = Float64Array.from({ length: 384 }, (_, index) => Number(vector[index]) * factor);
      const expected = cosineSimilarity(components, PROBE);

      const added = new VectorCache();
      expect(added.add(vector)).toBe(undefined);
      expect(added.size).toBe(1);
      close(added.maxCosineSimilarity(components), 1);
      close(added.maxCosineSimilarity(PROBE), expected);

      const batch = new VectorCache();
      batch.addBatch([vector, vector], ['a', undefined]);
      expect(batch.nearest(PROBE, 3)).toEqual([
        { label: 'a', similarity: added.maxCosineSimilarity(PROBE), index: 0 },
        { label: undefined, similarity: added.maxCosineSimilarity(PROBE), index: 1 },
      ]);

      const asked = new VectorCache();
      expect(asked.maxCosineSimilarity(vector)).toBe(0);
      expect(asked.nearest(vector)).toEqual([]);
      asked.add(PROBE);
      close(asked.maxCosineSimilarity(vector), expected);
      expect(asked.maxCosineSimilarities([vector])).toEqual([asked.maxCosineSimilarity(vector)]);
      expect(asked.nearest(vector)[0].similarity).toBe(asked.maxCosineSimilarity(vector));
      expect(asked.size).toBe(1);
    });
  }

  test('a zero vector, which is similar to nothing', () => {
    const cache = new VectorCache();
    cache.add(new Float32Array(384));
    expect(cache.size).toBe(1);
    expect(cache.maxCosineSimilarity(honest())).toBe(0);
    expect(cache.maxCosineSimilarity(new Array(384).fill(0))).toBe(0);
    expect(cache.maxCosineSimilarity(new Array(384).fill(-0))).toBe(0);
  });

  test('a vector whose getters use the cache', () => {
    const cache = new VectorCache({ dimensions: 2 });
    const vector = {
      length: 2,
      get 0() {
        cache.add([0, 1]);
        return cache.maxCosineSimilarity([0, 1]);
      },
      get 1() {
        return 0;
      },
    };
    cache.add(vector);
    expect(cache.size).toBe(2);
    expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
    expect(cache.maxCosineSimilarity([0, 1])).toBe(1);
  });
});

test('lists may be array-like, and their getters use the cache', () => {
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

describe('add copies', () => {
  const ROWS = [
    ['arrays', () => [1, 0]],
    ['array-like objects', () => ({ length: 2, 0: 1, 1: 0 })],
    ['Float32Arrays', () => new Float32Array([1, 0])],
    ['Float64Arrays', () => new Float64Array([1, 0])],
    ['Int8Arrays', () => new Int8Array([1, 0])],
    ['Float32Arrays in shared memory', () => inShared(Float32Array)],
    ['Float64Arrays in shared memory', () => inShared(Float64Array)],
  ];

  function inShared(Type) {
    const vector = new Type(new SharedArrayBuffer(2 * Type.BYTES_PER_ELEMENT));
    vector[0] = 1;
    return vector;
  }

  for (const [name, make] of ROWS) {
    test(name, () => {
      const cache = new VectorCache({ dimensions: 2 });
      const vector = make();
      cache.add(vector);
      vector[0] = 0;
      vector[1] = 1;
      expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
      expect(cache.maxCosineSimilarity([0, 1])).toBe(0);
      cache.add(vector);
      vector[0] = Number.NaN;
      expect(cache.maxCosineSimilarity([0, 1])).toBe(1);
      expect(cache.size).toBe(2);
    });
  }

  test('what is transferred away afterwards', () => {
    const cache = new VectorCache({ dimensions: 2 });
    const vector = new Float32Array([1, 0]);
    cache.add(vector);
    structuredClone(vector.buffer, { transfer: [vector.buffer] });
    expect(vector.length).toBe(0);
    expect(cache.maxCosineSimilarity([1, 0])).toBe(1);
  });

  test('and leaves the vector as it is', () => {
    const cache = new VectorCache({ dimensions: 2 });
    for (const [, make] of ROWS) {
      const vector = make();
      cache.add(vector);
      cache.maxCosineSimilarity(vector);
      expect([vector[0], vector[1]]).toEqual([1, 0]);
    }
  });
});
