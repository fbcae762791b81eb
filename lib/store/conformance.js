'use strict';

// Conformance tests for novelty stores. Nothing here loads the addon.

const assert = require('node:assert/strict');

const { requireOptions } = require('../calls/options.js');
const { DIMENSIONS } = require('../embedding.js');
const { MODEL, TOLERANCE, addSharedTests, assertNear, dot } = require('./conformance-shared.js');
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
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour, VectorModel } from '../../index.js'
 * @import { ConformanceLimits, ConformanceOptions, ConformanceTest } from '../../conformance.js'
 */

/**
 * @template {NoveltyStore} Store
 * @param {ConformanceOptions<Store>} options
 * @returns {ConformanceTest[]}
 */
function noveltyStoreConformance(options) {
  requireOptions(options, OPTIONS);
  const { createStore, destroyStore = () => {}, openAgain, limits = {}, test } = options;
  const { isExact = true, novelty = 'prefix' } = options;
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
      nearest: (store, { vectors: [vector], model, method }, count, call) =>
        store.nearest(vector, count, /** @type {VectorModel} */ (model), { ...call, method }),
      ...{ method: 'prefix', other: 'full', malformed },
    });

    add('an entry is compared with those before it', async (store) => {
      await store.compareAndAdd(entryOf('a', 1));
      await store.compareAndAdd(entryOf('b', 2));
      const [same] = await store.compareAndAdd(entryOf('c', 1));
      assertNeighbour(same, 'a', 1);
      const mixed = unit(vectorOf(2).map((component, index) => component + 0.1 * vectorOf(3)[index]));
      const [similar] = await store.compareAndAdd({ id: 'd', vectors: [mixed], model: MODEL });
      assertNeighbour(similar, 'b', dot(mixed, vectorOf(2)));
      assert.equal(await store.size(), 4);
    });

    add('the vectors of an entry are not compared with one another', async (store) => {
      assert.deepEqual(await store.compareAndAdd(entryOf('a', 1, 1, 1)), [null, null, null]);
      const [first, second] = await store.compareAndAddBatch([entryOf('b', 2, 2), entryOf('c', 2, 1)]);
      for (const neighbour of first) assertNeighbour(neighbour, 'a', dot(vectorOf(1), vectorOf(2)));
      assertNeighbour(second[0], 'b', 1);
      assertNeighbour(second[1], 'a', 1);
      assert.equal(await store.size(), 7);
    });

    add('a batch is one entry after another', async (store) => {
      const entries = Array.from({ length: 64 }, (_, index) => {
        const vectors = Array.from({ length: 1 + (index % 3) }, (_, nth) => clusteredVector(index * 3 + nth));
        return { id: `entry ${index}`, vectors, model: MODEL };
      });
      const reference = new Reference();
      const expected = entries.map((entry) => reference.compareAndAdd(entry));
      const comparisons = await store.compareAndAddBatch(entries.slice(0, 40));
      for (const entry of entries.slice(40, 44)) comparisons.push(await store.compareAndAdd(entry));
      comparisons.push(...(await store.compareAndAddBatch(entries.slice(44))));
      assertComparisons(comparisons, expected, isExact);
      assert.equal(await store.size(), reference.size);
    });

    add('hundreds of entries are compared as a plain loop does', async (store) => {
      const reference = new Reference();
      for (let from = 0; from < 640; from += 64) {
        const entries = Array.from({ length: 64 }, (_, index) => ({
          ...{ id: `entry ${from + index}`, vectors: [clusteredVector(from + index)], model: MODEL },
        }));
        const expected = entries.map((entry) => reference.compareAndAdd(entry));
        assertComparisons(await store.compareAndAddBatch(entries), expected, isExact);
      }
      const query = clusteredVector(1000);
      const found = await store.nearest(query, 10, MODEL);
      const expected = reference.nearest(query, 10);
      assert.equal(found.length, 10);
      if (isExact)
        found.forEach((neighbour, rank) => {
          assertSimilarity(neighbour, expected[rank]);
        });
    });

    add('nearest gives the most similar first and stores nothing', async (store) => {
      const base = vectorOf(1);
      const weights = [0.9, 0.1, 0.5];
      for (const weight of weights) {
        const vector = unit(base.map((component, index) => component + weight * vectorOf(2)[index]));
        await store.compareAndAdd({ id: `weight ${weight}`, vectors: [vector], model: MODEL });
      }
      const labels = (/** @type {StoredNeighbour[]} */ found) => found.map(({ label }) => label);
      assert.deepEqual(labels(await store.nearest(base, 2, MODEL)), ['weight 0.1', 'weight 0.5']);
      const all = await store.nearest(base, 50, MODEL);
      assert.deepEqual(labels(all), ['weight 0.1', 'weight 0.5', 'weight 0.9']);
      for (const { label, similarity } of all) {
        const weight = Number(label?.split(' ')[1]);
        assertNear(
          similarity,
          dot(base, unit(base.map((component, index) => component + weight * vectorOf(2)[index]))),
        );
      }
      assert.equal(await store.size(), 3);
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

    if (limits.maxElements) {
      add(
        'the oldest vectors are displaced',
        async (store) => {
          const reference = new Reference(10);
          const entries = Array.from({ length: 30 }, (_, index) => {
            const vectors = Array.from({ length: 1 + (index % 4) }, (_, nth) => vectorOf((index + nth) % 12));
            return { id: `entry ${index}`, vectors, model: MODEL };
          });
          const expected = entries.map((entry) => reference.compareAndAdd(entry));
          const comparisons = await store.compareAndAddBatch(entries.slice(0, 15));
          for (const entry of entries.slice(15)) comparisons.push(await store.compareAndAdd(entry));
          assertComparisons(comparisons, expected, isExact);
          assert.equal(await store.size(), 10);
          assert.equal((await store.nearest(vectorOf(1), 50, MODEL)).length, 10);
        },
        { maxElements: 10 },
      );
    }
  }
}

/** A reference memory in double precision. */
class Reference {
  /** @type {Array<{ label: string | null, vector: Float32Array }>} */
  #stored = [];
  #maxElements;

  constructor(maxElements = Number.POSITIVE_INFINITY) {
    this.#maxElements = maxElements;
  }

  get size() {
    return this.#stored.length;
  }

  /**
   * @param {NoveltyEntry} entry
   * @returns {NoveltyComparison}
   */
  compareAndAdd({ id, vectors }) {
    const comparison = vectors.map((vector) => this.nearest(vector, 1)[0] ?? null);
    for (const vector of vectors) this.#stored.push({ label: id, vector });
    this.#stored.splice(0, Math.max(0, this.#stored.length - this.#maxElements));
    return comparison;
  }

  /**
   * @param {Float32Array} query
   * @param {number} count
   * @returns {StoredNeighbour[]}
   */
  nearest(query, count) {
    return this.#stored
      .map(({ label, vector }) => ({ label, similarity: dot(query, vector) }))
      .sort((a, b) => b.similarity - a.similarity)
      .slice(0, count);
  }
}

/**
 * Expects the right neighbours. Labels are compared only without a tie. An inexact store may miss some neighbours, not most.
 *
 * @param {NoveltyComparison[]} comparisons
 * @param {NoveltyComparison[]} expected
 * @param {boolean} isExact
 */
function assertComparisons(comparisons, expected, isExact) {
  assert.equal(comparisons.length, expected.length);
  let misses = 0;
  for (const [index, comparison] of comparisons.entries()) {
    assert.equal(comparison.length, expected[index].length);
    for (const [nth, neighbour] of comparison.entries()) {
      const wanted = expected[index][nth];
      if (wanted === null || neighbour === null || isExact) assertSimilarity(neighbour, wanted);
      else if (Math.abs(neighbour.similarity - wanted.similarity) > TOLERANCE) misses++;
    }
  }
  assert.ok(misses <= comparisons.length / 10, `${misses} of ${comparisons.length} were not the nearest`);
}

/**
 * @param {StoredNeighbour | null} neighbour
 * @param {StoredNeighbour | null} expected
 */
function assertSimilarity(neighbour, expected) {
  if (expected === null || neighbour === null) assert.deepEqual(neighbour, expected);
  else assertNear(neighbour.similarity, expected.similarity);
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
    const random = generator(seed);
    vector = unit(Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5));
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

/** @param {NoveltyEntry} whole */
function malformed(whole) {
  const { vectors: _, ...without } = whole;
  return [null, 7, without, { ...whole, id: 7 }, { ...whole, model: null }];
}

/**
 * Generates numbers from 0 to 1 by Marsaglia's xorshift.
 *
 * @param {number} seed
 */
function generator(seed) {
  let state = (seed + 1) * 0x9e3779b1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

module.exports = { noveltyStoreConformance };
