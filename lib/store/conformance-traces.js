'use strict';

// Conformance tests for stores of traces (`lexical` and `full`). Nothing here loads the addon.

const assert = require('node:assert/strict');

const { MODEL, addSharedTests, assertNear, dot } = require('./conformance-shared.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour } from '../../index.js'
 * @import { ConformanceOptions } from '../../conformance.js'
 * @import { AddTest, Kind } from './conformance-shared.js'
 */

/** @typedef {{ hash: bigint, code: number, count: number }} Word */

/** Up to this many traces, every store must be exact. */
const FEW = 40;

/** More traces than a store compares one by one, and fewer than a memory samples. */
const MANY = 192;

/** The tolerance of similarities of an inexact store, in nine of ten cases. */
const INEXACTNESS = 0.03;

/**
 * @template {NoveltyStore} Store
 * @param {AddTest<Store>} add
 * @param {ConformanceOptions<Store> & { novelty: 'lexical' | 'full' }} options
 * @param {(seed: number) => Float32Array} vectorOf a vector of length 1, the same for the same seed
 */
function addTraceTests(add, options, vectorOf) {
  const { novelty, limits = {}, isExact = true } = options;

  /**
   * @param {string | null} id
   * @param {number} seed
   * @returns {NoveltyEntry}
   */
  const entryOf = (id, seed) => entryWith(id, wordsOf(seed), novelty === 'full' ? [vectorOf(seed)] : []);

  /**
   * @param {string | null} id
   * @param {Word[]} words
   * @param {Float32Array[]} vectors
   * @returns {NoveltyEntry}
   */
  const entryWith = (id, words, vectors) => ({
    id,
    vectors,
    words: bytesOf(words),
    method: novelty,
    model: novelty === 'full' ? MODEL : null,
  });

  /** @type {Kind<Store>['nearest']} */
  const nearest = (store, entry, count, call) => {
    assert.equal(typeof store.nearestTraces, 'function', 'the store has no method nearestTraces');
    return /** @type {Required<NoveltyStore>} */ (/** @type {unknown} */ (store)).nearestTraces(
      entry,
      count,
      call,
    );
  };

  /** @param {NoveltyEntry} whole */
  const malformed = (whole) => {
    const words = /** @type {Uint8Array} */ (whole.words);
    const { words: _, ...without } = whole;
    return [
      null,
      7,
      without,
      { ...whole, id: 7 },
      { ...whole, vectors: undefined },
      { ...whole, vectors: novelty === 'full' ? [] : [vectorOf(1)] },
      { ...whole, words: words.subarray(1) },
      { ...whole, words: 'words' },
      // The same word twice, and too many words.
      { ...whole, words: Buffer.concat([words.subarray(0, 10), words.subarray(0, 10)]) },
      { ...whole, words: bytesOf(Array.from({ length: 481 }, (_, index) => wordOf(BigInt(index + 1), 1))) },
    ];
  };

  addSharedTests(add, options, { entryOf, nearest, method: novelty, other: 'prefix', malformed });

  add('it says how it compares', async (store) => {
    assert.equal(store.novelty, novelty);
  });

  add('a trace is compared with those before it', async (store) => {
    const reference = new Reference();
    for (const seed of [1, 2, 3, 1, 4, 2]) {
      const entry = entryOf(`trace ${seed}`, seed);
      const [wanted] = reference.compareAndAdd(entry);
      assertNeighbour((await store.compareAndAdd(entry))[0], wanted);
    }
    const [same] = await nearest(store, entryOf(null, 3), 1);
    assert.equal(same.label, 'trace 3');
    for (const part of [same.similarity, same.lexical, same.contained]) assertNear(part, 1);
    if (novelty === 'full') assertNear(same.embedded, 1);
    else assert.equal(same.embedded ?? null, null);
    assert.equal(await store.size(), 6);
  });

  add('a batch is one entry after another', async (store) => {
    const entries = Array.from({ length: FEW }, (_, seed) => entryOf(`trace ${seed}`, seed % 30));
    const reference = new Reference();
    const expected = entries.map((entry) => reference.compareAndAdd(entry));
    const comparisons = await store.compareAndAddBatch(entries.slice(0, 25));
    for (const entry of entries.slice(25, 28)) comparisons.push(await store.compareAndAdd(entry));
    comparisons.push(...(await store.compareAndAddBatch(entries.slice(28))));
    for (const [index, [found]] of comparisons.entries()) assertNeighbour(found, expected[index][0]);
    assert.equal(await store.size(), FEW);
  });

  add('many traces are compared as a plain loop does', async (store) => {
    const reference = new Reference();
    let misses = 0;
    for (let from = 0; from < MANY; from += 32) {
      const entries = Array.from({ length: 32 }, (_, index) =>
        entryOf(`trace ${from + index}`, from + index),
      );
      const comparisons = await store.compareAndAddBatch(entries);
      for (const [index, entry] of entries.entries()) {
        // The reference is slow.
        if (index % 8 === 7) {
          const [[found], [expected]] = [comparisons[index], reference.nearest(entry, 1)];
          if (isExact) assertNeighbour(found, expected);
          else if (Math.abs((found?.similarity ?? 0) - expected.similarity) > INEXACTNESS) misses++;
        }
        reference.add(entry);
      }
    }
    assert.ok(
      misses <= MANY / 80,
      `${misses} of ${MANY / 8} similarities were off by more than ${INEXACTNESS}`,
    );
    for (const seed of [0, 100, MANY - 1]) {
      const found = await nearest(store, entryOf(null, seed), 10);
      assert.equal(found[0].label, `trace ${seed}`);
      assertNear(found[0].similarity, 1);
      assert.equal(found.length, 10);
    }
    assert.equal(await store.size(), MANY);
  });

  add('nearestTraces gives the most similar first and stores nothing', async (store) => {
    const reference = new Reference();
    for (let seed = 0; seed < 12; seed++) {
      reference.compareAndAdd(entryOf(`trace ${seed}`, seed));
      await store.compareAndAdd(entryOf(`trace ${seed}`, seed));
    }
    const wanted = reference.nearest(entryOf(null, 20), 12);
    for (const count of [0, 1, 5, 50]) {
      const found = await nearest(store, entryOf(null, 20), count);
      assert.equal(found.length, Math.min(count, 12));
      for (const [rank, neighbour] of found.entries())
        assertNear(neighbour.similarity, wanted[rank].similarity);
    }
    assert.equal(await store.size(), 12);
  });

  add('traces without words are alike', async (store) => {
    const without = (/** @type {string} */ id) => entryWith(id, [], novelty === 'full' ? [vectorOf(1)] : []);
    await store.compareAndAdd(entryOf('with words', 1));
    const [first] = await store.compareAndAdd(without('a'));
    assertNear(first?.lexical, 0);
    assertNear(first?.contained, 0);
    const [second] = await store.compareAndAdd(without('b'));
    assert.equal(second?.label, 'a');
    assertNear(second?.similarity, 1);
  });

  if (limits.maxElements) {
    add(
      'the oldest traces are displaced',
      async (store) => {
        const reference = new Reference(10);
        const entries = Array.from({ length: 30 }, (_, index) => entryOf(`trace ${index}`, index % 12));
        const expected = entries.map((entry) => reference.compareAndAdd(entry));
        const comparisons = await store.compareAndAddBatch(entries.slice(0, 15));
        for (const entry of entries.slice(15)) comparisons.push(await store.compareAndAdd(entry));
        for (const [index, [found]] of comparisons.entries()) assertNeighbour(found, expected[index][0]);
        assert.equal(await store.size(), 10);
        assert.equal((await nearest(store, entryOf(null, 1), 50)).length, 10);
      },
      { maxElements: 10 },
    );
  }
}

/** The measure by its definition in crates/index/DESIGN.md, in double precision. */
class Reference {
  /** @type {Array<{ label: string | null, words: Map<bigint, number>, vector: Float32Array | undefined }>} */
  #stored = [];
  #maxElements;

  constructor(maxElements = Number.POSITIVE_INFINITY) {
    this.#maxElements = maxElements;
  }

  /**
   * @param {NoveltyEntry} entry
   * @returns {NoveltyComparison}
   */
  compareAndAdd(entry) {
    const [nearest = null] = this.nearest(entry, 1);
    this.add(entry);
    return [nearest];
  }

  /** @param {NoveltyEntry} entry */
  add(entry) {
    this.#stored.push({ label: entry.id, words: readWords(entry), vector: entry.vectors[0] });
    this.#stored.splice(0, Math.max(0, this.#stored.length - this.#maxElements));
  }

  /**
   * @param {NoveltyEntry} entry
   * @param {number} count
   * @returns {StoredNeighbour[]}
   */
  nearest(entry, count) {
    const words = readWords(entry);
    /** @type {Map<bigint, number>} */
    const traces = new Map();
    for (const other of this.#stored) {
      for (const word of other.words.keys()) traces.set(word, (traces.get(word) ?? 0) + 1);
    }
    const weightOf = (/** @type {bigint} */ word) =>
      Math.log((this.#stored.length + 1) / (traces.get(word) ?? 1));
    /**
     * @param {Map<bigint, number>} one
     * @param {Map<bigint, number>} other
     */
    const product = (one, other) =>
      [...one].reduce((sum, [word, count]) => sum + count * (other.get(word) ?? 0) * weightOf(word) ** 2, 0);
    const sum = (/** @type {bigint[]} */ list) => list.reduce((total, word) => total + weightOf(word), 0);
    const project = projection(
      this.#stored.map(({ vector }) => vector).filter((vector) => vector !== undefined),
    );
    const own = entry.vectors.length > 0 ? project(entry.vectors[0]) : [];
    return this.#stored
      .map((other) => {
        const [lexical, contained] =
          words.size === 0 || other.words.size === 0
            ? Array(2).fill(words.size === other.words.size ? 1 : 0)
            : [
                product(words, other.words) /
                  Math.sqrt(product(words, words) * product(other.words, other.words)),
                sum([...words.keys()].filter((word) => other.words.has(word))) / sum([...words.keys()]),
              ];
        const embedded = other.vector === undefined ? null : Math.max(0, cosine(own, project(other.vector)));
        const combined = embedded === null ? lexical : 0.7 * lexical + 0.3 * embedded;
        return {
          label: other.label,
          similarity: Math.max(combined, contained ** 4),
          lexical,
          contained,
          embedded,
        };
      })
      .sort((a, b) => b.similarity - a.similarity)
      .slice(0, count);
  }
}

/**
 * Returns the projection P: subtracts the mean of `rows`, and removes their first principal direction.
 *
 * @param {Float32Array[]} rows
 * @returns {(vector: Float32Array) => number[]}
 */
function projection(rows) {
  if (rows.length < 3) return (vector) => [...vector];
  const mean = Array.from(rows[0], (_, at) => rows.reduce((sum, row) => sum + row[at] / rows.length, 0));
  const centred = rows.map((row) => Array.from(row, (component, at) => component - mean[at]));
  const lengths = centred.map((row) => dot(row, row));
  let direction = centred[lengths.indexOf(Math.max(...lengths))];
  for (let round = 0; round < 8; round++) {
    const along = centred.map((row) => dot(row, direction));
    const next = mean.map(() => 0);
    for (const [index, row] of centred.entries()) {
      for (let at = 0; at < next.length; at++) next[at] += along[index] * row[at];
    }
    const length = Math.sqrt(dot(next, next));
    direction = next.map((component) => component / length);
  }
  return (vector) => {
    const rest = Array.from(vector, (component, at) => component - mean[at]);
    const along = dot(rest, direction);
    return rest.map((component, at) => component - along * direction[at]);
  };
}

/**
 * @param {readonly number[]} a
 * @param {readonly number[]} b
 */
function cosine(a, b) {
  const norms = Math.sqrt(dot(a, a) * dot(b, b));
  return norms === 0 ? 0 : dot(a, b) / norms;
}

/**
 * Returns words of a trace: common words, words of its topic, and words of its own.
 *
 * @param {number} seed
 */
function wordsOf(seed) {
  const random = (/** @type {number} */ nth) =>
    Math.abs(Math.sin(seed * 12.9898 + nth * 78.233) * 43758.5453) % 1;
  /** @type {Map<bigint, Word>} */
  const words = new Map();
  const add = (/** @type {number} */ number, /** @type {number} */ nth) => {
    // Spreads the numbers like hashes.
    const hash = BigInt.asUintN(64, BigInt(number + 1) * 0x9e3779b97f4a7c15n);
    words.set(hash, wordOf(hash, 0.2 + random(nth) * 3));
  };
  for (let nth = 0; nth < 12; nth++) if (random(nth) < 0.7) add(nth, nth);
  for (let nth = 12; nth < 32; nth++) if (random(nth) < 0.6) add(100 + (seed % 20) * 20 + nth, nth);
  for (let nth = 32; nth < 42; nth++) add(10_000 + seed * 10 + nth, nth);
  return [...words.values()];
}

/**
 * @param {bigint} hash
 * @param {number} count
 * @returns {Word}
 */
function wordOf(hash, count) {
  const exponent = Math.floor(Math.log2(count));
  const fraction = Math.floor((count / 2 ** exponent - 1) * 2048);
  return { hash, code: ((exponent + 16) << 11) + fraction, count: (1 + fraction / 2048) * 2 ** exponent };
}

/** @param {Word[]} words */
function bytesOf(words) {
  const bytes = Buffer.alloc(words.length * 10);
  const sorted = [...words].sort((a, b) => (a.hash < b.hash ? -1 : 1));
  for (const [index, { hash, code }] of sorted.entries()) {
    bytes.writeBigUInt64LE(hash, index * 10);
    bytes.writeUInt16LE(code, index * 10 + 8);
  }
  return new Uint8Array(bytes);
}

/**
 * @param {NoveltyEntry} entry
 * @returns {Map<bigint, number>} counts by hashes
 */
function readWords({ words }) {
  const bytes = Buffer.from(/** @type {Uint8Array} */ (words));
  const count = (/** @type {number} */ code) => (1 + (code & 2047) / 2048) * 2 ** ((code >> 11) - 16);
  return new Map(
    Array.from({ length: bytes.length / 10 }, (_, index) => [
      bytes.readBigUInt64LE(index * 10),
      count(bytes.readUInt16LE(index * 10 + 8)),
    ]),
  );
}

/**
 * Expects the right neighbour. Labels are compared only without a tie.
 *
 * @param {StoredNeighbour | null} found
 * @param {StoredNeighbour | null} expected
 */
function assertNeighbour(found, expected) {
  if (expected === null || found === null) return assert.deepEqual(found, expected);
  assertNear(found.similarity, expected.similarity);
  if (found.label !== expected.label) return;
  assertNear(found.lexical, expected.lexical);
  assertNear(found.contained, expected.contained);
  if (expected.embedded === null) assert.equal(found.embedded ?? null, null);
  else assertNear(found.embedded, expected.embedded);
}

module.exports = { addTraceTests };
