'use strict';

// Reads and checks the answers of a store, which may be anyone's code.

const { untilAborted } = require('../calls/abort.js');
const { codedError } = require('../calls/errors.js');
const { isArray, readFrom } = require('../calls/reading.js');

/** @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour } from '../../index.js' */

/**
 * Checks a store's answer, on which scores are based, and copies it, so that the store cannot change it later.
 *
 * @param {unknown} comparisons
 * @param {readonly NoveltyEntry[]} entries
 * @returns {NoveltyComparison[]}
 */
function readComparisons(comparisons, entries) {
  return readList(comparisons, entries, (comparison, { vectors }) =>
    readList(comparison, vectors, readNeighbour),
  );
}

/**
 * What is nearest to each vector of an entry in a store. Rejects when the signal aborts, whether or not the store heeds it.
 *
 * @param {NoveltyStore} store
 * @param {NoveltyEntry} entry
 * @param {AbortSignal} [signal]
 */
async function lookIn(store, { vectors, model, method }, signal) {
  /** @type {NoveltyComparison} */
  const comparison = [];
  for (const vector of vectors) {
    const looking = (async () => store.nearest(vector, 1, model, { signal, method }))();
    const neighbours = await untilAborted(looking, signal);
    if (!isArray(neighbours)) throw nonsense();
    comparison.push(readNeighbour(read(neighbours, 0) ?? null));
  }
  return comparison;
}

/**
 * Reads a list that answers to each of `questions`.
 *
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

/** Rounding may take a similarity a little beyond 1. */
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
 * @param {object} answer
 * @param {PropertyKey} key
 */
function read(answer, key) {
  return readFrom(answer, key, `the store's answer`, 'ERR_STORE');
}

function nonsense() {
  const message =
    'the store must answer with a neighbour or null for each vector of each entry: { label, similarity } | null';
  return codedError(TypeError, 'ERR_STORE', message);
}

/**
 * Of two comparisons, the nearer neighbour of each vector.
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
