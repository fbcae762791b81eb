'use strict';

// A scorer that goes on without its store, and what the store gets afterwards.

const { LocalStore, Scorer, VectorCache } = require('..');
const { StoreWithFallback } = require('../lib/store/fallback.js');
const { stopClock } = require('./support/clock.js');
const { makeTrace } = require('./support/make-trace.js');
const { runForResult } = require('./support/run-script.js');
const { randomVector } = require('./support/vectors.js');

const trace = (id) => ({ ...makeTrace({ objective: `task ${id}` }), id });
const labels = (store) => Array.from(store.memory, ({ label }) => label);
const errorOf = (promise) => promise.then(() => undefined).catch((reason) => reason);
const failure = (code, message = 'it fails') => Object.assign(new Error(message), { code });

/** Tells what it is given, and fails with what `fail` returns for that. */
class WatchedStore extends LocalStore {
  calls = [];
  fail = () => undefined;

  async compareAndAddBatch(entries, options) {
    const ids = entries.map(({ id }) => id);
    this.calls.push({ ids, call: options.call });
    await new Promise(setImmediate);
    const error = this.fail(ids);
    if (error !== undefined) throw error;
    return super.compareAndAddBatch(entries, options);
  }
}

const down = () => failure('ERR_STORE_UNAVAILABLE', 'the server does not answer');

/** A scorer on a store, and what is warned of in a test. */
let store;
let scorer;
let fallback;
/** What is asked of this together goes together, where a scorer embeds first. */
let memory;
let warnings;
const { emitWarning } = process;
beforeEach(() => {
  warnings = [];
  process.emitWarning = (message, { code }) => warnings.push({ message, code });
  store = new WatchedStore();
  fallback = new VectorCache();
  scorer = new Scorer({ memory: store, fallback });
  memory = new StoreWithFallback(store, new VectorCache());
});
afterEach(() => {
  process.emitWarning = emitWarning;
});

/** Waits for something that happens by itself. */
async function until(isSo) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const all = (scorer, ...ids) => Promise.all(ids.map((id) => scorer.explain(trace(id))));

const MODEL = { model: 'm', dtype: 'fp32' };
const ask = (memory, ...ids) =>
  Promise.all(ids.map((id, seed) => memory.ask({ id, vectors: [randomVector(seed)], model: MODEL }, true)));
const bases = (breakdowns) => breakdowns.map(({ noveltyBasis }) => noveltyBasis.replace('empty-', ''));

describe('an entry that the store refuses for good', () => {
  const refusing = (code) => (ids) => (ids.includes('bad') ? failure(code, 'the id is refused') : undefined);

  test.each(['ERR_STORE', 'ERR_INVALID_ENTRY', 'ERR_STORE_OTHER_MODEL'])(
    '%s: other batches are still sent',
    async (code) => {
      store.fail = refusing(code);
      expect(bases(await all(scorer, 'a', 'bad', 'b'))).toEqual(['store', 'cache', 'store']);
      expect(bases(await all(scorer, 'c'))).toEqual(['store']);
      await scorer.flush();
      expect(labels(store)).toEqual(['a', 'b', 'c']);
      // It is remembered here.
      const { nearest } = await new Scorer({ memory: fallback }).explain(trace('bad'));
      expect(nearest.label).toBe('bad');
      expect(warnings).toEqual([{ message: expect.stringContaining('the id is refused'), code }]);
    },
  );

  test('does not affect other entries of the batch', async () => {
    store.fail = refusing('ERR_STORE');
    const answers = await ask(memory, 'a', 'bad', 'b');
    expect(answers.map(({ isLocal }) => isLocal)).toEqual([false, true, false]);
    expect(store.calls.map(({ ids }) => ids)).toEqual([['a', 'bad', 'b'], ['a'], ['bad'], ['b']]);
    await memory.flush();
    expect(labels(store)).toEqual(['a', 'b']);
  });

  test('is dropped when it is sent again, and other entries are not', async () => {
    store.fail = down;
    await ask(memory, 'a', 'bad', 'b');
    await ask(memory, 'c');
    store.fail = refusing('ERR_STORE');
    expect(await errorOf(memory.flush())).toMatchObject({ code: 'ERR_STORE', message: 'the id is refused' });
    expect(labels(store)).toEqual(['a', 'b', 'c']);
    await memory.flush();
    expect(store.calls.filter(({ ids }) => ids.includes('bad'))).toHaveLength(3);
    expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE_UNAVAILABLE', 'ERR_STORE']);
  });

  test('may be told by any error, if the store works otherwise', async () => {
    store.fail = (ids) => (ids.includes('bad') ? 'no' : undefined);
    await all(scorer, 'bad');
    await all(scorer, 'a');
    const error = await errorOf(scorer.flush());
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ code: 'ERR_STORE', message: 'the store failed: no', cause: 'no' });
    for (let round = 0; round < 3; round++) {
      expect(await errorOf(scorer.flush())).toMatchObject({ code: 'ERR_STORE' });
      // It takes the others.
      expect(bases(await all(scorer, `b${round}`))).toEqual(['store']);
    }
    await scorer.flush();
    expect(labels(store)).toEqual(['a', 'b0', 'b1', 'b2']);
  });

  test('a store that refuses everything is left alone', async () => {
    store.fail = () => failure('ERR_STORE', 'permission denied');
    for (let index = 0; index < 10; index++) await all(scorer, `${index}`);
    expect(store.calls.length).toBeLessThan(10);
    expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE', 'ERR_STORE']);
  });

  test('an answer without sense is no reason to send it twice', async () => {
    const { compareAndAddBatch } = WatchedStore.prototype;
    store.compareAndAddBatch = async (...args) => {
      await compareAndAddBatch.apply(store, args);
      return 'done';
    };
    expect(bases(await all(scorer, 'a', 'b'))).toEqual(['cache', 'cache']);
    await scorer.flush();
    expect(labels(store)).toEqual(['a', 'b']);
    expect(warnings).toHaveLength(1);
  });
});

test('a store that fails is asked again after pauses that double up to half a minute', async () => {
  const clock = stopClock();
  try {
    store.fail = down;
    let number = 0;
    const isAsked = async () => {
      const id = `${number++}`;
      await ask(memory, id);
      return store.calls.some(({ ids }) => ids.includes(id));
    };
    expect(await isAsked()).toBe(true);
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      clock.advance(seconds * 1000 - 1);
      expect(await isAsked()).toBe(false);
      clock.advance(1);
      expect(await isAsked()).toBe(true);
    }
  } finally {
    clock.restore();
  }
});

test('an entry that the store does not take is sent again after pauses that double', async () => {
  const clock = stopClock();
  try {
    store.fail = (ids) => (ids.includes('slow') ? failure('ERR_STORE_TIMEOUT') : undefined);
    const timesSent = async () => {
      await ask(memory, 'other');
      await new Promise((resolve) => setTimeout(resolve, 20));
      return store.calls.filter(({ ids }) => ids.includes('slow')).length;
    };
    await ask(memory, 'slow');
    clock.advance(1000);
    expect(await timesSent()).toBe(2);
    for (const [index, seconds] of [1, 2, 4].entries()) {
      clock.advance(seconds * 1000 - 1);
      expect(await timesSent()).toBe(index + 2);
      clock.advance(1);
      expect(await timesSent()).toBe(index + 3);
    }
  } finally {
    clock.restore();
  }
});

describe('entries that the store has missed', () => {
  test('it gets when it works again, though nothing more is asked', async () => {
    store.fail = down;
    await all(scorer, 'a', 'b');
    await all(scorer, 'c');
    store.fail = () => undefined;
    await until(() => store.memory.size === 3);
    expect(labels(store)).toEqual(['a', 'b', 'c']);
  });

  test('it gets as the same calls', async () => {
    store.fail = down;
    await ask(memory, 'a', 'b', 'c');
    // Not asked about these, so they may go together.
    await ask(memory, 'd');
    await ask(memory, 'e', 'f');
    expect(await errorOf(memory.flush())).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });
    store.fail = () => undefined;
    await memory.flush();
    const [first, ...others] = store.calls;
    expect(first.ids).toEqual(['a', 'b', 'c']);
    expect(first.call).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    const same = others.filter(({ ids }) => ids.includes('a'));
    expect(same).toEqual([first, first]);
    const rest = others.filter(({ ids }) => !ids.includes('a'));
    expect(rest.map(({ ids }) => ids)).toEqual([['d', 'e', 'f']]);
    expect(rest[0].call).not.toBe(first.call);
  });

  test('is found all the same', async () => {
    store.fail = (ids) => (ids[0] === 'a' ? failure('ERR_STORE_TIMEOUT') : undefined);
    await ask(memory, 'a');
    await memory.ask({ id: 'b', vectors: [randomVector(7)], model: MODEL }, true);
    expect(await errorOf(memory.flush())).toMatchObject({ code: 'ERR_STORE_TIMEOUT' });
    expect(await errorOf(memory.flush())).toMatchObject({ code: 'ERR_STORE_TIMEOUT' });
    // The store works now, without it.
    expect(labels(store)).toEqual(['b']);
    for (const remember of [false, true]) {
      const entry = { id: 'again', vectors: [randomVector(0), randomVector(7)], model: MODEL };
      const { comparison, isLocal } = await memory.ask(entry, remember);
      expect(isLocal).toBe(false);
      expect(comparison.map(({ label }) => label)).toEqual(['a', 'b']);
    }
    expect(labels(store)).toEqual(['b', 'again', 'again']);
    store.fail = () => undefined;
    await memory.flush();
    expect(labels(store)).toEqual(['b', 'again', 'again', 'a']);
  });

  test('a new question does not wait until all of it is sent', async () => {
    store.fail = down;
    await ask(memory, ...Array.from({ length: 300 }, (_, index) => `${index}`));
    let asked;
    store.fail = () => {
      asked ??= ask(memory, 'later');
    };
    const flushed = memory.flush();
    await until(() => asked !== undefined);
    expect(await asked).toEqual([{ comparison: [expect.anything()], isLocal: false }]);
    expect(store.calls.map(({ ids }) => ids[0]).indexOf('later')).toBe(2);
    await flushed;
    expect(store.memory.size).toBe(301);
    expect(Math.max(...store.calls.map(({ ids }) => ids.length))).toBe(64);
  });

  test('is 10,000 vectors at most, the newest', async () => {
    store.fail = down;
    const memory = new StoreWithFallback(store, new VectorCache({ maxElements: 2 }));
    const vectors = Array.from({ length: 32 }, (_, seed) => randomVector(seed));
    const clock = stopClock();
    try {
      for (let index = 0; index < 400; index++) {
        await memory.ask({ id: `${index}`, vectors, model: MODEL }, true);
      }
    } finally {
      clock.restore();
    }
    const sent = [];
    store.compareAndAddBatch = async (entries) => {
      sent.push(...entries);
      return [];
    };
    expect(await errorOf(memory.flush())).toMatchObject({ code: 'ERR_STORE_DROPPED' });
    expect(sent.length * 32).toBeLessThanOrEqual(10_000);
    expect(sent.length * 32).toBeGreaterThan(10_000 - 65 * 32);
    expect(sent.map(({ id }) => Number(id))).toEqual(sent.map((_, index) => 400 - sent.length + index));
  });

  test.each(Array.from({ length: 20 }, (_, seed) => [seed + 1]))(
    'is all that was not refused, once, whatever fails (%i)',
    async (seed) => {
      let state = seed * 0x9e3779b1;
      const random = (below) => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return (state >>> 0) % below;
      };
      const unknown = new Error('unknown');
      const kinds = { works: [], fails: [down], falters: [() => undefined, down, () => unknown] };
      let mode = 'works';
      store.fail = (ids) => {
        const error = kinds[mode][random(3)]?.();
        const isBad = ids.some((id) => id.startsWith('bad'));
        return error ?? (isBad ? failure('ERR_STORE') : undefined);
      };
      const { compareAndAddBatch } = WatchedStore.prototype;
      const answers = new Map();
      let isBusy = false;
      store.compareAndAddBatch = async (entries, options) => {
        // One call at a time.
        expect(isBusy).toBe(false);
        isBusy = true;
        try {
          const ids = entries.map(({ id }) => id).join();
          const known = answers.get(options.call);
          if (known) {
            expect(known.ids).toBe(ids);
            return known.answer;
          }
          const answer = await compareAndAddBatch.call(store, entries, options);
          answers.set(options.call, { ids, answer });
          // Its answer may be lost.
          if (mode === 'falters' && random(3) === 0) throw down();
          return answer;
        } finally {
          isBusy = false;
        }
      };
      const asked = [];
      const good = [];
      for (let number = 0; number < 100; number++) {
        const action = random(20);
        if (action < 2) mode = ['works', 'fails', 'falters'][random(3)];
        else if (action === 2) memory.flush().catch(() => {});
        else if (action < 5) await new Promise(setImmediate);
        else {
          const id = action === 5 ? `bad ${number}` : `${number}`;
          if (action !== 5) good.push(id);
          asked.push(ask(memory, id));
        }
      }
      const answered = (await Promise.all(asked)).flat();
      expect(answered.every(({ comparison }) => comparison.length === 1)).toBe(true);
      mode = 'works';
      while ((await errorOf(memory.flush())) !== undefined);
      expect(labels(store).sort()).toEqual(good.sort());
    },
  );

  test('does not keep a process from its end', async () => {
    const { result } = await runForResult(`
      const { LocalStore, Scorer, VectorCache } = kp;
      const store = new LocalStore();
      store.compareAndAddBatch = async () => { throw new Error('down'); };
      const scorer = new Scorer({ memory: store, fallback: new VectorCache() });
      process.emitWarning = () => {};
      await scorer.evaluateValue(makeTrace());
      console.log(JSON.stringify('ended'));
    `);
    expect(result).toBe('ended');
  });
});

describe('flush', () => {
  test('has nothing to do without a store, or with one that works', async () => {
    expect(await new Scorer().flush()).toBeUndefined();
    expect(await new Scorer({ embedder: null, memory: new LocalStore() }).flush()).toBeUndefined();
    const store = new WatchedStore();
    const scorer = new Scorer({ memory: store });
    const scored = scorer.evaluateValue(trace('a'));
    await scorer.flush();
    // The calls before it have been made.
    expect(store.memory.size).toBe(1);
    await scored;
    store.fail = down;
    expect(await errorOf(scorer.evaluateValue(trace('b')))).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });
    await scorer.flush();
  });

  test('can be aborted, and is made again', async () => {
    expect(await errorOf(scorer.flush({ signal: 42 }))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    expect(await errorOf(scorer.flush({ signal: AbortSignal.abort('no') }))).toBe('no');
    store.fail = down;
    await all(scorer, 'a');
    store.fail = () => undefined;
    let go;
    const { compareAndAddBatch } = WatchedStore.prototype;
    store.compareAndAddBatch = async (...args) => {
      await new Promise((resolve) => {
        go = resolve;
      });
      return compareAndAddBatch.apply(store, args);
    };
    const controller = new AbortController();
    const flushed = errorOf(scorer.flush({ signal: controller.signal }));
    await until(() => go !== undefined);
    controller.abort('enough');
    expect(await flushed).toBe('enough');
    go();
    await scorer.flush();
    expect(labels(store)).toEqual(['a']);
  });
});

test('a scorer with a fallback adds traces to it, and does not search it while the store answers', async () => {
  const fallback = new VectorCache();
  await new Scorer({ memory: fallback }).evaluateValue(trace('a'));
  const scorer = new Scorer({ memory: new LocalStore(), fallback });
  const { noveltyBasis, dimensions } = await scorer.explain(trace('a'));
  expect({ noveltyBasis, novelty: dimensions.novelty }).toEqual({
    noveltyBasis: 'empty-store',
    novelty: 0.5,
  });
  await scorer.evaluateValue(trace('b'));
  expect(Array.from(fallback, ({ label }) => label)).toEqual(['a', 'a', 'b']);
});

describe.each([
  ['without a fallback', () => undefined],
  ['with a fallback', () => new VectorCache()],
])('%s: to look in a store that does not answer', (_, makeFallback) => {
  test('can be aborted, and does not delay later calls then', async () => {
    const scorer = new Scorer({ memory: store, fallback: makeFallback() });
    await scorer.evaluateValue(trace('a'));
    let given;
    store.nearest = (_vector, _count, _model, options) => {
      given = options.signal;
      return new Promise(() => {});
    };
    const controller = new AbortController();
    const { signal } = controller;
    const looked = errorOf(scorer.explain(trace('a'), { remember: false, signal }));
    await until(() => given !== undefined);
    expect(given.aborted).toBe(false);
    controller.abort('enough');
    expect(await looked).toBe('enough');
    expect({ aborted: given.aborted, reason: given.reason }).toEqual({ aborted: true, reason: 'enough' });
    const { noveltyBasis } = await scorer.explain(trace('b'));
    expect(noveltyBasis).toBe('store');
    expect(warnings).toEqual([]);
  });
});
