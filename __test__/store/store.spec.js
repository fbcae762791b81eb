'use strict';

// A scorer whose memory lies elsewhere: scores, order, failures, and a fallback.

const path = require('node:path');

const { Scorer, TraceMemory, embed } = require('../..');
const { StoreWithFallback, flush } = require('../../lib/store/fallback.js');
const { makeTrace, makeTraces } = require('../support/make-trace.js');
const { rejectionOf } = require('../support/refusals.js');
const { runForResult } = require('../support/run-script.js');
const { MemoryStore, entriesOf } = require('./stores.js');
const { warningsWhile } = require('../support/warnings.js');

const failure = (code, message = 'it fails') => Object.assign(new Error(message), { code });
const down = () => failure('ERR_STORE_UNAVAILABLE', 'the server does not answer');
const memoryOf = (method) => new TraceMemory({ method });
/** A value as a store gives it, which compares in another order of operations. */
const near = (value) => expect.closeTo(value, 6);
const valuesOf = (scores) => scores.map(({ value }) => value);

/** Waits for something that happens by itself. */
async function until(isSo) {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Has pauses of at least a second end when they are told to. `delays` are those of the pauses so far. */
function holdTimers() {
  const { setTimeout: original } = globalThis;
  const delays = [];
  let fire = () => {};
  globalThis.setTimeout = (act, delay, ...rest) => {
    if (delay < 1000) return original(act, delay, ...rest);
    delays.push(delay);
    fire = act;
    const timer = original(() => {}, 0);
    return timer;
  };
  return { delays, fire: () => fire(), restore: () => Object.assign(globalThis, { setTimeout: original }) };
}

describe.each(['prefix', 'lexical', 'full'])('Scorer with a store of method %s', (method) => {
  test('Scorer with a store gives the scores of a memory, and asks for several traces at a time', async () => {
    const store = new MemoryStore(method);
    const [scorer, expected] = [new Scorer({ memory: store }), new Scorer({ memory: memoryOf(method) })];
    const traces = [...makeTraces(40, 'same'), ...makeTraces(10, 'same')];
    const values = await Promise.all(traces.map(async (trace) => (await scorer.score(trace)).value));
    expect(values).toEqual(valuesOf(await expected.scoreAll(traces)).map(near));
    const progress = [];
    const onProgress = ({ done }) => progress.push(done);
    const all = valuesOf(await scorer.scoreAll(traces, { onProgress }));
    expect(all).toEqual(valuesOf(await expected.scoreAll(traces)).map(near));
    expect(progress).toEqual(traces.map((_, index) => index + 1));
    for (const remember of [false, true]) {
      const { value, nearest, basis } = await scorer.score(traces[3], { remember });
      const theirs = await expected.score(traces[3], { remember });
      expect([value, nearest.id, basis]).toEqual([near(theirs.value), theirs.nearest.id, 'store']);
      // A store has hashes of words alone.
      expect(nearest).toMatchObject({ sharedWords: null, newWords: null });
    }
    expect(store.ids).toEqual([...traces, ...traces, traces[3]].map(({ id }) => id));
    const batches = store.calls.filter(Number.isInteger);
    expect(batches.length).toBeLessThan(60);
    expect(Math.max(...batches)).toBeLessThanOrEqual(64);
  });
});

test('Scorer without an embedder asks no store of embeddings', async () => {
  const store = new MemoryStore('prefix');
  const scorer = new Scorer({ memory: store, embed: false });
  expect(await scorer.score(makeTrace())).toMatchObject({ basis: 'no-embedder' });
  expect(await scorer.scoreAll(makeTraces(3))).toHaveLength(3);
  expect(store.calls).toEqual([]);
});

test('scoreAll with a store scores and stores the traces before an invalid one', async () => {
  const store = new MemoryStore();
  const traces = [...makeTraces(3), {}, ...makeTraces(2, 'after')];
  const error = await rejectionOf(new Scorer({ memory: store }).scoreAll(traces));
  expect(error).toMatchObject({ code: 'ERR_INVALID_TRACE', message: expect.stringContaining('traces[3]') });
  expect(store.ids).toEqual(['0', '1', '2']);
});

test('scoreAll with a store gives the store nothing more once onProgress throws or the signal aborts', async () => {
  for (const end of [
    (controller) => controller.abort('enough'),
    () => {
      throw 'enough';
    },
  ]) {
    const store = new MemoryStore();
    const scorer = new Scorer({ memory: store });
    const controller = new AbortController();
    const onProgress = ({ done }) => done === 5 && end(controller);
    const batch = scorer.scoreAll(makeTraces(300), { signal: controller.signal, onProgress });
    expect(await rejectionOf(batch)).toBe('enough');
    const given = store.calls.reduce((sum, count) => sum + count, 0);
    expect(given).toBeLessThan(200);
    expect((await scorer.score(makeTrace())).value).toBeGreaterThan(0);
    expect(store.ids).toHaveLength(given + 1);
  }
});

test('a store that fails rejects the calls that need it, and only these, with its error', async () => {
  const store = new MemoryStore('prefix');
  const scorer = new Scorer({ memory: store });
  const error = down();
  store.fail = () => error;
  expect(await rejectionOf(scorer.score(makeTrace()))).toBe(error);
  expect(await rejectionOf(scorer.score(makeTrace(), { remember: false }))).toBe(error);
  expect(await rejectionOf(scorer.scoreAll(makeTraces(3)))).toBe(error);
  expect(await rejectionOf(scorer.score({}))).toMatchObject({ code: 'ERR_INVALID_TRACE' });
  store.fail = () => undefined;
  expect((await scorer.score(makeTrace())).value).toBeGreaterThan(0);
  expect(store.ids).toHaveLength(1);
});

test('a store that fails gets nothing more of the batch', async () => {
  const store = new MemoryStore();
  let failed = 0;
  // The first call has one trace; the others wait meanwhile.
  store.fail = () => (failed++ === 0 ? down() : undefined);
  await rejectionOf(new Scorer({ memory: store }).scoreAll(makeTraces(5)));
  expect(store.ids).toEqual([]);
});

test('an abort keeps traces that were not sent out of a store', async () => {
  const store = new MemoryStore();
  const scorer = new Scorer({ memory: store });
  const traces = makeTraces(30);
  const controller = new AbortController();
  const { signal } = controller;
  const kept = scorer.score(traces[0]);
  const rest = traces.slice(1).map((trace) => scorer.score(trace, { signal }));
  controller.abort();
  const reasons = await Promise.all(rest.map((call) => call.catch(({ name }) => name)));
  await kept;
  expect(new Set(reasons)).toEqual(new Set(['AbortError']));
  expect(store.ids).toEqual(['0']);
});

test('an abort after a trace was sent to a store leaves the call its score', async () => {
  const controller = new AbortController();
  const memory = new MemoryStore();
  memory.fail = () => void controller.abort();
  const scorer = new Scorer({ memory });
  expect((await scorer.score(makeTrace(), { signal: controller.signal })).basis).toBe('empty-store');
  expect(memory.known).toHaveLength(1);
});

test('an abort of a call that waits for a store leaves the calls after it alone', async () => {
  const store = new MemoryStore('prefix');
  let answer;
  const answered = new Promise((resolve) => {
    answer = resolve;
  });
  const { compare } = MemoryStore.prototype;
  store.compare = async (...args) => {
    await answered;
    return compare.apply(store, args);
  };
  const scorer = new Scorer({ memory: store });
  const traces = makeTraces(3);
  const first = scorer.score(traces[0]);
  const controller = new AbortController();
  const second = scorer.score(traces[1], { signal: controller.signal }).catch((reason) => reason);
  // Until it has been embedded, and waits for the store.
  await embed(['after it']);
  await new Promise(setImmediate);
  controller.abort('enough');
  const third = scorer.score(traces[2]);
  answer();
  expect(await second).toBe('enough');
  expect((await first).value).toBeGreaterThan(0);
  expect((await third).value).toBeGreaterThan(0);
  expect(store.ids).toEqual(['0', '2']);
});

test('calls behind a store that never answers do not keep the process alive', async () => {
  const { result, stderr } = await runForResult(`
    const silent = () => new Promise(() => {});
    const store = { method: 'lexical', compare: silent, size: silent };
    const scorer = new kp.Scorer({ memory: store });
    scorer.score(makeTrace());
    scorer.score({}).catch(() => process.exit(6));
    process.on('exit', () => console.log(JSON.stringify('ended')));
  `);
  expect({ result, stderr }).toEqual({ result: 'ended', stderr: '' });
});

describe('a fallback', () => {
  let timers;
  beforeEach(() => {
    timers = holdTimers();
  });
  afterEach(() => timers.restore());

  test.each(['prefix', 'lexical', 'full'])(
    'a fallback of method %s answers while the store fails, which gets all traces once',
    async (method) => {
      const store = new MemoryStore(method, memoryOf(method));
      const scorer = new Scorer({ memory: store });
      const expected = new Scorer({ memory: memoryOf(method) });
      const traces = makeTraces(12);
      const warnings = await warningsWhile(async () => {
        for (const [index, trace] of traces.entries()) {
          store.fail = () => (index >= 4 && index < 8 ? down() : undefined);
          const { value, basis } = await scorer.score(trace);
          expect(value).toBeCloseTo((await expected.score(trace)).value, 6);
          expect(basis).toBe(index === 0 ? 'empty-store' : index < 4 ? 'store' : 'memory');
          // A duplicate is found, whether the store or the memory answers.
          const again = await scorer.score(trace, { remember: false });
          expect(again.nearest).toMatchObject({ id: trace.id });
        }
        timers.fire();
        await until(() => store.ids.length === traces.length);
        expect((await scorer.score(traces[0])).basis).toBe('store');
      });
      expect(store.ids).toEqual([...traces, traces[0]].map(({ id }) => id));
      const message = expect.stringContaining('the server does not answer');
      expect(warnings).toEqual([{ message, type: 'KnowledgePulseWarning', code: 'ERR_STORE_UNAVAILABLE' }]);
    },
  );

  test('a fallback tries a failed store after pauses that double from a second to half a minute, and begins anew after it worked', async () => {
    const store = new MemoryStore('lexical', memoryOf('lexical'));
    const scorer = new Scorer({ memory: store });
    await warningsWhile(async (warnings) => {
      store.fail = down;
      const pauses = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
      for (const [attempt] of pauses.entries()) {
        if (attempt === 0) await scorer.score(makeTrace());
        else timers.fire();
        await until(() => timers.delays.length > attempt);
      }
      expect(timers.delays).toEqual(pauses);
      expect(store.calls).toHaveLength(pauses.length);
      store.fail = () => undefined;
      await flush(store);
      store.fail = down;
      await scorer.score(makeTrace());
      expect(timers.delays.at(-1)).toBe(1000);
      expect(warnings).toHaveLength(2);
    });
  });

  test('a fallback sends missed traces under the id of the call whose answer was lost', async () => {
    const store = new MemoryStore('lexical', memoryOf('lexical'));
    const scorer = new Scorer({ memory: store });
    const { compare } = MemoryStore.prototype;
    store.compare = async (...args) => {
      await compare.apply(store, args);
      store.compare = compare;
      throw down();
    };
    await warningsWhile(async () => {
      await scorer.scoreAll(makeTraces(3));
      await flush(store);
    });
    expect(store.ids).toEqual(['0', '1', '2']);
    expect(store.calls.length).toBeGreaterThan(store.stored.size);
  });

  test('a fallback keeps the newest 10,000 traces, warns of the first that is dropped, and flush tells their number once', async () => {
    const store = new MemoryStore();
    const fallback = new StoreWithFallback(store, true);
    store.compare = async (entries, call) => {
      const error = store.fail();
      if (error !== undefined) throw error;
      store.stored.set(call, { ids: entries.map(({ id }) => id) });
      return entries.map(() => null);
    };
    const [entry] = await entriesOf(makeTraces(1));
    let number = 0;
    const miss = async (count) => {
      for (let batch = 0; batch < count / 50; batch++) {
        const entries = Array.from({ length: 50 }, () => ({
          ...entry,
          id: `${number++}`,
          embedded: undefined,
        }));
        await fallback.compare(entries, `${number}`);
      }
    };
    const warnings = await warningsWhile(async () => {
      for (let outage = 0; outage < 2; outage++) {
        store.fail = down;
        await miss(10_200);
        // While the store fails, its error comes first.
        expect(await rejectionOf(fallback.flush())).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });
        store.fail = () => undefined;
        store.stored.clear();
        const error = await rejectionOf(fallback.flush());
        expect(error).toMatchObject({
          code: 'ERR_STORE_DROPPED',
          message: expect.stringContaining('200 of'),
        });
        expect(store.ids.map(Number)).toEqual(
          Array.from({ length: 10_000 }, (_, index) => number - 10_000 + index),
        );
        await fallback.flush();
      }
    });
    const outage = ['ERR_STORE_UNAVAILABLE', 'ERR_STORE_DROPPED'];
    expect(warnings.map(({ code }) => code)).toEqual([...outage, ...outage]);
  });

  test.each(['ERR_STORE', 'ERR_MEMORY_MISMATCH'])(
    'a fallback does not send traces again that the store refuses with %s, and warns once',
    async (code) => {
      const store = new MemoryStore('lexical', memoryOf('lexical'));
      const scorer = new Scorer({ memory: store });
      const [good, bad, worse] = makeTraces(3);
      store.fail = (ids) => (ids.includes(good.id) ? undefined : failure(code, 'refused'));
      const warnings = await warningsWhile(async () => {
        expect((await scorer.score(bad)).basis).toBe('empty-memory');
        expect((await scorer.score(worse)).basis).toBe('memory');
        expect((await scorer.score(good)).basis).toBe('empty-store');
        const lost = expect.stringContaining(
          '2 of the traces that it should have, the first because refused',
        );
        expect(await rejectionOf(flush(store))).toMatchObject({ code: 'ERR_STORE_DROPPED', message: lost });
        expect(store.ids).toEqual([good.id]);
        // Also one that it has missed.
        store.fail = down;
        await scorer.score(bad);
        store.fail = (ids) => (ids.length === 0 ? undefined : failure(code, 'refused'));
        expect(await rejectionOf(flush(store))).toMatchObject({ code: 'ERR_STORE_DROPPED' });
        await flush(store);
      });
      expect(store.ids).toEqual([good.id]);
      expect(warnings.map((warning) => warning.code)).toEqual([code, 'ERR_STORE_UNAVAILABLE', code]);
    },
  );

  test('a fallback that refuses a trace rejects the call, and the store is not asked', async () => {
    const fallback = await TraceMemory.load(path.join(__dirname, '..', 'support', 'other-model.safetensors'));
    const store = new MemoryStore('prefix', fallback);
    const error = await rejectionOf(new Scorer({ memory: store }).score(makeTrace()));
    expect(error).toMatchObject({ code: 'ERR_MEMORY_MISMATCH' });
    expect(store.calls).toEqual([]);
  });
});
