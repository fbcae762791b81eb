'use strict';

// A scorer whose memory lies elsewhere: order, batches, failures.

const path = require('node:path');

const { LocalStore, Scorer, VectorCache, embed } = require('..');
const { stopClock } = require('./support/clock.js');
const { revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { rejectionOf, thrownBy } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');
const { scratchDirectory } = require('./support/scratch.js');
const { warningsWhile } = require('./support/warnings.js');

const scratch = scratchDirectory('store-memory');

const distinct = (count, salt = '') =>
  Array.from({ length: count }, (_, index) => ({
    ...makeTrace({ objective: `${salt} task ${index}: ${'look again '.repeat((index * 7) % 20)}` }),
    id: `${salt}-${index}`,
  }));

const contents = (cache) => Array.from(cache, ({ vector, label }) => [Array.from(vector), label]);

/** A store that tells what it is asked, and fails while `failure` is set. */
class WatchedStore extends LocalStore {
  calls = [];
  failure;

  async compareAndAddBatch(entries, options) {
    this.calls.push(entries.length);
    // Slower than the event loop, as a real one is.
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (this.failure) throw this.failure;
    return super.compareAndAddBatch(entries, options);
  }

  async nearest(...args) {
    this.calls.push('nearest');
    if (this.failure) throw this.failure;
    return super.nearest(...args);
  }
}

const down = () => Object.assign(new Error('the server does not answer'), { code: 'ERR_STORE_UNAVAILABLE' });

/** Expects that a call rejects because of what the store answers. */
async function expectRefused(call) {
  const error = await rejectionOf(call);
  expect(error).toBeInstanceOf(TypeError);
  expect(error.code).toBe('ERR_STORE');
}

test('Scorer with a store gives the scores and explanations of a cache', async () => {
  const store = new WatchedStore();
  const [scorer, expected] = [new Scorer({ memory: store }), new Scorer({ memory: new VectorCache() })];
  const traces = [...distinct(40, 'same'), ...distinct(10, 'same')];
  const inFlight = traces.map((trace) => scorer.evaluateValue(trace));
  expect(await Promise.all(inFlight)).toEqual(await expected.evaluateValues(traces));
  expect(contents(store.memory)).toEqual(contents(expected.memory));
  expect(scorer.memory).toBe(store);
  expect(await scorer.evaluateValues(traces)).toEqual(await expected.evaluateValues(traces));
  for (const remember of [false, true]) {
    const [ours, theirs] = [
      await scorer.explain(traces[3], { remember }),
      await expected.explain(traces[3], { remember }),
    ];
    expect(ours).toEqual({ ...theirs, noveltyBasis: 'store' });
  }
  expect(contents(store.memory)).toEqual(contents(expected.memory));
  // What is ready together goes together.
  const batches = store.calls.filter(Number.isInteger);
  expect(batches.length).toBeLessThan(101);
  expect(Math.max(...batches)).toBeLessThanOrEqual(64);
});

test('without an embedder the store is not asked', async () => {
  const store = new WatchedStore();
  const scorer = new Scorer({ memory: store, embedder: null });
  expect(await scorer.explain(makeTrace())).toMatchObject({ noveltyBasis: 'no-embedder' });
  expect(await scorer.evaluateValues(distinct(3))).toHaveLength(3);
  expect(store.calls).toEqual([]);
});

describe('a store that fails', () => {
  test('is sent nothing more of the batch', async () => {
    const store = new (class extends WatchedStore {
      async compareAndAddBatch(entries, options) {
        // Until the other traces wait for it.
        if (this.failure) await new Promise((resolve) => setTimeout(resolve, 300));
        return super.compareAndAddBatch(entries, options);
      }
    })();
    const scorer = new Scorer({ memory: store });
    const failure = down();
    store.failure = failure;
    await expect(scorer.evaluateValues(distinct(5))).rejects.toBe(failure);
    store.failure = undefined;
    expect(await scorer.evaluateValue(makeTrace())).toBeGreaterThan(0);
    expect(store.memory.size).toBe(1);
  });

  test.each([
    ['with a code', down()],
    ['plain', { name: 'TypeError', message: 'no connection' }],
    ['with a code of napi', Object.assign(new Error('of a library'), { code: 'GenericFailure' })],
    ['unreadable', revoked({})],
  ])('rejects the calls that need it, and only these, with its error: %s', async (_, failure) => {
    const store = new WatchedStore();
    const scorer = new Scorer({ memory: store });
    store.failure = failure;
    const call = (promise) => promise.catch((reason) => Object.is(reason, failure));
    expect(await call(scorer.evaluateValue(makeTrace()))).toBe(true);
    expect(await call(scorer.explain(makeTrace(), { remember: false }))).toBe(true);
    expect(await call(scorer.evaluateValues(distinct(3)))).toBe(true);
    store.failure = undefined;
    expect(await scorer.evaluateValue(makeTrace())).toBeGreaterThan(0);
    expect(store.memory.size).toBe(1);
  });

  test.each([
    ['a code that is a number', Object.assign(new Error('no route'), { code: 14 }), 'no route'],
    ['no error', undefined, 'undefined'],
    ['a symbol', Symbol('down'), 'Symbol(down)'],
    ['an object without a prototype', Object.create(null), 'its error cannot be read'],
    ['what cannot be read', revoked({}), 'its error cannot be read'],
  ])('and is stood in for may fail with %s', async (_, failure, told) => {
    const store = new LocalStore();
    store.compareAndAddBatch = async () => {
      throw failure;
    };
    const scorer = new Scorer({ memory: store, fallback: new VectorCache() });
    const warnings = await warningsWhile(async () => {
      expect((await scorer.explain(makeTrace())).noveltyBasis).toBe('empty-cache');
    });
    expect(warnings).toEqual([
      { message: expect.stringContaining(told), type: 'KnowledgePulseWarning', code: 'ERR_STORE' },
    ]);
  });

  test('is not blamed for a cache of another model, and gets nothing then', async () => {
    const file = path.join(scratch, 'q8.safetensors');
    await runForResult(
      `
      const cache = kp._getLocalCache();
      await kp.evaluateValue(makeTrace());
      await cache.save(${JSON.stringify(file)});
      console.log(JSON.stringify(cache.size));
    `,
      { env: { KNOWLEDGEPULSE_DTYPE: 'q8' } },
    );
    const store = new WatchedStore();
    const fallback = await VectorCache.load(file, { model: 'any' });
    const scorer = new Scorer({ memory: store, fallback });
    const call = () => scorer.evaluateValue(makeTrace()).catch(({ code }) => code);
    const look = () => scorer.explain(makeTrace(), { remember: false }).catch(({ code }) => code);
    expect(await call()).toBe('ERR_MEMORY_OTHER_MODEL');
    expect(await look()).toBe('ERR_MEMORY_OTHER_MODEL');
    // Nor is it asked: a call that was rejected is not remembered.
    expect(store.calls).toEqual([]);
    fallback.clear();
    await scorer.flush();
    expect(await call()).toBeGreaterThanOrEqual(0);
    expect(store.memory.size).toBe(1);
  });

  test('falls back to the cache, and later gets the missed entries', async () => {
    const store = new WatchedStore();
    const scorer = new Scorer({ memory: store, fallback: new VectorCache() });
    const expected = new Scorer();
    const clock = stopClock();
    const warnings = await warningsWhile(async () => {
      const traces = distinct(12, 'outage');
      for (const [index, trace] of traces.entries()) {
        store.failure = index >= 4 && index < 8 ? down() : undefined;
        const { score, noveltyBasis } = await scorer.explain(trace);
        expect(score).toBe(await expected.evaluateValue(trace));
        expect(noveltyBasis).toBe(index < 4 ? (index === 0 ? 'empty-store' : 'store') : 'cache');
        // A duplicate is found, whether the store or the cache answers.
        const again = await scorer.explain(trace, { remember: false });
        expect(again.nearest).toMatchObject({ label: trace.id });
      }
      clock.advance(1_100);
      while (store.memory.size < traces.length) await new Promise((resolve) => setTimeout(resolve, 10));
      expect((await scorer.explain(traces[0])).noveltyBasis).toBe('store');
      await expected.evaluateValue(traces[0]);
      expect(contents(store.memory)).toEqual(contents(expected.memory));
    }).finally(clock.restore);
    const message = expect.stringContaining('the server does not answer');
    expect(warnings).toEqual([{ message, type: 'KnowledgePulseWarning', code: 'ERR_STORE_UNAVAILABLE' }]);
  });

  test.each([
    ['nothing', () => undefined],
    ['too few', () => []],
    ['no neighbours', () => [[7]]],
    ['another number of them', () => [[null, null]]],
    ['no number', () => [[{ label: null, similarity: Number.NaN }]]],
    ['no label', () => [[{ similarity: 1 }]]],
    ['more than there is', () => [[{ label: null, similarity: 1e308 }]]],
    ['what cannot be read', () => [revoked([])]],
    ['what throws', () => [throwingProxy([], 'thrown')]],
    ['with a getter that throws', () => [[throwingGetter({ label: null }, 'similarity', 'thrown')]]],
  ])('answers %s: that is refused', async (_, answer) => {
    const store = new LocalStore();
    store.compareAndAddBatch = async () => answer();
    await expectRefused(new Scorer({ memory: store }).evaluateValue(makeTrace()));
  });
});

test.each([
  ['nothing', undefined],
  ['no list', 7],
  ['what cannot be read', [revoked({})]],
  ['no neighbour', [7]],
])('a store that looks and finds %s is refused', async (_, answer) => {
  const store = new LocalStore();
  store.nearest = async () => answer;
  await expectRefused(new Scorer({ memory: store }).explain(makeTrace(), { remember: false }));
});

test('an answer is read once', async () => {
  const store = new LocalStore();
  let reads = 0;
  const neighbour = {
    label: null,
    get similarity() {
      return reads++ === 0 ? 0.5 : 'later';
    },
  };
  store.compareAndAddBatch = async () => [[neighbour]];
  expect((await new Scorer({ memory: store }).explain(makeTrace())).nearest.similarity).toBe(0.5);
});

describe('abort', () => {
  test('unsent entries are not stored', async () => {
    const store = new WatchedStore();
    const scorer = new Scorer({ memory: store });
    const traces = distinct(30, 'abort');
    const controller = new AbortController();
    const { signal } = controller;
    const kept = scorer.evaluateValue(traces[0]);
    const aborted = traces
      .slice(1)
      .map((trace) => scorer.evaluateValue(trace, { signal }).catch(({ name }) => name));
    controller.abort();
    await kept;
    expect(new Set(await Promise.all(aborted))).toEqual(new Set(['AbortError']));
    expect(store.memory.size).toBe(1);
    expect(await scorer.evaluateValue(traces[5])).toBeGreaterThan(0);
  });

  test.each(['evaluateValue', 'explain'])('%s: the calls after one that waits go on', async (method) => {
    const store = new WatchedStore();
    let isAsked;
    const asked = new Promise((resolve) => {
      isAsked = resolve;
    });
    let answer;
    const answered = new Promise((resolve) => {
      answer = resolve;
    });
    store.compareAndAddBatch = async (entries) => {
      isAsked();
      await answered;
      return LocalStore.prototype.compareAndAddBatch.call(store, entries);
    };
    const scorer = new Scorer({ memory: store });
    const traces = distinct(3, 'waits');
    const first = scorer.evaluateValue(traces[0]);
    await asked;
    const controller = new AbortController();
    const { signal } = controller;
    const second = scorer[method](traces[1], { signal }).catch((reason) => reason);
    // Until it has been embedded, and waits for the store.
    await embed(['after it']);
    await new Promise(setImmediate);
    controller.abort('enough');
    expect(await second).toBe('enough');
    const third = scorer.evaluateValue(traces[2]);
    answer();
    expect(await first).toBeGreaterThan(0);
    expect(await third).toBeGreaterThan(0);
    expect(Array.from(store.memory, ({ label }) => label)).toEqual(['waits-0', 'waits-2']);
  });

  test('a batch that is aborted while its first traces are embedded gives the store nothing', async () => {
    const store = new WatchedStore();
    const scorer = new Scorer({ memory: store });
    const controller = new AbortController();
    const { signal } = controller;
    const batch = scorer.evaluateValues(distinct(64, 'early'), { signal });
    await null;
    await null;
    controller.abort('enough');
    expect(await batch.catch((reason) => reason)).toBe('enough');
    expect(await scorer.explain(makeTrace())).toMatchObject({ noveltyBasis: 'empty-store' });
  });

  test.each([
    ['is aborted', (controller) => controller.abort('enough')],
    [
      'is ended by onProgress',
      () => {
        throw 'enough';
      },
    ],
  ])('a batch that %s gives the store nothing more', async (_, end) => {
    const store = new WatchedStore();
    const scorer = new Scorer({ memory: store });
    const controller = new AbortController();
    const { signal } = controller;
    const onProgress = ({ done }) => done === 5 && end(controller);
    const batch = scorer.evaluateValues(distinct(300, 'stop'), { signal, onProgress });
    expect(await batch.catch((reason) => reason)).toBe('enough');
    const given = store.calls.reduce((sum, count) => sum + count, 0);
    expect(await scorer.evaluateValue(makeTrace())).toBeGreaterThan(0);
    expect(store.memory.size).toBe(given + 1);
  });
});

const notAMemory = 'options.memory must be a VectorCache, a TraceMemory or a NoveltyStore';
const storeAsFallback = { memory: new LocalStore(), fallback: new LocalStore() };
const cacheWithFallback = { memory: new VectorCache(), fallback: new VectorCache() };
const needless = 'options.fallback is for a NoveltyStore: a memory of this process does not fail';

test.each([
  ['null', { memory: null }, notAMemory],
  ['a string', { memory: 'postgres://' }, notAMemory],
  ['an object', { memory: {} }, 'options.memory.compareAndAdd must be a function'],
  ['a store as a fallback', storeAsFallback, 'options.fallback must be a VectorCache or a TraceMemory'],
  ['a fallback for a memory of this process', cacheWithFallback, needless],
])('%s is refused', (_, options, message) => {
  expect(thrownBy(() => new Scorer(options))).toMatchObject({ code: 'ERR_INVALID_OPTION', message });
});
