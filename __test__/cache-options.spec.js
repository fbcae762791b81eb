'use strict';

// The options of a `VectorCache`, labels, counts, paths and the options of `load`: what is refused, and what is accepted.

const vm = require('node:vm');

const { VectorCache } = require('..');
const { hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { expectError, rejectionOf, same, thrownBy } = require('./support/refusals.js');
const { NOT_NUMBERS, NOT_OBJECTS, NOT_WHOLE, THROWN } = require('./support/wrong-values.js');

const WHOLE = 'a safe integer of at least 0';
const INVALID = 'ERR_INVALID_OPTION';

describe('new VectorCache refuses', () => {
  const refuse = (options, [Class, message, isCause]) => {
    const error = thrownBy(() => new VectorCache(options));
    expectError(error, [Class, INVALID, message, isCause]);
  };

  test.each([...NOT_OBJECTS, ['an array', [1000, 384], 'array']])('%s as options', (_, options, found) => {
    refuse(options, [TypeError, `options must be an object, got ${found}`]);
  });

  describe.each(['maxElements', 'dimensions', 'ttlMs'])('%s', (option) => {
    test.each(NOT_NUMBERS)('that is %s', (_, value, found) => {
      refuse({ [option]: value }, [TypeError, `options.${option} must be a number, got ${found}`]);
    });

    test('that throws anything, which becomes the cause', () => {
      for (const [, thrown] of THROWN) {
        const message = `options.${option} could not be read: it threw`;
        refuse(throwingGetter({}, option, thrown), [TypeError, message, same(thrown)]);
      }
    });
  });

  test.each([
    ...NOT_WHOLE.map((value) => ['maxElements', value, WHOLE]),
    ...[0, -0, ...NOT_WHOLE].map((value) => ['dimensions', value, 'a safe integer of at least 1']),
    ...[-1, -Number.MIN_VALUE, -1 / 0, Number.NaN].map((value) => ['ttlMs', value, 'a number of at least 0']),
  ])('%s: %p', (option, value, expected) => {
    refuse({ [option]: value }, [RangeError, `options.${option} must be ${expected}, got ${value}`]);
  });

  test.each([
    ['a proxy that throws', throwingProxy({}, hostile), /^options\.\w+ could not be read/, same(hostile)],
    ['a revoked proxy', revoked({}), /^options could not be read/, (cause) => cause.name === 'TypeError'],
    ['an unknown option', { maxelements: 3 }, /^options\.maxelements is not an option of this call; its/],
  ])('%s', (...row) => {
    const [, options, message, isCause] = row;
    refuse(options, [TypeError, message, isCause]);
  });
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
    expect(cache).toMatchObject({ size: 1000, maxElements: 1000, dimensions: 384, ttlMs: 1 / 0 });
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

test.each(['add', 'maxCosineSimilarity', 'nearest'])('%s of a cache of huge dimensions refuses', (method) => {
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

describe('labels', () => {
  /** Expects that the last of these labels is refused, alone and in a batch. */
  function refuseLabels(cache, labels, Class, message) {
    const alone = thrownBy(() => cache.add([1], labels.at(-1)));
    expectError(alone, [Class, 'ERR_INVALID_LABEL', `label ${message}`]);
    const vectors = labels.map(() => [1]);
    const batch = thrownBy(() => cache.addBatch(vectors, labels));
    expectError(batch, [Class, 'ERR_INVALID_LABEL', `labels[${labels.length - 1}] ${message}`]);
  }

  test.each([
    ...[...NOT_NUMBERS].filter(([, , found]) => found !== 'string'),
    ['a number', 7, '7'],
    ['a boxed string', new String('a'), 'object'],
    ['an object whose toString throws', hostile, 'object'],
  ])('that are %s are refused', (_, label, found) => {
    const cache = new VectorCache({ dimensions: 1 });
    refuseLabels(cache, ['a', label], TypeError, `must be a string, got ${found}`);
    expect(cache.size).toBe(0);
  });

  test.each([
    ['ASCII', 'a'.repeat(1024), 'a'],
    ['two bytes each', '\u00e9'.repeat(512), 'a'],
    ['four bytes each', '\u{1f980}'.repeat(256), 'a'],
    ['lone surrogates', '\ud800'.repeat(341), 'ab'],
  ])('may be 1,024 bytes long and no longer: %s', (_, longest, more) => {
    const cache = new VectorCache({ dimensions: 1 });
    cache.add([1], longest);
    expect(cache.nearest([1])[0].label).toBe(longest.replaceAll('\ud800', '\ufffd'));
    const message = 'must be at most 1024 bytes of UTF-8, got 1025';
    refuseLabels(cache, [longest + more], RangeError, message);
    expect(cache.size).toBe(1);
  });

  test.each([
    [[], 1],
    [['a', 'b'], 1],
    [new Array(3), 2],
  ])('%p are refused with %d vectors', (labels, count) => {
    const cache = new VectorCache({ dimensions: 1 });
    const message = `labels must be as many as vectors: expected ${count}, got ${labels.length}`;
    const error = thrownBy(() => cache.addBatch(Array(count).fill([1]), labels));
    expectError(error, [RangeError, 'ERR_INVALID_LABEL', message]);
  });
});

test.each([
  ...NOT_NUMBERS.map(([, k, found]) => [k, TypeError, `a number, got ${found}`]),
  ...NOT_WHOLE.map((k) => [k, RangeError, `${WHOLE}, got ${k}`]),
])('nearest refuses as k what is wrong: %#', (k, Class, expected) => {
  const error = thrownBy(() => new VectorCache({ dimensions: 1 }).nearest([1], k));
  expectError(error, [Class, INVALID, `k must be ${expected}`]);
});

describe('save and load refuse', () => {
  test.each([
    ['undefined', undefined, TypeError, 'path must be a string, got undefined'],
    ['null', null, TypeError, 'path must be a string, got null'],
    ['a number', 7, TypeError, 'path must be a string, got 7'],
    ['a boxed string', new String('file'), TypeError, 'path must be a string, got object'],
    ['a revoked proxy', revoked({}), TypeError, 'path must be a string, got object'],
    ['an empty path', '', RangeError, 'path must not be empty'],
  ])('%s as a path', async (_, file, Class, message) => {
    for (const call of [() => new VectorCache().save(file), () => VectorCache.load(file)]) {
      expectError(await rejectionOf(call()), [Class, INVALID, message]);
    }
  });

  test('a path that no system has', async () => {
    for (const call of [() => new VectorCache().save('a\0b'), () => VectorCache.load('a\0b')]) {
      expect(await rejectionOf(call())).toMatchObject({ name: 'Error', code: 'ERR_MEMORY_IO' });
    }
  });

  const choice = "options.model must be 'check' or 'any'";
  const known = /call; its options are signal, maxElements, ttlMs, model$/;
  const throwing = throwingGetter({}, 'model', hostile);
  test.each([
    ['null', null, TypeError, 'options must be an object, got null'],
    ['an array', [], TypeError, 'options must be an object, got array'],
    ['a string', 'any', TypeError, 'options must be an object, got string'],
    ['model: null', { model: null }, RangeError, choice],
    ['model: true', { model: true }, RangeError, choice],
    ['another model', { model: 'all' }, RangeError, choice],
    ['maxElements: -1', { maxElements: -1 }, RangeError, `options.maxElements must be ${WHOLE}, got -1`],
    ['an unknown option', { dimensions: 3 }, TypeError, known],
    ["ttlMs: '1'", { ttlMs: '1' }, TypeError, 'options.ttlMs must be a number, got string'],
    [
      'ttlMs: NaN',
      { ttlMs: Number.NaN },
      RangeError,
      /^options\.ttlMs must be a number of at least 0, got NaN$/,
    ],
    ['a getter that throws', throwing, TypeError, /^options\.model could/, same(hostile)],
  ])('%s as options', async (...row) => {
    const [, options, Class, message, isCause] = row;
    expectError(await rejectionOf(VectorCache.load('missing', options)), [Class, INVALID, message, isCause]);
  });
});
