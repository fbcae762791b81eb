'use strict';

// A scorer with a `fallback` through the public API: which traces the store gets after an outage, and what `flush` says.

const { LocalStore, Scorer, TraceMemory } = require('..');
const { stopClock } = require('./support/clock.js');
const { makeTrace } = require('./support/make-trace.js');

const traces = (from, to) =>
  Array.from({ length: to - from }, (_, index) => ({ ...makeTrace({ steps: [] }), id: `${from + index}` }));
const failure = (code) => Object.assign(new Error('the store fails'), { code });
const rejection = (promise) =>
  promise.then(
    () => undefined,
    (error) => error,
  );

/** A store of traces that records the calls it stores, and rejects with what `fail` returns for the ids of a call. */
class RecordingStore extends LocalStore {
  stored = [];
  fail = () => undefined;

  async compareAndAddBatch(entries, { call }) {
    const ids = entries.map(({ id }) => id);
    const error = this.fail(ids, call);
    if (error !== undefined) throw error;
    this.stored.push({ ids, call });
    return entries.map(() => [null]);
  }

  get ids() {
    return this.stored.flatMap(({ ids }) => ids);
  }
}

describe('a scorer with a fallback', () => {
  const { emitWarning } = process;
  let clock;
  let warnings;
  let store;
  let scorer;

  beforeEach(() => {
    clock = stopClock();
    warnings = [];
    process.emitWarning = (message, { code }) => warnings.push({ message, code });
    store = new RecordingStore(new TraceMemory());
    // Comparing with one trace is fast, and these tests are not about scores.
    const memory = new TraceMemory({ maxElements: 1 });
    scorer = new Scorer({ memory: store, fallback: memory });
  });
  afterEach(() => {
    clock.restore();
    process.emitWarning = emitWarning;
  });

  test('flush sends the newest 10,000 missed traces, rejects with the number of dropped ones once, and a warning precedes it', async () => {
    store.fail = () => failure('ERR_STORE_UNAVAILABLE');
    await scorer.evaluateValues(traces(0, 10_000));
    expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE_UNAVAILABLE']);
    await scorer.evaluateValues(traces(10_000, 10_200));
    expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE_UNAVAILABLE', 'ERR_STORE_DROPPED']);
    // While the store fails, its error comes first.
    expect(await rejection(scorer.flush())).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });

    store.fail = () => undefined;
    const error = await rejection(scorer.flush());
    expect(error).toBeInstanceOf(Error);
    expect(error.code).toBe('ERR_STORE_DROPPED');
    const dropped = 10_200 - store.ids.length;
    expect(dropped).toBeGreaterThanOrEqual(200);
    expect(dropped).toBeLessThan(200 + 64);
    expect(error.message).toContain(`${dropped} of the traces`);
    expect(store.ids.map(Number).sort((one, other) => one - other)).toEqual(
      Array.from({ length: 10_200 - dropped }, (_, index) => dropped + index),
    );

    expect(await rejection(scorer.flush())).toBe(undefined);
  });

  test('each outage in which traces are dropped is told by a warning of its own', async () => {
    for (let outage = 0; outage < 2; outage++) {
      store.fail = () => failure('ERR_STORE_UNAVAILABLE');
      await scorer.evaluateValues(traces(0, 10_200));
      store.fail = () => undefined;
      expect(await rejection(scorer.flush())).toMatchObject({ code: 'ERR_STORE_DROPPED' });
    }
    const outage = ['ERR_STORE_UNAVAILABLE', 'ERR_STORE_DROPPED'];
    expect(warnings.map(({ code }) => code)).toEqual([...outage, ...outage]);
  });

  test('a full queue drops the oldest batch also after that batch was sent again in vain', async () => {
    store.fail = () => failure('ERR_STORE_UNAVAILABLE');
    await scorer.evaluateValues(traces(0, 10_000));
    for (let attempt = 0; attempt < 3; attempt++) await rejection(scorer.flush());
    await scorer.evaluateValues(traces(10_000, 10_200));
    store.fail = () => undefined;
    await rejection(scorer.flush());
    const oldest = Math.min(...store.ids.map(Number));
    expect(oldest).toBeGreaterThanOrEqual(200);
    expect(store.ids).toHaveLength(10_200 - oldest);
  });

  test('a call that the store has stored already is neither sent under another id nor taken for a refusal', async () => {
    let lost;
    store.fail = (ids, call) => {
      if (call === lost) return failure('ERR_STORE_ALREADY_STORED');
      if (lost !== undefined) return undefined;
      // The store has the traces, and the answer is lost.
      lost = call;
      store.stored.push({ ids, call });
      return failure('ERR_STORE_UNAVAILABLE');
    };
    await scorer.evaluateValues(traces(0, 3));
    expect(await rejection(scorer.flush())).toBe(undefined);
    expect(store.ids).toEqual(['0', '1', '2']);
    expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE_UNAVAILABLE']);
  });

  test('a trace that the store has stored in its first call is compared with the memory, and not sent again', async () => {
    store.fail = (ids, call) => {
      store.stored.push({ ids, call });
      return failure('ERR_STORE_ALREADY_STORED');
    };
    const { noveltyBasis } = await scorer.explain(traces(0, 1)[0]);
    expect(noveltyBasis).toBe('empty-cache');
    await scorer.flush();
    expect(store.ids).toEqual(['0']);
    expect(warnings).toEqual([]);
  });
});
