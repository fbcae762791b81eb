'use strict';

// Conformance tests for novelty stores.

const assert = require('node:assert/strict');

const { requireOptions } = require('../calls/options.js');
const { DIMENSIONS } = require('../embedding.js');
const { VectorCache } = require('../vector-cache.js');
const { MODEL, TOLERANCE, addSharedTests, assertNear, randomNumber } = require('./conformance-shared.js');
const { addTraceTests } = require('./conformance-traces.js');

const OPTIONS = [
  'createStore',
  'destroyStore',
  'isExact',
  'knowsCalls',
  'limits',
  'novelty',
  'openAgain',
  'test',
];
/**
 * @import { NoveltyEntry, NoveltyStore, StoredNeighbour, VectorModel } from '../../index.js'
 * @import { ConformanceLimits, ConformanceOptions, ConformanceTest } from '../../conformance.js'
 */

/**
 * @template {NoveltyStore} Store
 * @param {ConformanceOptions<Store>} options
 * @returns {ConformanceTest[]}
 */
function noveltyStoreConformance(options) {
  requireOptions(options, OPTIONS);
  const { createStore, destroyStore = () => {}, openAgain, novelty = 'prefix', test } = options;
  /** @type {ConformanceTest[]} */
  const tests = [];

  /**
   * @param {string} name
   * @param {(store: Store, again: () => Promise<Store>) => Promise<void>} body
   * @param {ConformanceLimits} [limited]
   */
  const add = (name, body, limited = {}) => {
    const run = async () => {
      const opened = [await createStore(limited)];
      const again = async () => {
        const store = await /** @type {NonNullable<typeof openAgain>} */ (openAgain)(opened[0]);
        opened.push(store);
        return store;
      };
      try {
        await body(opened[0], again);
      } finally {
        for (const store of opened.reverse()) await destroyStore(store);
      }
    };
    tests.push({ name, run });
  };

  if (novelty === 'prefix') addVectorTests();
  else addTraceTests(add, { ...options, novelty }, vectorOf);
  if (test !== undefined) for (const { name, run } of tests) test(name, run);
  return tests;

  function addVectorTests() {
    addSharedTests(add, options, {
      entryOf,
      similarOf: (id, seed) => ({ ...entryOf(id), vectors: [clusteredVector(seed)] }),
      severalOf: (id, seed) => ({
        ...entryOf(id),
        vectors: Array.from({ length: 1 + (seed % 3) }, (_, nth) => clusteredVector(seed * 3 + nth)),
      }),
      memory: (maxElements) => new VectorCache({ maxElements }),
      many: { count: 640, batch: 64, tolerance: TOLERANCE },
      nearest: (store, { vectors: [vector], model, method }, count, call) =>
        store.nearest(vector, count, /** @type {VectorModel} */ (model), { ...call, method }),
      ...{ method: 'prefix', other: 'full', malformed },
    });

    add('the vectors of an entry are not compared with one another', async (store) => {
      assert.deepEqual(await store.compareAndAdd(entryOf('a', 1, 1, 1)), [null, null, null]);
      const [first, second] = await store.compareAndAddBatch([entryOf('b', 2, 2), entryOf('c', 2, 1)]);
      for (const neighbour of first) assertNeighbour(neighbour, 'a', dot(vectorOf(1), vectorOf(2)));
      assertNeighbour(second[0], 'b', 1);
      assertNeighbour(second[1], 'a', 1);
      assert.equal(await store.size(), 7);
    });

    add('the first method that is known is the one that a store is of', async (store) => {
      await store.compareAndAdd(entryOf('a', 1));
      // A query does not set the model of the store.
      await store.nearest(vectorOf(1), 1, MODEL, { method: 'prefix' });
      await store.compareAndAddBatch([entryOf('b', 2), { ...entryOf('c', 3), method: 'full' }]);
      const other = { ...entryOf('d', 4), method: 'prefix' };
      await assert.rejects(store.compareAndAdd(other), { code: 'ERR_STORE_OTHER_METHOD' });
      assert.equal(await store.size(), 3);
    });

    add('a batch of two methods is refused, by an empty store too', async (store) => {
      const [prefix, full] = ['prefix', 'full'].map((method) => ({ ...entryOf(method, 1), method }));
      await assert.rejects(store.compareAndAddBatch([prefix, full]), { code: 'ERR_STORE_OTHER_METHOD' });
      assert.equal(await store.size(), 0);
      // Neither is the store's model.
      assert.deepEqual(await store.compareAndAdd(full), [null]);
    });

    add('a batch of two models is refused, by an empty store too', async (store) => {
      const other = { ...entryOf('b', 2), model: { ...MODEL, dtype: 'q8' } };
      const batch = [entryOf('a', 1), other];
      await assert.rejects(store.compareAndAddBatch(batch), { code: 'ERR_STORE_OTHER_MODEL' });
      assert.equal(await store.size(), 0);
      // Neither is the store's model.
      assert.deepEqual(await store.compareAndAdd(other), [null]);
    });

    add('a malformed vector is refused, and the batch with it', async (store) => {
      const broken = [
        new Float32Array(DIMENSIONS - 1).fill(0.05),
        vectorOf(1).map((component, index) => (index === 7 ? Number.NaN : component)),
        vectorOf(1).map((component, index) => (index === 7 ? Number.POSITIVE_INFINITY : component)),
      ];
      for (const vector of broken) {
        const entry = { id: 'broken', vectors: [vector], model: MODEL };
        await assert.rejects(store.compareAndAdd(entry), Error);
        await assert.rejects(store.compareAndAddBatch([entryOf('whole', 1), entry]), Error);
      }
      assert.equal(await store.size(), 0);
      assert.deepEqual(await store.compareAndAdd(entryOf('a', 1)), [null]);
    });
  }
}

/**
 * @param {StoredNeighbour | null | undefined} neighbour
 * @param {string} label
 * @param {number} similarity
 */
function assertNeighbour(neighbour, label, similarity) {
  assert.equal(neighbour?.label, label);
  assertNear(/** @type {StoredNeighbour} */ (neighbour).similarity, similarity);
}

/**
 * @param {string | null} id
 * @param {number[]} seeds
 */
function entryOf(id, ...seeds) {
  return { id, vectors: seeds.map(vectorOf), model: MODEL };
}

/** @type {Map<number, Float32Array>} */
const vectors = new Map();

/**
 * Returns a vector of length 1, the same for the same seed.
 *
 * @param {number} seed
 */
function vectorOf(seed) {
  let vector = vectors.get(seed);
  if (vector === undefined) {
    vector = unit(Float32Array.from({ length: DIMENSIONS }, (_, at) => randomNumber(seed, at) - 0.5));
    vectors.set(seed, vector);
  }
  return vector;
}

/**
 * Returns a vector near one of twenty centres, as traces are near others of their kind.
 *
 * @param {number} seed
 */
function clusteredVector(seed) {
  const noise = vectorOf(1000 + seed);
  return unit(vectorOf(seed % 20).map((component, index) => component + noise[index] * 0.8));
}

/** @param {Float32Array} vector */
function unit(vector) {
  const length = Math.sqrt(dot(vector, vector));
  return vector.map((component) => component / length);
}

/**
 * @param {Float32Array} a
 * @param {Float32Array} b
 */
function dot(a, b) {
  return a.reduce((sum, component, at) => sum + component * b[at], 0);
}

/** @param {NoveltyEntry} whole */
function malformed(whole) {
  const { vectors: _, ...without } = whole;
  return [null, 7, without, { ...whole, id: 7 }, { ...whole, model: null }];
}

module.exports = { noveltyStoreConformance };
