'use strict';

// What every novelty store must do, whether its entries are vectors or traces. Nothing here loads the addon.

const assert = require('node:assert/strict');
const { randomUUID } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');

/**
 * @import { NoveltyEntry, NoveltyStore, StoredNeighbour } from '../../index.js'
 * @import { ConformanceLimits, ConformanceOptions } from '../../conformance.js'
 */

/**
 * Adds a test of a new store.
 *
 * @template {NoveltyStore} Store
 * @callback AddTest
 * @param {string} name
 * @param {(store: Store, again: () => Promise<Store>) => Promise<void>} body
 * @param {ConformanceLimits} [limited]
 * @returns {void}
 */

/**
 * What entries a store has.
 *
 * @template {NoveltyStore} Store
 * @typedef {object} Kind
 * @property {(id: string | null, seed: number) => NoveltyEntry} entryOf an entry, the same for the same seed, and hardly
 * like one of another seed
 * @property {(store: Store, entry: NoveltyEntry, count: number, call?: { signal?: AbortSignal }) => Promise<StoredNeighbour[]>} nearest
 */

/** The model of all embeddings. */
const MODEL = { model: 'conformance', dtype: 'fp32' };

/** What similarities and their parts may differ by from those in double precision. */
const TOLERANCE = 1e-6;

/**
 * Adds the tests that do not depend on what an entry is.
 *
 * @template {NoveltyStore} Store
 * @param {AddTest<Store>} add
 * @param {ConformanceOptions<Store>} options
 * @param {Kind<Store>} kind
 */
function addSharedTests(add, { openAgain, limits = {}, knowsCalls = false }, { entryOf, nearest }) {
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
  }

  if (openAgain) {
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

  if (limits.ttlMs) {
    add(
      'entries expire',
      async (store) => {
        await store.compareAndAdd(entryOf('a', 1));
        // Longer than it has to be: the clocks are different ones.
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
 * @param {number | null | undefined} found
 * @param {number | null | undefined} expected
 */
function assertNear(found, expected) {
  const isNear = Math.abs((found ?? Number.NaN) - (expected ?? Number.NaN)) <= TOLERANCE;
  assert.ok(isNear, `a similarity of ${found} instead of ${expected}`);
}

module.exports = { MODEL, TOLERANCE, addSharedTests, assertNear };
