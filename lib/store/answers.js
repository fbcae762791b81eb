'use strict';

// Reads and checks the answers of a store, which may be anyone's code.

const { cancellable } = require('../calls/cancel.js');
const { codedError } = require('../calls/errors.js');
const { isArray, readFrom } = require('../calls/reading.js');

/** @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour, VectorModel } from '../../index.js' */

/**
 * Checks and copies a store's answer, so that the store cannot change it later.
 *
 * @param {unknown} comparisons
 * @param {readonly NoveltyEntry[]} entries
 * @returns {NoveltyComparison[]}
 */
function readComparisons(comparisons, entries) {
  return readList(comparisons, entries, (comparison, { vectors, words, method }) =>
    words === undefined
      ? readList(comparison, vectors, readNeighbour)
      : readList(comparison, [method], readSimilarTrace),
  );
}

/**
 * Returns the nearest neighbour of each vector of an entry, or of its words. Rejects when the signal aborts, even if the store ignores it.
 *
 * @param {NoveltyStore} store
 * @param {NoveltyEntry} entry
 * @param {AbortSignal} [signal]
 */
async function lookIn(store, entry, signal) {
  const { vectors, model, method } = entry;
  if (entry.words !== undefined) {
    const nearest = /** @type {NonNullable<NoveltyStore['nearestTraces']>} */ (store.nearestTraces);
    const similar = await cancellable(() => nearest.call(store, entry, 1, { signal }), signal);
    if (!isArray(similar)) throw nonsense();
    return [readSimilarTrace(read(similar, 0) ?? null, method)];
  }
  /** @type {NoveltyComparison} */
  const comparison = [];
  for (const vector of vectors) {
    const identity = /** @type {VectorModel} */ (model);
    const neighbours = await cancellable(
      () => store.nearest(vector, 1, identity, { signal, method }),
      signal,
    );
    if (!isArray(neighbours)) throw nonsense();
    comparison.push(readNeighbour(read(neighbours, 0) ?? null));
  }
  return comparison;
}

/**
 * @template Question
 * @template Answered
 * @param {unknown} answers
 * @param {readonly Question[]} questions
 * @param {(answer: unknown, question: Question) => Answered} readOne
 */
function readList(answers, questions, readOne) {
  if (!isArray(answers) || read(answers, 'length') !== questions.length) throw nonsense();
  return questions.map((question, index) => readOne(read(answers, index), question));
}

/** The tolerance of a similarity beyond ±1, for rounding. */
const MOST_SIMILARITY = 1.001;

/**
 * @param {unknown} neighbour
 * @returns {StoredNeighbour | null}
 */
function readNeighbour(neighbour) {
  if (neighbour === null) return null;
  if (typeof neighbour !== 'object') throw nonsense();
  const label = read(neighbour, 'label');
  const similarity = read(neighbour, 'similarity');
  const isSimilarity = typeof similarity === 'number' && Math.abs(similarity) <= MOST_SIMILARITY;
  if (!isSimilarity || (label !== null && typeof label !== 'string')) throw nonsense();
  return { label, similarity };
}

/**
 * @param {unknown} neighbour
 * @param {string | undefined} method
 * @returns {StoredNeighbour | null}
 */
function readSimilarTrace(neighbour, method) {
  const found = readNeighbour(neighbour);
  if (found === null) return null;
  const part = (/** @type {'lexical' | 'contained' | 'embedded'} */ name) => {
    const value = read(/** @type {object} */ (neighbour), name);
    if (typeof value !== 'number' || !(value >= 0 && value <= MOST_SIMILARITY)) throw nonsense();
    return Math.min(value, 1);
  };
  const embedded = method === 'full' ? part('embedded') : null;
  return { ...found, lexical: part('lexical'), contained: part('contained'), embedded };
}

/**
 * @param {object} answer
 * @param {PropertyKey} key
 */
function read(answer, key) {
  return readFrom(answer, key, `the store's answer`, 'ERR_STORE');
}

function nonsense() {
  const message =
    'the store must answer with a neighbour or null for each vector of each entry: { label, similarity } | null; ' +
    'for each entry with words, one that also has the parts of the similarity: lexical, contained, embedded';
  return codedError(TypeError, 'ERR_STORE', message);
}

/**
 * Returns the nearer neighbour of each vector from two comparisons.
 *
 * @param {NoveltyComparison} comparison
 * @param {NoveltyComparison} other
 */
function nearer(comparison, other) {
  const similarityOf = (/** @type {StoredNeighbour | null} */ neighbour) =>
    neighbour?.similarity ?? Number.NEGATIVE_INFINITY;
  return comparison.map((neighbour, index) =>
    similarityOf(other[index]) > similarityOf(neighbour) ? other[index] : neighbour,
  );
}

module.exports = { lookIn, nearer, readComparisons };
