'use strict';

// Asks a store for a scorer: in the order of the calls, several traces in one call, with a fallback while the store fails.

const { setImmediate } = require('node:timers/promises');

const { cancellable } = require('../calls/cancel.js');
const { codedError } = require('../calls/errors.js');
const { lookIn, nearer, readComparisons } = require('./answers.js');
const { isPassing, isRefusal, isStored, typed, warn } = require('./failures.js');
const { LocalStore, addEntries, requireComparable } = require('./local.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore, TraceMemory, VectorCache } from '../../index.js'
 * @import { NativeCall } from '../binding.js'
 */

/** @typedef {import('../../index.js').LocalStore<VectorCache | TraceMemory>} Local */

/** The most entries that go to a store in one call. */
const MOST_ENTRIES = 64;

/** The most vectors or traces that wait for a failing store, 15 to 60 MB; then the oldest are dropped. */
const MOST_MISSED = 10_000;

/** The pause after the first failure of the store in milliseconds, doubled at each further failure up to the second number. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

const longer = (/** @type {number} */ pause) => Math.min(pause * 2, LONGEST_PAUSE);

/** After this many refusals in a row, the store is taken to be failing, and paused. */
const MOST_REFUSALS = 3;

/**
 * @typedef {object} Question
 * @property {NoveltyEntry} entry
 * @property {boolean} remember
 * @property {{ complete(): boolean } | undefined} call
 * @property {AbortSignal | undefined} signal of a query that adds nothing
 * @property {(answer: Answer) => void} resolve
 * @property {(reason: unknown) => void} reject
 */

/** @typedef {{ comparison: NoveltyComparison, isLocal: boolean }} Answer */

/**
 * The entries of one call to the store. A repeated call has the same id and entries, so that the store adds them once.
 *
 * @typedef {object} Batch
 * @property {string} call
 * @property {NoveltyEntry[]} entries
 * @property {number} age the number of the batch, in the order of the failures
 * @property {boolean} isSent
 * @property {number | undefined} failedAfter the number of answered calls at this one's last failure
 * @property {number} doubts the number of failures while the store answered other calls
 */

/** Asks a store in the order of the calls, several questions at a time. With a fallback, keeps the batches that the store has missed. */
class StoreWithFallback {
  #store;
  /** Answers while the store fails; undefined without a fallback. */
  #local;
  /** @type {Question[]} */
  #questions = [];
  #isWorking = false;
  #answered = 0;
  /** The time of the next attempt, in milliseconds of a monotonic clock; 0 while the store works. */
  #retryAt = 0;
  #pause = FIRST_PAUSE;
  /** The number of refusals since the last answer of the store. */
  #refusals = 0;
  /** @type {Batch[]} the batches that the store has missed or not answered, in the order of sending */
  #missed = [];
  /** The number of vectors of these batches, the one being sent included. */
  #missedVectors = 0;
  /** The number of batches that the store has ever missed. */
  #keptBatches = 0;
  /** The number of dropped traces that no `flush` has reported. */
  #dropped = 0;
  /** Whether traces were dropped since the queue was last empty. */
  #isDropping = false;
  /** The earliest time of the next sending. It is not `#retryAt`, because a failing batch must not stop new questions. */
  #resendAt = 0;
  #resendPause = FIRST_PAUSE;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  /**
   * The waiting calls of `flush`.
   *
   * @type {Array<{ resolve: () => void, reject: (reason: unknown) => void, refusal: unknown }>}
   */
  #flushes = [];

  /**
   * @param {NoveltyStore} store
   * @param {VectorCache | TraceMemory} [fallback]
   */
  constructor(store, fallback) {
    this.#store = store;
    this.#local = fallback && new LocalStore(fallback);
  }

  /**
   * Asks for the nearest neighbours of an entry, after all earlier questions.
   *
   * @param {NoveltyEntry} entry
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   * @param {AbortSignal | undefined} signal
   * @returns {Answer | Promise<Answer>}
   */
  ask(entry, remember, call, signal) {
    signal?.throwIfAborted();
    // The store gets the signal of a query that adds nothing.
    const handed = remember ? undefined : signal;
    const ask = () => {
      /** @type {Promise<Answer>} */
      const answer = new Promise((resolve, reject) => {
        this.#questions.push({ entry, remember, call, signal: handed, resolve, reject });
      });
      this.#work();
      return answer;
    };
    return cancellable(ask, signal, () => call?.cancel() === true);
  }

  /**
   * Resolves when the store has every missed batch. Rejects if the store fails, or if traces were dropped.
   *
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<void>}
   */
  async flush(signal) {
    const flush = () => {
      /** @type {Promise<void>} */
      const flushed = new Promise((resolve, reject) => {
        this.#flushes.push({ resolve, reject, refusal: undefined });
      });
      this.#work();
      return flushed;
    };
    return cancellable(flush, signal);
  }

  async #work() {
    if (this.#isWorking) return;
    this.#isWorking = true;
    clearTimeout(this.#timer);
    try {
      // Questions that are asked in the same turn of the event loop go into the same call.
      await null;
      // One call at a time: new questions first, then a missed batch.
      for (;;) {
        if (this.#questions.length > 0) await this.#answer(this.#take());
        const missed = this.#isResendDue ? this.#missed.shift() : undefined;
        if (missed !== undefined) await this.#resend(missed);
        else if (this.#questions.length === 0) break;
        this.#settleFlushes();
      }
    } finally {
      this.#isWorking = false;
    }
    this.#settleFlushes();
    this.#scheduleResend();
  }

  /** Takes the next questions for one call: several to remember, or one query. */
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
    return this.#questions.splice(0, count).filter(({ call, signal, reject }) => {
      // A sent entry cannot be cancelled, because the store may have it. A query can be aborted until it is answered.
      const isWanted = remember ? call === undefined || call.complete() : signal?.aborted !== true;
      // The caller has its rejection already; this lets later calls proceed.
      if (!isWanted) reject(codedError(Error, 'ERR_ABORTED', 'the call was cancelled'));
      return isWanted;
    });
  }

  /** @param {Question[]} questions */
  async #answer(questions) {
    if (questions.length === 0) return;
    const [{ entry, remember, signal }] = questions;
    try {
      const answers = remember
        ? await this.#compareAndAdd(questions.map((question) => question.entry))
        : [await this.#look(entry, signal)];
      for (const [index, { resolve }] of questions.entries()) resolve(answers[index]);
    } catch (error) {
      for (const { reject } of questions) reject(error);
      // Lets a call of `evaluateValues` that fails here cancel its other traces before they are sent.
      await setImmediate();
    }
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @returns {Promise<Answer[]>}
   */
  async #compareAndAdd(entries) {
    const batch = batchOf(entries);
    const local = this.#local;
    if (local === undefined) {
      return answersOf(readComparisons(await this.#send(batch), entries), false);
    }
    // Checked before sending, because the fallback must be able to answer.
    requireComparable(local.memory, entries[0]);
    if (performance.now() < this.#retryAt) return this.#answerLocally(local, batch, { keep: true });
    let answer;
    try {
      answer = await this.#send(batch);
    } catch (error) {
      if (isStored(error)) {
        this.#markWorking();
        return this.#answerLocally(local, batch, { keep: false });
      }
      if (!isRefusal(error)) {
        this.#leaveAlone(error);
        batch.failedAfter = this.#answered;
        return this.#answerLocally(local, batch, { keep: true });
      }
      if (entries.length > 1) {
        // One by one, to find the refused ones.
        const answers = [];
        for (const entry of entries) answers.push(...(await this.#compareAndAdd([entry])));
        return answers;
      }
      this.#tellRefusal(error);
      return this.#answerLocally(local, batch, { keep: false });
    }
    let comparisons;
    try {
      comparisons = readComparisons(answer, entries);
    } catch (error) {
      // The answer is unusable, but the store has the entries, so they are not sent again.
      this.#tellRefusal(error);
      return this.#answerLocally(local, batch, { keep: false });
    }
    this.#markWorking();
    return answersOf(await this.#withFallback(local, comparisons, entries), false);
  }

  /**
   * Adds the entries to the fallback. While batches wait, entries are compared with the fallback too, because the store lacks those
   * batches.
   *
   * @param {Local} local
   * @param {NoveltyComparison[]} comparisons
   * @param {NoveltyEntry[]} entries
   */
  async #withFallback(local, comparisons, entries) {
    try {
      if (this.#missed.length === 0) {
        await addEntries(local.memory, entries);
        return comparisons;
      }
      const own = await local.compareAndAddBatch(entries);
      return comparisons.map((comparison, index) => nearer(comparison, own[index]));
    } catch {
      // The fallback refuses the entries: it has vectors of another model, or memory is short. The store's answer is still valid.
      return comparisons;
    }
  }

  /**
   * @param {Local} local
   * @param {Batch} batch
   * @param {{ keep: boolean }} options
   */
  async #answerLocally(local, batch, { keep }) {
    const comparisons = await local.compareAndAddBatch(batch.entries);
    if (keep) this.#keep(batch);
    return answersOf(comparisons, true);
  }

  /**
   * @param {NoveltyEntry} entry
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<Answer>}
   */
  async #look(entry, signal) {
    const local = this.#local;
    if (local === undefined) {
      return { comparison: await lookIn(this.#store, entry, signal), isLocal: false };
    }
    requireComparable(local.memory, entry);
    if (performance.now() >= this.#retryAt) {
      try {
        const comparison = await lookIn(this.#store, entry, signal);
        this.#markWorking();
        const own = this.#missed.length > 0 ? await lookIn(local, entry) : comparison;
        return { comparison: nearer(comparison, own), isLocal: false };
      } catch (error) {
        signal?.throwIfAborted();
        if (isRefusal(error)) this.#tellRefusal(error);
        else this.#leaveAlone(error);
      }
    }
    return { comparison: await lookIn(local, entry), isLocal: true };
  }

  /** @param {Batch} batch */
  #send(batch) {
    batch.isSent = true;
    return this.#store.compareAndAddBatch(batch.entries, { call: batch.call });
  }

  #markWorking() {
    this.#answered++;
    this.#refusals = 0;
    if (this.#retryAt === 0) return;
    this.#retryAt = 0;
    this.#pause = FIRST_PAUSE;
    this.#resendAt = 0;
  }

  /** @param {unknown} error */
  #leaveAlone(error) {
    const isFirst = this.#retryAt === 0;
    this.#retryAt = performance.now() + this.#pause;
    this.#pause = longer(this.#pause);
    if (!isFirst) return;
    warn(
      "The novelty store does not work, so traces are compared with this process's own memory until it does",
      error,
    );
  }

  /** @param {unknown} error */
  #tellRefusal(error) {
    this.#refusals++;
    if (this.#refusals === 1) {
      warn(
        "A trace is compared with this process's own memory alone, and not sent to the novelty store again",
        error,
      );
    }
    if (this.#refusals >= MOST_REFUSALS) this.#leaveAlone(error);
  }

  /** @param {Batch} batch */
  #keep(batch) {
    const last = this.#missed[this.#missed.length - 1];
    const isRoomInLast =
      last !== undefined && !last.isSent && last.entries.length + batch.entries.length <= MOST_ENTRIES;
    if (isRoomInLast && !batch.isSent) last.entries.push(...batch.entries);
    else {
      batch.age = this.#keptBatches++;
      this.#missed.push(batch);
    }
    this.#missedVectors += sizeOf(batch);
    // The batch being sent is counted, but not in the list.
    while (this.#missedVectors > MOST_MISSED && this.#missed.length > 0) this.#dropOldest();
  }

  #dropOldest() {
    // Not always the first: a failed batch is at the end.
    const oldest = this.#missed.reduce((one, other) => (other.age < one.age ? other : one));
    this.#missed.splice(this.#missed.indexOf(oldest), 1);
    this.#missedVectors -= sizeOf(oldest);
    this.#dropped += oldest.entries.length;
    if (this.#isDropping) return;
    this.#isDropping = true;
    warn(
      'The oldest traces that the novelty store has missed are dropped',
      codedError(Error, 'ERR_STORE_DROPPED', `more than ${MOST_MISSED} vectors or traces wait for it`),
    );
  }

  get #isResendDue() {
    return this.#missed.length > 0 && (this.#flushes.length > 0 || performance.now() >= this.#nextResend);
  }

  get #nextResend() {
    return Math.max(this.#retryAt, this.#resendAt);
  }

  /** Sets a timer that sends missed batches without further questions. */
  #scheduleResend() {
    if (this.#missed.length === 0) return;
    const delay = Math.max(1, Math.ceil(this.#nextResend - performance.now()));
    this.#timer = setTimeout(() => this.#work(), delay);
    // The timer does not keep the process alive.
    this.#timer.unref();
  }

  /** @param {Batch} batch */
  async #resend(batch) {
    try {
      await this.#send(batch);
    } catch (error) {
      if (isStored(error)) return this.#markStored(batch);
      // An error without a code may be the batch's fault: assumed after several failures between which the store answered others.
      if (batch.failedAfter !== undefined && batch.failedAfter < this.#answered) batch.doubts++;
      const isRefused = isRefusal(error) || (!isPassing(error) && batch.doubts >= MOST_REFUSALS);
      if (isRefused) return this.#takeApart(batch, error);
      batch.failedAfter = this.#answered;
      // To the end of the queue, so that it does not keep the others from being sent.
      this.#missed.push(batch);
      this.#resendAt = performance.now() + this.#resendPause;
      this.#resendPause = longer(this.#resendPause);
      for (const { reject } of this.#flushes.splice(0)) reject(typed(error));
      return;
    }
    this.#markStored(batch);
  }

  /** @param {Batch} batch that the store now has */
  #markStored(batch) {
    this.#missedVectors -= sizeOf(batch);
    this.#resendPause = FIRST_PAUSE;
    this.#markWorking();
  }

  /**
   * Splits a refused batch into single entries. An entry that is refused alone is dropped.
   *
   * @param {Batch} batch
   * @param {unknown} error
   */
  #takeApart(batch, error) {
    if (batch.entries.length > 1) {
      // `isSent` keeps later entries out of these batches.
      const apart = batch.entries.map((entry) => ({ ...batchOf([entry]), age: batch.age, isSent: true }));
      this.#missed.unshift(...apart);
      return;
    }
    this.#missedVectors -= sizeOf(batch);
    this.#tellRefusal(error);
    for (const flush of this.#flushes) flush.refusal ??= typed(error);
  }

  #settleFlushes() {
    if (this.#missed.length > 0) return;
    this.#isDropping = false;
    const count = this.#dropped;
    for (const { resolve, reject, refusal } of this.#flushes.splice(0)) {
      if (refusal !== undefined) reject(refusal);
      else if (count === 0) resolve();
      else {
        reject(dropped(count));
        this.#dropped = 0;
      }
    }
  }
}

/** @param {number} count */
function dropped(count) {
  const message =
    `the store lacks ${count} of the traces that it has missed: more than ${MOST_MISSED} vectors or traces waited for it, ` +
    'so the oldest were dropped; score them again if the store must have them';
  return codedError(Error, 'ERR_STORE_DROPPED', message);
}

/**
 * @param {NoveltyEntry[]} entries
 * @returns {Batch}
 */
function batchOf(entries) {
  // Loaded late, because it takes 1.5 of the 17 ms of an import of the package.
  const { randomUUID } = require('node:crypto');
  return { call: randomUUID(), entries, age: 0, isSent: false, failedAfter: undefined, doubts: 0 };
}

/** @param {Batch} batch */
function sizeOf({ entries }) {
  return entries.reduce((size, { vectors }) => size + Math.max(1, vectors.length), 0);
}

/**
 * @param {NoveltyComparison[]} comparisons
 * @param {boolean} isLocal
 * @returns {Answer[]}
 */
function answersOf(comparisons, isLocal) {
  return comparisons.map((comparison) => ({ comparison, isLocal }));
}

module.exports = { StoreWithFallback };
