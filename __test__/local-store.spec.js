'use strict';

// A cache as a store: what it refuses, and that it is as it was then.

const path = require('node:path');

const { LocalStore, Scorer, TraceMemory, VectorCache } = require('..');
const { makeTrace } = require('./support/make-trace.js');
const { revoked, throwingGetter } = require('./support/hostile.js');
const { expectError, thrownBy } = require('./support/refusals.js');
const { scratchDirectory } = require('./support/scratch.js');
const { randomVector } = require('./support/vectors.js');
const { warningsWhile } = require('./support/warnings.js');

const scratch = scratchDirectory('local-store');

const MODEL = { model: 'm', dtype: 'fp32' };
const entry = (id, ...seeds) => ({ id, vectors: seeds.map(randomVector), model: MODEL });
const errorOf = (promise) => promise.then(() => undefined).catch((reason) => reason);

const short = { ...entry('a'), vectors: [new Float32Array(3)] };
const nan = { ...entry('a'), vectors: [new Float32Array(384).fill(Number.NaN)] };
const unreadable = throwingGetter({ id: null, vectors: [randomVector(1)] }, 'model', 'thrown');
const otherModel = { ...entry('a', 1), model: { ...MODEL, dtype: 'q8' } };
const ENTRY = [TypeError, 'ERR_INVALID_ENTRY'];
const LONG_ENTRY = [RangeError, 'ERR_INVALID_ENTRY'];
const VECTOR = [RangeError, 'ERR_INVALID_VECTOR'];

const whole = entry('a', 1);
const withoutModel = { id: 'a', vectors: [randomVector(1)] };
const plain = { ...entry('a'), vectors: [[1, 2]] };
const longMethod = { ...whole, method: 'm'.repeat(1025) };
const other = ' is of another model than entries[0]: of m (q8), not of m (fp32)';
const broken = [
  ['null', null, ENTRY, ' must be an object'],
  ['a revoked proxy', revoked({}), ENTRY, '.id could not be read: it threw'],
  ['a getter that throws', unreadable, ENTRY, '.model could not be read: it threw'],
  ['a number for an id', entry(7, 1), ENTRY, '.id must be a string or null'],
  ['a long id', entry('é'.repeat(513), 1), LONG_ENTRY, '.id must be of at most 1024 bytes, got 1026'],
  ['no vectors', { id: 'a', model: MODEL }, ENTRY, '.vectors must be an array of at least one'],
  ['no vector', entry('a'), ENTRY, '.vectors must be an array of at least one'],
  ['no model', withoutModel, ENTRY, '.model must be an object'],
  ['a number for a method', { ...whole, method: 7 }, ENTRY, '.method must be a string'],
  ['a method with too long a name', longMethod, LONG_ENTRY, '.method must be of at most 1024 bytes'],
  ['a plain array', plain, [TypeError, 'ERR_INVALID_VECTOR'], '.vectors[0] must be a Float32Array'],
  ['other dimensions', short, VECTOR, '.vectors[0] must have 384 dimensions, got 3'],
  ['no number', nan, VECTOR, '.vectors[0] must have finite components'],
  ['another model', otherModel, [Error, 'ERR_STORE_OTHER_MODEL'], other],
];

test.each(broken)('%s: the batch is refused as a whole', async (_, second, [Class, code], message) => {
  const store = new LocalStore();
  const error = await errorOf(store.compareAndAddBatch([entry('a', 1), second]));
  expect(error).toBeInstanceOf(Class);
  expect(error).toMatchObject({ code, message: `entries[1]${message}` });
  expect(await store.size()).toBe(0);
  expect(store.memory.model).toBe(null);
});

test('malformed entries and lists of entries are refused', async () => {
  const store = new LocalStore();
  for (const [call, message] of [
    [store.compareAndAdd(null), 'entry must be an object'],
    [store.compareAndAdd(entry(7, 1)), 'entry.id must be a string or null'],
    [store.compareAndAddBatch(null), 'entries must be an array'],
    [store.compareAndAddBatch({ length: 1 }), 'entries must be an array'],
    [store.nearest(randomVector(1), 1, null), 'model must be an object'],
    [store.nearest(randomVector(1), 1), 'model must be an object'],
  ]) {
    const error = await errorOf(call);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_INVALID_ENTRY', message });
  }
  expect((await errorOf(store.nearest('no', 1, MODEL))).code).toBe('ERR_INVALID_VECTOR');
  expect((await errorOf(store.nearest(randomVector(1), -1, MODEL))).code).toBe('ERR_INVALID_OPTION');
});

test('an object that is not a signal is refused', async () => {
  const store = new LocalStore();
  for (const call of [
    store.compareAndAdd(entry('a', 1), { signal: 42 }),
    store.compareAndAddBatch([], { signal: 42 }),
    store.nearest(randomVector(1), 1, MODEL, { signal: 42 }),
    store.size({ signal: 42 }),
  ]) {
    expect(await errorOf(call)).toMatchObject({ code: 'ERR_INVALID_OPTION', name: 'TypeError' });
  }
});

test('the cache may have other dimensions, and vectors any length', async () => {
  const store = new LocalStore(new VectorCache({ dimensions: 3 }));
  const vectors = [new Float32Array([3, 0, 0])];
  expect(await store.compareAndAdd({ id: 'a', vectors, model: MODEL })).toEqual([null]);
  expect(await store.nearest(new Float32Array([1, 0, 0]), 1, MODEL)).toEqual([{ label: 'a', similarity: 1 }]);
});

test('the cache knows the model, also when it is opened again', async () => {
  const store = new LocalStore();
  await store.compareAndAdd(entry('a', 1));
  expect(store.memory.model).toEqual(MODEL);
  const again = new LocalStore(store.memory);
  const other = { ...entry('b', 2), model: { model: 'other', dtype: 'q8' } };
  expect(await errorOf(again.compareAndAdd(other))).toMatchObject({
    code: 'ERR_STORE_OTHER_MODEL',
    message:
      'the cache holds vectors of m (fp32), which do not compare with those of other (q8): clear it, or use another',
  });
  store.memory.clear();
  expect(await again.compareAndAdd(other)).toEqual([null]);
  expect(store.memory.model).toEqual(other.model);
});

test('the cache knows the method, also when it is opened again', async () => {
  const store = new LocalStore();
  const prefix = { ...entry('a', 1), method: 'prefix' };
  await store.compareAndAdd(entry('by hand', 2));
  expect(store.memory.method).toBe(undefined);
  await store.compareAndAdd(prefix);
  expect(store.memory.method).toBe('prefix');
  const again = new LocalStore(store.memory);
  expect(await errorOf(again.compareAndAdd({ ...prefix, method: 'full' }))).toMatchObject({
    code: 'ERR_STORE_OTHER_METHOD',
    message: expect.stringMatching(/novelty 'prefix'.*novelty 'full'/),
  });
  store.memory.clear();
  expect(store.memory.method).toBe(undefined);
  expect(await again.compareAndAdd({ ...prefix, method: 'full' })).toEqual([null]);
  expect(store.memory.method).toBe('full');
});

test('a file of the cache keeps the model and the method', async () => {
  const store = new LocalStore();
  await store.compareAndAdd({ ...entry('a', 1), method: 'full' });
  const file = path.join(scratch, 'local.safetensors');
  await store.memory.save(file);
  const { model, method } = await VectorCache.load(file, { model: 'any' });
  expect({ model, method }).toEqual({ model: MODEL, method: 'full' });
});

test('nearest does not set the model of the cache', async () => {
  const store = new LocalStore();
  store.memory.add(randomVector(1), 'mine');
  await store.nearest(randomVector(1), 1, { model: 'other', dtype: 'q8' });
  expect(store.memory.model).toBe(null);
  await store.compareAndAdd(entry('a', 1));
  expect(store.memory.model).toEqual(MODEL);
});

describe('calls that are not awaited', () => {
  const at = (step) => Float32Array.of(Math.cos(step / 100), Math.sin(step / 100));
  const step = (number) => ({ id: String(number), vectors: [at(number)], model: MODEL });

  test('are worked on in their order', async () => {
    const store = new LocalStore(new VectorCache({ dimensions: 2 }));
    const calls = [];
    for (let number = 0; number < 100; number++) {
      calls.push(
        number % 3 === 0 ? store.compareAndAddBatch([step(number)]) : store.compareAndAdd(step(number)),
      );
      calls.push(store.size(), store.nearest(at(number), 1, MODEL));
    }
    const answers = await Promise.all(calls);
    for (let number = 0; number < 100; number++) {
      const [comparison, size, [nearest]] = answers.slice(3 * number, 3 * number + 3);
      expect(comparison.flat()[0]?.label).toBe(number === 0 ? undefined : String(number - 1));
      expect(size).toBe(number + 1);
      expect(nearest.label).toBe(String(number));
    }
  });

  test('may be aborted until they begin: then nothing of them is stored', async () => {
    const store = new LocalStore(new VectorCache({ maxElements: 20_000, dimensions: 2 }));
    const many = Array.from({ length: 3000 }, (_, number) => step(number));
    const controller = new AbortController();
    const { signal } = controller;
    const first = store.compareAndAddBatch(many);
    const others = Array.from({ length: 8 }, () => errorOf(store.compareAndAddBatch(many, { signal })));
    const looks = [errorOf(store.nearest(at(1), 1, MODEL, { signal })), errorOf(store.size({ signal }))];
    controller.abort();
    expect(await first).toHaveLength(many.length);
    const errors = await Promise.all(others);
    for (const error of [...errors, ...(await Promise.all(looks))]) {
      if (error !== undefined) expect(error.name).toBe('AbortError');
    }
    const stored = errors.filter((error) => error === undefined).length;
    // The last one waits for the first, which takes far longer than to get here.
    expect(stored).toBeLessThan(others.length);
    expect(await store.size()).toBe((1 + stored) * many.length);
  });
});

describe('words', () => {
  const traces = ['book a flight', 'fix the build', 'book a flight to Oslo', 'Flight: BOOK a'].map(
    (objective, index) => ({ ...makeTrace({ objective, steps: [] }), id: `kp:trace:${index}` }),
  );
  const novelties = async (scorer) => {
    const breakdowns = [];
    for (const trace of traces) breakdowns.push(await scorer.explain(trace));
    return breakdowns.map(({ dimensions, nearest, tokens, truncated }) => ({
      // A store does not know how words are spelled.
      nearest: nearest && { ...nearest, sharedWords: null, newWords: null },
      ...{ novelty: dimensions.novelty, tokens, truncated },
    }));
  };

  test('a scorer compares by a store of traces as by a memory', async () => {
    const expected = await novelties(new Scorer({ memory: new TraceMemory() }));
    expect(expected[3].novelty).toBe(0);
    const memory = new TraceMemory();
    const store = new LocalStore(memory);
    expect(store.novelty).toBe('lexical');
    expect(store.memory).toBe(memory);
    const scorer = new Scorer({ memory: store });
    expect(await novelties(scorer)).toEqual(expected);
    expect(memory.size).toBe(4);
    expect((await scorer.explain(traces[0], { remember: false })).nearest.label).toBe('kp:trace:0');
    expect(memory.size).toBe(4);
    expect(await scorer.evaluateValues(traces)).toHaveLength(4);
    expect(memory.size).toBe(8);
  });

  test('a scorer goes on with its memory while the store fails, and the store gets the words afterwards', async () => {
    const remembered = new TraceMemory();
    const store = new LocalStore(remembered);
    const working = store.compareAndAddBatch;
    await warningsWhile(async (warnings) => {
      const memory = new TraceMemory();
      const scorer = new Scorer({ memory: store, fallback: memory });
      await scorer.evaluateValue(traces[0]);
      store.compareAndAddBatch = async () => {
        throw Object.assign(new Error('it fails'), { code: 'ERR_STORE_UNAVAILABLE' });
      };
      const { noveltyBasis, nearest } = await scorer.explain(traces[3]);
      expect({ noveltyBasis, label: nearest.label, similarity: nearest.similarity }).toEqual({
        ...{ noveltyBasis: 'cache', label: 'kp:trace:0', similarity: 1 },
      });
      expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE_UNAVAILABLE']);
      expect([remembered.size, memory.size]).toEqual([1, 2]);
      store.compareAndAddBatch = working;
      await scorer.flush();
      expect(remembered.size).toBe(2);
    });
  });

  test('new Scorer refuses a fallback that does not compare as the store does', () => {
    for (const [memory, fallback, novelties] of [
      [new LocalStore(), new TraceMemory(), ['lexical', 'prefix']],
      [new LocalStore(new TraceMemory()), new VectorCache(), ['prefix', 'lexical']],
      [new LocalStore(new TraceMemory()), new TraceMemory({ novelty: 'full' }), ['full', 'lexical']],
    ]) {
      const message =
        `options.fallback compares with novelty '${novelties[0]}', and options.memory with '${novelties[1]}': ` +
        'use a fallback that compares as the store does';
      expectError(
        thrownBy(() => new Scorer({ memory, fallback })),
        [Error, 'ERR_MEMORY_OTHER_METHOD', message],
      );
    }
  });

  test('an answer of a store without the parts of the similarity is refused', async () => {
    const store = new LocalStore(new TraceMemory());
    store.compareAndAddBatch = async (entries) => entries.map(() => [{ label: 'a', similarity: 1 }]);
    const error = await errorOf(new Scorer({ memory: store }).evaluateValue(traces[0]));
    expect(error.code).toBe('ERR_STORE');
    expect(error.message).toContain('lexical, contained, embedded');
  });

  test('each kind of memory refuses the questions of the other', async () => {
    const words = { id: null, vectors: [], words: new Uint8Array(), model: null };
    const [ofTraces, ofVectors] = [new LocalStore(new TraceMemory()), new LocalStore()];
    for (const call of [ofTraces.nearest(randomVector(1), 1, MODEL), ofVectors.nearestTraces(words, 1)]) {
      expect((await errorOf(call)).code).toBe('ERR_STORE_OTHER_METHOD');
    }
    expect(() => new LocalStore({})).toThrow('memory must be a VectorCache or a TraceMemory');
  });
});
