'use strict';

// Conformance tests for stores of traces (`lexical` and `full`). Nothing here loads the addon.

const assert = require('node:assert/strict');

const { MODEL, Reference, addSharedTests, assertNear, dot } = require('./conformance-shared.js');

/**
 * @import { NoveltyEntry, NoveltyStore, StoredNeighbour } from '../../index.js'
 * @import { ConformanceOptions } from '../../conformance.js'
 * @import { AddTest, Kind } from './conformance-shared.js'
 */

/** @typedef {{ hash: bigint, code: number, count: number }} Word */

/** More traces than a store compares one by one, and fewer than a memory samples; the reference is slow. */
const MANY = { count: 192, batch: 32, every: 8, tolerance: 0.03 };

/**
 * @template {NoveltyStore} Store
 * @param {AddTest<Store>} add
 * @param {ConformanceOptions<Store> & { novelty: 'lexical' | 'full' }} options
 * @param {(seed: number) => Float32Array} vectorOf a vector of length 1, the same for the same seed
 */
function addTraceTests(add, options, vectorOf) {
  const { novelty } = options;

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

  addSharedTests(add, options, {
    ...{ entryOf, similarOf: entryOf, severalOf: entryOf, many: MANY },
    reference: (maxElements) => new Reference(storedOf, compare, maxElements),
    ...{ nearest, method: novelty, other: 'prefix', malformed },
  });

  add('it says how it compares', async (store) => {
    assert.equal(store.novelty, novelty);
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
}

/**
 * @param {NoveltyEntry} entry
 * @returns {import('./conformance-shared.js').Stored[]}
 */
const storedOf = (entry) => [{ label: entry.id, words: readWords(entry), vector: entry.vectors[0] }];

/**
 * The measure by its definition in crates/index/DESIGN.md, in double precision.
 *
 * @param {import('./conformance-shared.js').Stored} query
 * @param {readonly import('./conformance-shared.js').Stored[]} stored
 * @returns {StoredNeighbour[]}
 */
function compare({ words, vector }, stored) {
  /** @type {Map<bigint, number>} */
  const traces = new Map();
  for (const other of stored) {
    for (const word of other.words.keys()) traces.set(word, (traces.get(word) ?? 0) + 1);
  }
  const weightOf = (/** @type {bigint} */ word) => Math.log((stored.length + 1) / (traces.get(word) ?? 1));
  /**
   * @param {Map<bigint, number>} one
   * @param {Map<bigint, number>} other
   */
  const product = (one, other) =>
    [...one].reduce((sum, [word, count]) => sum + count * (other.get(word) ?? 0) * weightOf(word) ** 2, 0);
  const sum = (/** @type {bigint[]} */ list) => list.reduce((total, word) => total + weightOf(word), 0);
  const project = projection(stored.flatMap((other) => other.vector ?? []));
  const own = vector === undefined ? [] : project(vector);
  return stored.map((other) => {
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
    const similarity = Math.max(combined, contained ** 4);
    return { label: other.label, similarity, lexical, contained, embedded };
  });
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

module.exports = { addTraceTests };
