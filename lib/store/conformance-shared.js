'use strict';

// Conformance tests for stores of vectors and of traces. A `LocalStore`, which compares exactly, is the reference.

const assert = require('node:assert/strict');
const { randomUUID } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');

const { LocalStore } = require('./local.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour, TraceMemory, VectorCache } from '../../index.js'
 * @import { ConformanceLimits, ConformanceOptions } from '../../conformance.js'
 */

/**
 * @template {NoveltyStore} Store
 * @callback AddTest
 * @param {string} name
 * @param {(store: Store, again: () => Promise<Store>) => Promise<void>} body
 * @param {ConformanceLimits} [limited]
 * @returns {void}
 */

/**
 * The kind of a store's entries.
 *
 * @typedef {object} Kind
 * @property {(id: string | null, seed: number) => NoveltyEntry} entryOf an entry, the same for the same seed, and unlike
 * those of other seeds
 * @property {(id: string | null, seed: number) => NoveltyEntry} similarOf an entry that resembles those of some other seeds
 * @property {(id: string | null, seed: number) => NoveltyEntry} severalOf the same, of several vectors if the store takes them
 * @property {(maxElements?: number) => VectorCache | TraceMemory} memory what a reference is made of
 * @property {{ count: number, batch: number, tolerance: number }} many more entries than a store compares one by one, and the tolerance of
 * similarities of an inexact store, in nine of ten cases
 * @property {string} method of the entries; `other` is another method
 * @property {string} other
 * @property {(whole: NoveltyEntry) => unknown[]} malformed returns malformed variants of an entry
 * @property {(store: NoveltyStore, entry: NoveltyEntry, count: number, call?: { signal?: AbortSignal }) => Promise<StoredNeighbour[]>} nearest
 */

const MODEL = { model: 'conformance', dtype: 'fp32' };

/** Up to this many traces, every store must be exact. */
const FEW = 40;

/** The tolerance of similarities and their parts. */
const TOLERANCE = 1e-6;

/**
 * Adds the tests for both kinds of entries.
 *
 * @template {NoveltyStore} Store
 * @param {AddTest<Store>} add
 * @param {ConformanceOptions<Store>} options
 * @param {Kind} kind
 */
function addSharedTests(add, { openAgain, limits = {}, knowsCalls = false, isExact = true }, kind) {
  const { entryOf, similarOf, severalOf, nearest, method, other, malformed } = kind;
  const makeReference = (/** @type {number} */ maxElements = 1000) =>
    new LocalStore(kind.memory(maxElements));

  /**
   * Compares and adds entries, in two batches and some calls, and expects what a reference says.
   *
   * @param {Store} store
   * @param {NoveltyStore} reference
   * @param {NoveltyEntry[]} entries
   * @param {[first: number, second: number]} parts where the first batch ends, and the second begins
   */
  const assertAdded = async (store, reference, entries, [first, second]) => {
    const expected = [];
    for (const entry of entries) expected.push(await reference.compareAndAdd(entry));
    const comparisons = await store.compareAndAddBatch(entries.slice(0, first));
    for (const entry of entries.slice(first, second)) comparisons.push(await store.compareAndAdd(entry));
    comparisons.push(...(await store.compareAndAddBatch(entries.slice(second))));
    for (const [index, comparison] of comparisons.entries()) {
      assert.equal(comparison.length, expected[index].length);
      for (const [nth, found] of comparison.entries()) assertNeighbour(found, expected[index][nth]);
    }
    assert.equal(await store.size(), await reference.size());
  };

  /**
   * Expects a code for an entry: alone, in a batch and as a query.
   *
   * @param {Store} store
   * @param {NoveltyEntry} entry
   * @param {string} code
   */
  const assertRefused = async (store, entry, code) => {
    await assert.rejects(store.compareAndAdd(entry), { code });
    await assert.rejects(store.compareAndAddBatch([entryOf('whole', 3), entry]), { code });
    await assert.rejects(async () => nearest(store, entry, 1), { code });
  };

  add('an empty store resembles nothing', async (store) => {
    assert.equal(await store.size(), 0);
    assert.deepEqual(await nearest(store, entryOf('a', 1), 3), []);
    assert.deepEqual(await store.compareAndAddBatch([]), []);
    assert.deepEqual(await store.compareAndAdd(entryOf('a', 1)), [null]);
    assert.equal(await store.size(), 1);
  });

  add('an entry is compared with those before it', async (store) => {
    const reference = makeReference();
    const entries = [1, 2, 3, 1, 4, 2].map((seed) => entryOf(`entry ${seed}`, seed));
    await assertAdded(store, reference, entries, [0, 6]);
    const [same] = await nearest(store, entryOf(null, 3), 1);
    assert.equal(same.label, 'entry 3');
    assertNeighbour(same, (await nearest(reference, entryOf(null, 3), 1))[0]);
    assertNear(same.similarity, 1);
  });

  add('a batch is one entry after another', async (store) => {
    const entries = Array.from({ length: FEW }, (_, index) => severalOf(`entry ${index}`, index % 30));
    await assertAdded(store, makeReference(), entries, [25, 28]);
  });

  add('many entries are compared as the reference does', async (store) => {
    const { count, batch, tolerance } = kind.many;
    const reference = makeReference();
    let misses = 0;
    for (let from = 0; from < count; from += batch) {
      const entries = Array.from({ length: batch }, (_, index) =>
        similarOf(`entry ${from + index}`, from + index),
      );
      const comparisons = await store.compareAndAddBatch(entries);
      for (const [index, entry] of entries.entries()) {
        const [[found], [expected]] = [comparisons[index], await reference.compareAndAdd(entry)];
        if (isExact) assertNeighbour(found, expected);
        else if (Math.abs((found?.similarity ?? 0) - (expected?.similarity ?? 0)) > tolerance) misses++;
      }
    }
    assert.ok(misses <= count / 10, `${misses} of ${count} similarities were off by more than ${tolerance}`);
    for (const seed of [0, 100, count - 1]) {
      const found = await nearest(store, similarOf(null, seed), 10);
      assert.equal(found[0].label, `entry ${seed}`);
      assertNear(found[0].similarity, 1);
      assert.equal(found.length, 10);
    }
    assert.equal(await store.size(), count);
  });

  add('the most similar come first, and nothing is stored', async (store) => {
    const reference = makeReference();
    const entries = Array.from({ length: 12 }, (_, seed) => similarOf(`entry ${seed}`, seed));
    await assertAdded(store, reference, entries, [12, 12]);
    const wanted = await nearest(reference, similarOf(null, 20), 12);
    for (const count of [0, 1, 5, 50]) {
      const found = await nearest(store, similarOf(null, 20), count);
      assert.equal(found.length, Math.min(count, 12));
      for (const [rank, neighbour] of found.entries()) assertNeighbour(neighbour, wanted[rank]);
    }
    assert.equal(await store.size(), 12);
  });

  add('an entry may be changed after the call', async (store) => {
    const entry = entryOf('a', 1);
    entry.vectors = entry.vectors.map((vector) => vector.slice());
    const adding = store.compareAndAdd(entry);
    entry.words?.fill(0);
    for (const vector of entry.vectors) vector.fill(0);
    await adding;
    const [neighbour] = await store.compareAndAdd(entryOf('b', 1));
    assert.equal(neighbour?.label, 'a');
    assertNear(neighbour?.similarity, 1);
  });

  if (entryOf(null, 1).model !== null) {
    add('entries of another model are refused', async (store) => {
      await store.compareAndAdd(entryOf('a', 1));
      for (const model of [
        { ...MODEL, model: 'other' },
        { ...MODEL, dtype: 'q8' },
      ]) {
        await assertRefused(store, { ...entryOf('b', 2), model }, 'ERR_STORE_OTHER_MODEL');
      }
      assert.equal(await store.size(), 1);
    });
  }

  add('entries of another method are refused', async (store) => {
    await store.compareAndAdd({ ...entryOf('a', 1), method });
    await assertRefused(store, { ...entryOf('b', 2), method: other }, 'ERR_STORE_OTHER_METHOD');
    assert.equal(await store.size(), 1);
    // An unknown method is compatible with every method.
    await store.compareAndAdd({ ...entryOf('d', 4), method: undefined });
    assert.equal((await nearest(store, { ...entryOf(null, 1), method: undefined }, 5)).length, 2);
    assert.equal((await nearest(store, { ...entryOf(null, 1), method }, 5)).length, 2);
  });

  add('a malformed entry is refused, and the batch with it', async (store) => {
    const whole = entryOf('whole', 1);
    for (const broken of /** @type {NoveltyEntry[]} */ (malformed(whole))) {
      await assert.rejects(store.compareAndAdd(broken), Error);
      await assert.rejects(store.compareAndAddBatch([whole, broken]), Error);
    }
    assert.equal(await store.size(), 0);
    assert.deepEqual(await store.compareAndAdd(whole), [null]);
  });

  add('an entry with a long id is stored with its batch, or neither is', async (store) => {
    const long = entryOf('a'.repeat(1025), 1);
    const isTaken = await store.compareAndAddBatch([entryOf('whole', 1), long]).then(
      () => true,
      () => false,
    );
    assert.equal(await store.size(), isTaken ? 2 : 0);
  });

  add('labels come back as they are', async (store) => {
    const labels = [
      null,
      '',
      "'; DROP TABLE x; --",
      '"\\{},',
      'déjà vu 𝒳 名前',
      'a'.repeat(1024),
      '\n\t\u0001',
    ];
    const entries = labels.map((id, index) => entryOf(id, index));
    await store.compareAndAddBatch(entries);
    const comparisons = await store.compareAndAddBatch(entries);
    assert.deepEqual(
      comparisons.map(([neighbour]) => neighbour?.label),
      labels,
    );
  });

  add('of entries that are the same and come at once, one is new', async (store) => {
    const comparisons = await Promise.all(
      Array.from({ length: 20 }, (_, index) => store.compareAndAdd(entryOf(`copy ${index}`, 1))),
    );
    assert.equal(comparisons.filter(([neighbour]) => neighbour === null).length, 1);
    for (const [neighbour] of comparisons) if (neighbour) assertNear(neighbour.similarity, 1);
    assert.equal(await store.size(), 20);
  });

  add('a signal that has aborted stops a call before it begins', async (store) => {
    const reason = new Error('not any more');
    const signal = AbortSignal.abort(reason);
    const isReason = (/** @type {unknown} */ error) => error === reason;
    await assert.rejects(store.compareAndAdd(entryOf('a', 1), { signal }), isReason);
    await assert.rejects(store.compareAndAddBatch([entryOf('a', 1)], { signal }), isReason);
    await assert.rejects(async () => nearest(store, entryOf('a', 1), 1, { signal }), isReason);
    await assert.rejects(store.size({ signal }), isReason);
    assert.equal(await store.size(), 0);
  });

  add('a call that a signal stops has stored nothing, one that it does not stop has', async (store) => {
    const signals = Array.from({ length: 20 }, () => new AbortController());
    const reason = new Error('not any more');
    const settled = Promise.allSettled(
      signals.map(({ signal }, index) => store.compareAndAdd(entryOf(`entry ${index}`, index), { signal })),
    );
    for (const controller of signals) {
      await new Promise(setImmediate);
      controller.abort(reason);
    }
    const outcomes = await settled;
    for (const outcome of outcomes) if (outcome.status === 'rejected') assert.equal(outcome.reason, reason);
    assert.equal(await store.size(), outcomes.filter(({ status }) => status === 'fulfilled').length);
  });

  if (knowsCalls) {
    add('a call that is made twice at once is stored once', async (store) => {
      const call = randomUUID();
      const made = Array.from({ length: 4 }, () => store.compareAndAddBatch([entryOf('a', 1)], { call }));
      for (const comparisons of await Promise.all(made)) assert.deepEqual(comparisons, [[null]]);
      assert.equal(await store.size(), 1);
    });

    add('a call that is made twice is stored once', async (store) => {
      await store.compareAndAdd(entryOf('before', 1));
      const batch = [entryOf('a', 2), entryOf('b', 3)];
      const [call, single] = [randomUUID(), randomUUID()];
      const first = await store.compareAndAddBatch(batch, { call });
      await store.compareAndAdd(entryOf('between', 4));
      assertSame(await store.compareAndAddBatch(batch, { call }), first);
      assert.equal(await store.size(), 4);
      const alone = await store.compareAndAdd(entryOf('c', 5), { call: single });
      assertSame([await store.compareAndAdd(entryOf('c', 5), { call: single })], [alone]);
      assert.equal(await store.size(), 5);
      // The same entries under another call id count as new entries.
      const [[again]] = await store.compareAndAddBatch(batch, { call: randomUUID() });
      assert.equal(again?.label, 'a');
      assert.equal(await store.size(), 7);
    });
  }

  if (openAgain) {
    add('a memory is shared by all who open it', async (store, again) => {
      const other = await again();
      await store.compareAndAdd({ ...entryOf('a', 1), method });
      const [found] = await other.compareAndAdd(entryOf('b', 1));
      assert.equal(found?.label, 'a');
      assertNear(found?.similarity, 1);
      assert.equal(await store.size(), 2);
      const entry = entryOf('c', 2);
      await assertRefused(other, { ...entry, method: kind.other }, 'ERR_STORE_OTHER_METHOD');
      if (entry.model === null) return;
      await assertRefused(other, { ...entry, model: { ...MODEL, dtype: 'q8' } }, 'ERR_STORE_OTHER_MODEL');
    });

    add('of entries that are the same and come at once from several, one is new', async (store, again) => {
      const stores = [store, await again(), await again(), await again()];
      for (let round = 0; round < 24; round++) {
        const comparisons = await Promise.all(
          stores.map((each, index) => each.compareAndAdd(entryOf(`${round}-${index}`, round))),
        );
        const news = comparisons.filter(([neighbour]) => neighbour === null || neighbour.similarity < 0.9);
        assert.equal(news.length, 1, `round ${round}`);
      }
      assert.equal(await store.size(), 96);
    });
  }

  if (limits.maxElements) {
    add(
      'the oldest are displaced',
      async (store) => {
        const entries = Array.from({ length: 30 }, (_, index) => severalOf(`entry ${index}`, index % 12));
        await assertAdded(store, makeReference(10), entries, [15, 30]);
        assert.equal((await nearest(store, entryOf(null, 1), 50)).length, 10);
      },
      { maxElements: 10 },
    );
  }

  if (limits.ttlMs) {
    add(
      'entries expire',
      async (store) => {
        await store.compareAndAdd(entryOf('a', 1));
        // Waits longer than necessary, because the clocks differ.
        await sleep(400);
        assert.equal(await store.size(), 0);
        assert.deepEqual(await nearest(store, entryOf('b', 1), 1), []);
        assert.deepEqual(await store.compareAndAdd(entryOf('b', 1)), [null]);
      },
      { ttlMs: 300 },
    );
  }
}

/**
 * Expects the right neighbour, and its parts if it has them. Labels are compared only without a tie.
 *
 * @param {StoredNeighbour | null} found
 * @param {StoredNeighbour | null} expected
 */
function assertNeighbour(found, expected) {
  if (expected === null || found === null) return assert.deepEqual(found, expected);
  assertNear(found.similarity, expected.similarity);
  if (found.label !== expected.label || expected.lexical === undefined) return;
  assertNear(found.lexical, expected.lexical);
  assertNear(found.contained, expected.contained);
  if (expected.embedded === null) assert.equal(found.embedded ?? null, null);
  else assertNear(found.embedded, expected.embedded);
}

/**
 * @param {number | null | undefined} found
 * @param {number | null | undefined} expected
 */
function assertNear(found, expected) {
  const isNear = Math.abs((found ?? Number.NaN) - (expected ?? Number.NaN)) <= TOLERANCE;
  assert.ok(isNear, `a similarity of ${found} instead of ${expected}`);
}

/**
 * Expects the same answer as before.
 *
 * @param {NoveltyComparison[]} found
 * @param {NoveltyComparison[]} expected
 */
function assertSame(found, expected) {
  const labels = (/** @type {NoveltyComparison[]} */ all) =>
    all.map((each) => each.map((neighbour) => neighbour?.label));
  assert.deepEqual(labels(found), labels(expected));
  for (const [index, comparison] of found.entries()) {
    for (const [nth, neighbour] of comparison.entries()) {
      if (neighbour !== null) assertNear(neighbour.similarity, expected[index][nth]?.similarity);
    }
  }
}

/**
 * Returns a number from 0 to 1 that looks random, the same for the same numbers.
 *
 * @param {number} seed
 * @param {number} nth
 */
function randomNumber(seed, nth) {
  return Math.abs(Math.sin(seed * 12.9898 + nth * 78.233) * 43758.5453) % 1;
}

module.exports = { MODEL, TOLERANCE, addSharedTests, assertNear, randomNumber };
