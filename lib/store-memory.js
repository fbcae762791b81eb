'use strict';

// What stands between a scorer and its store: order, batches, and a memory of its own for when the store fails.

const { cancellable, throwIfAborted } = require('./abort.js');
const { codedError } = require('./errors.js');
const { LocalStore } = require('./local-store.js');
const { isArray, readFrom } = require('./reading.js');

/** The most entries that go to a store in one call. */
const MOST_ENTRIES = 64;

/** The most entries that are kept for a store that fails; then the oldest are given up. */
const MOST_UNSENT = 10_000;

/** How long a store that has failed is left alone, in milliseconds: doubled each time, up to the second number. */
const PATIENCE = [1_000, 30_000];

/**
 * @typedef {object} Question
 * @property {import('..').NoveltyEntry} entry
 * @property {boolean} remember
 * @property {{ complete(): boolean } | undefined} call
 * @property {(answer: { comparison: import('..').NoveltyComparison, isLocal: boolean }) => void} resolve
 * @property {(reason: unknown) => void} reject
 */

class StoreMemory {
  #store;
  /** What answers while the store fails; undefined if nothing does. */
  #local;
  /** @type {Question[]} */
  #questions = [];
  #isWorking = false;
  /** Entries that the store has not got yet. */
  #unsent = [];
  /** When the store is asked again, in milliseconds of a monotonic clock, and for how long it is left alone next. */
  #retryAt = 0;
  #patience = PATIENCE[0];

  /**
   * @param {import('..').NoveltyStore} store
   * @param {import('..').VectorCache} cache
   * @param {'reject' | 'local'} onError
   */
  constructor(store, cache, onError) {
    this.#store = store;
    this.#local = onError === 'local' ? new LocalStore(cache) : undefined;
  }

  /** Asks what an entry is nearest to, after all questions before. */
  ask(entry, remember, call, signal) {
    throwIfAborted(signal);
    const begin = () => {
      const answer = new Promise((resolve, reject) => {
        this.#questions.push({ entry, remember, call, resolve, reject });
      });
      this.#work();
      return answer;
    };
    return cancellable(begin, call, signal);
  }

  async #work() {
    if (this.#isWorking) return;
    this.#isWorking = true;
    try {
      // What else is asked at this moment goes along.
      await null;
      while (this.#questions.length > 0) await this.#answer(this.#take());
    } finally {
      this.#isWorking = false;
    }
  }

  /** The next questions that one call can answer: several to remember, or one that is only asked. */
  #take() {
    const { remember } = this.#questions[0];
    let count = 1;
    while (
      remember &&
      count < Math.min(MOST_ENTRIES, this.#questions.length) &&
      this.#questions[count].remember
    ) {
      count++;
    }
    // From here on the memory may have them.
    return this.#questions.splice(0, count).filter(({ call, reject }) => {
      const isWanted = call === undefined || call.complete();
      // Nobody sees it, but the calls that come later wait for an answer.
      if (!isWanted) reject(codedError(Error, 'ERR_ABORTED', 'the call was cancelled'));
      return isWanted;
    });
  }

  /** @param {Question[]} questions */
  async #answer(questions) {
    if (questions.length === 0) return;
    const entries = questions.map(({ entry }) => entry);
    const [{ remember }] = questions;
    try {
      const { comparisons, isLocal } = await this.#compare(entries, remember);
      for (const [index, { resolve }] of questions.entries()) {
        resolve({ comparison: comparisons[index], isLocal });
      }
    } catch (error) {
      for (const { reject } of questions) reject(error);
    }
  }

  async #compare(entries, remember) {
    if (this.#local === undefined) {
      return { comparisons: await compareIn(this.#store, entries, remember), isLocal: false };
    }
    const comparisons = await this.#tryStore(entries, remember);
    if (comparisons !== undefined) {
      // What was scored last is at hand when the store fails.
      if (remember) await this.#local.compareAndAddBatch(entries);
      return { comparisons, isLocal: false };
    }
    const found = await compareIn(this.#local, entries, remember);
    if (remember) this.#keep(entries);
    return { comparisons: found, isLocal: true };
  }

  /** What the store answers; undefined if it fails, or has failed not long ago. */
  async #tryStore(entries, remember) {
    if (performance.now() < this.#retryAt) return undefined;
    try {
      await this.#sendUnsent();
      const comparisons = await compareIn(this.#store, entries, remember);
      this.#patience = PATIENCE[0];
      return comparisons;
    } catch (error) {
      this.#leaveAlone(error);
      return undefined;
    }
  }

  #keep(entries) {
    this.#unsent.push(...entries);
    if (this.#unsent.length > MOST_UNSENT) this.#unsent.splice(0, this.#unsent.length - MOST_UNSENT);
  }

  async #sendUnsent() {
    while (this.#unsent.length > 0) {
      const entries = this.#unsent.slice(0, MOST_ENTRIES);
      await this.#store.compareAndAddBatch(entries);
      this.#unsent.splice(0, entries.length);
    }
  }

  #leaveAlone(error) {
    const isFirst = this.#retryAt === 0 || this.#patience === PATIENCE[0];
    this.#retryAt = performance.now() + this.#patience;
    this.#patience = Math.min(this.#patience * 2, PATIENCE[1]);
    if (!isFirst) return;
    const { message, code } = tell(error);
    process.emitWarning(
      `The novelty store does not work, so traces are compared with this process's own memory: ${message}`,
      { type: 'KnowledgePulseWarning', code },
    );
  }
}

/** What is known of an error, which may be anything: other libraries have codes that are numbers. */
function tell(error) {
  try {
    const code = typeof error?.code === 'string' ? error.code : 'ERR_STORE';
    return { message: String(error?.message ?? error), code };
  } catch {
    return { message: 'its error cannot be read', code: 'ERR_STORE' };
  }
}

/** Scores rest on what a store says, so it must make sense, and stay so: this is a copy. */
async function compareIn(store, entries, remember) {
  if (remember) {
    const comparisons = await store.compareAndAddBatch(entries);
    return readList(comparisons, entries, (comparison, { vectors }) =>
      readList(comparison, vectors, readNeighbour),
    );
  }
  const comparisons = [];
  for (const { vectors, model } of entries) {
    const comparison = [];
    for (const vector of vectors) {
      const neighbours = await store.nearest(vector, 1, model);
      if (!isArray(neighbours)) throw nonsense();
      comparison.push(readNeighbour(read(neighbours, 0) ?? null));
    }
    comparisons.push(comparison);
  }
  return comparisons;
}

/** Reads a list that answers to each of `questions`. */
function readList(answers, questions, readOne) {
  if (!isArray(answers) || read(answers, 'length') !== questions.length) throw nonsense();
  return questions.map((question, index) => readOne(read(answers, index), question));
}

/** Rounding may take a similarity a little beyond 1. */
const MOST_SIMILARITY = 1.001;

function readNeighbour(neighbour) {
  if (neighbour === null) return null;
  if (typeof neighbour !== 'object') throw nonsense();
  const label = read(neighbour, 'label');
  const similarity = read(neighbour, 'similarity');
  const isSimilarity = typeof similarity === 'number' && Math.abs(similarity) <= MOST_SIMILARITY;
  if (!isSimilarity || (label !== null && typeof label !== 'string')) throw nonsense();
  return { label, similarity };
}

function read(answer, key) {
  return readFrom(answer, key, `the store's answer`, 'ERR_STORE');
}

function nonsense() {
  const message =
    'the store must answer with a neighbour or null for each vector of each entry: { label, similarity } | null';
  return codedError(TypeError, 'ERR_STORE', message);
}

module.exports = { StoreMemory };
