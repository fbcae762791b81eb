'use strict';

// Conformance tests for stores of traces (`lexical` and `full`).

const assert = require('node:assert/strict');

const { TraceMemory } = require('../trace-memory.js');
const { MODEL, addSharedTests, assertNear, randomNumber } = require('./conformance-shared.js');

/**
 * @import { NoveltyEntry, NoveltyStore } from '../../index.js'
 * @import { ConformanceOptions } from '../../conformance.js'
 * @import { AddTest, Kind } from './conformance-shared.js'
 */

/** @typedef {{ hash: bigint, code: number }} Word `code`: the count, as the bytes of an entry have it */

/** More traces than a store compares one by one, and fewer than a memory samples. */
const MANY = { count: 192, batch: 32, tolerance: 0.03 };

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

  /** @type {Kind['nearest']} */
  const nearest = (store, entry, count, call) => {
    assert.equal(typeof store.nearestTraces, 'function', 'the store has no method nearestTraces');
    return /** @type {Required<NoveltyStore>} */ (store).nearestTraces(entry, count, call);
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
    memory: (maxElements) => new TraceMemory({ novelty, maxElements }),
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
 * Returns words of a trace: common words, words of its topic, and words of its own.
 *
 * @param {number} seed
 */
function wordsOf(seed) {
  const random = (/** @type {number} */ nth) => randomNumber(seed, nth);
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
  return { hash, code: ((exponent + 16) << 11) + fraction };
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

module.exports = { addTraceTests };
