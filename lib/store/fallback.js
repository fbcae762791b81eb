'use strict';

// What stands between a scorer and its store: order, batches, and a memory of its own for when the store fails.

const { randomUUID } = require('node:crypto');
const { setImmediate } = require('node:timers/promises');

const { cancellable, isAborted, throwIfAborted, untilAborted, withOwnSignal } = require('../calls/abort.js');
const { codedError } = require('../calls/errors.js');
const { lookIn, nearer, readComparisons } = require('./answers.js');
const { isPassing, isRefusal, typed, warn } = require('./failures.js');
const { LocalStore, addEntries, requireComparable } = require('./local.js');

/**
 * @import { AbortSignalLike, NoveltyComparison, NoveltyEntry, NoveltyStore, VectorCache } from '../../index.js'
 * @import { LocalStore as Local } from '../../index.js'
 * @import { NativeCall } from '../binding.js'
 */

/** The most entries that go to a store in one call. */
const MOST_ENTRIES = 64;

/** The most vectors that are kept for a store that fails, 15 MB; then the oldest are given up. */
const MOST_MISSED = 10_000;

/** How long a store that has failed is left alone, in milliseconds: doubled each time, up to the second number. */
const PATIENCE = [1_000, 30_000];

/** After how many refusals in a row the store is taken to be broken, rather than the entries that it refuses. */
const MOST_REFUSALS = 3;

/**
 * @typedef {object} Question
 * @property {import('../../index.js').NoveltyEntry} entry
 * @property {boolean} remember
 * @property {{ complete(): boolean } | undefined} call
 * @property {AbortSignal | undefined} signal of what is only asked
 * @property {(answer: Answer) => void} resolve
 * @property {(reason: unknown) => void} reject
 */

/** @typedef {{ comparison: import('../../index.js').NoveltyComparison, isLocal: boolean }} Answer */

/**
 * What goes to the store in one call. If that has to be made again it is the same call of the same entries, which a store
 * can tell from others by its id.
 *
 * @typedef {object} Batch
 * @property {string} call
 * @property {import('../../index.js').NoveltyEntry[]} entries
 * @property {boolean} isSent
 * @property {number | undefined} failedAfter how many calls the store had answered when this one failed last
 * @property {number} doubts how often it has failed although the store had answered others since
 */

/** Asks a store in the order of the calls, several questions at a time, and where wanted remembers what it misses. */
class StoreWithFallback {
  #store;
  #cache;
  /** What answers while the store fails, from the cache; undefined if nothing does. */
  #local;
  /** @type {Question[]} */
  #questions = [];
  #isWorking = false;
  /** How many calls the store has answered. */
  #answered = 0;
  /** When the store is asked again, in milliseconds of a monotonic clock; 0 while it works. */
  #retryAt = 0;
  #patience = new Patience();
  /** Refusals since the store has last answered. */
  #refusals = 0;
  /**
   * What the store has not got, or may not have, oldest first.
   *
   * @type {Batch[]}
   */
  #missed = [];
  /** How many vectors that is, with what is on its way. */
  #missedVectors = 0;
  /** When that is sent again at the earliest. It must not keep the scorer from its store, so it has a time of its own. */
  #resendAt = 0;
  #resendPatience = new Patience();
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  /**
   * Who waits for the store to have all.
   *
   * @type {Array<{ resolve: () => void, reject: (reason: unknown) => void, refusal: unknown }>}
   */
  #flushes = [];

  /**
   * @param {NoveltyStore} store
   * @param {VectorCache} cache
   * @param {'reject' | 'local'} onError
   */
  constructor(store, cache, onError) {
    this.#store = store;
    this.#cache = cache;
    this.#local = onError === 'local' ? new LocalStore(cache) : undefined;
  }

  /**
   * Asks what an entry is nearest to, after all questions before.
   *
   * @param {NoveltyEntry} entry
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   * @param {AbortSignalLike | undefined} signal
   * @returns {Answer | Promise<Answer>}
   */
  ask(entry, remember, call, signal) {
    throwIfAborted(signal);
    const ask = (/** @type {AbortSignal | undefined} */ own) => {
      /** @type {Promise<Answer>} */
      const answer = new Promise((resolve, reject) => {
        this.#questions.push({ entry, remember, call, signal: own, resolve, reject });
      });
      this.#work();
      return answer;
    };
    // A store is handed the signal of what is only asked.
    const begin = () => (remember ? ask(undefined) : withOwnSignal(signal, ask));
    return cancellable(begin, call, signal);
  }

  /**
   * Resolves when the store has all that it has missed, and rejects when it does not take that now.
   *
   * @param {AbortSignalLike | undefined} signal
   * @returns {Promise<void>}
   */
  flush(signal) {
    /** @type {Promise<void>} */
    const flushed = new Promise((resolve, reject) => {
      this.#flushes.push({ resolve, reject, refusal: undefined });
    });
    this.#work();
    return untilAborted(flushed, signal);
  }

  async #work() {
    if (this.#isWorking) return;
    this.#isWorking = true;
    clearTimeout(this.#timer);
    try {
      // What else is asked at this moment goes along.
      await null;
      // One call after another: the store gets what it has missed in between.
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
    return this.#questions.splice(0, count).filter(({ call, signal, reject }) => {
      // From here on the memory may have what is to be remembered; what is only asked can be aborted to its end.
      const isWanted = remember
        ? call === undefined || call.complete()
        : signal === undefined || !isAborted(signal);
      // Nobody sees it, but the calls that come later wait for an answer.
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
      // A batch that one of these fails cancels its others, which are not to be sent then.
      await setImmediate();
    }
  }

  /**
   * @param {import('../../index.js').NoveltyEntry[]} entries
   * @returns {Promise<Answer[]>}
   */
  async #compareAndAdd(entries) {
    const batch = batchOf(entries);
    const local = this.#local;
    if (local === undefined) {
      return answersOf(readComparisons(await this.#send(batch), entries), false);
    }
    // Before the store has them, and an answer that could not be given here.
    requireComparable(this.#cache, entries[0]);
    if (performance.now() < this.#retryAt) return this.#answerLocally(local, batch, { keep: true });
    let answer;
    try {
      answer = await this.#send(batch);
    } catch (error) {
      if (!isRefusal(error)) {
        this.#leaveAlone(error);
        batch.failedAfter = this.#answered;
        return this.#answerLocally(local, batch, { keep: true });
      }
      if (entries.length > 1) return this.#compareAndAddEach(entries);
      this.#tellRefusal(error);
      return this.#answerLocally(local, batch, { keep: false });
    }
    let comparisons;
    try {
      comparisons = readComparisons(answer, entries);
    } catch (error) {
      // It has them all the same.
      this.#tellRefusal(error);
      return this.#answerLocally(local, batch, { keep: false });
    }
    this.#markWorking();
    return answersOf(await this.#withCache(local, comparisons, entries), false);
  }

  /**
   * Has what was scored last at hand for when the store fails. What the store still lacks is only there to compare with.
   *
   * @param {Local} local
   * @param {NoveltyComparison[]} comparisons
   * @param {NoveltyEntry[]} entries
   */
  async #withCache(local, comparisons, entries) {
    try {
      if (this.#missed.length === 0) {
        await addEntries(this.#cache, entries);
        return comparisons;
      }
      const own = await local.compareAndAddBatch(entries);
      return comparisons.map((comparison, index) => nearer(comparison, own[index]));
    } catch {
      // Somebody else has filled the cache meanwhile with vectors of another model, or the memory: the answer stands.
      return comparisons;
    }
  }

  /**
   * One call for each, to find out which of them the store does not take.
   *
   * @param {NoveltyEntry[]} entries
   */
  async #compareAndAddEach(entries) {
    /** @type {Answer[]} */
    const answers = [];
    for (const entry of entries) answers.push(...(await this.#compareAndAdd([entry])));
    return answers;
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
    requireComparable(this.#cache, entry);
    if (performance.now() >= this.#retryAt) {
      try {
        const comparison = await lookIn(this.#store, entry, signal);
        this.#markWorking();
        const own = this.#missed.length > 0 ? await lookIn(local, entry) : comparison;
        return { comparison: nearer(comparison, own), isLocal: false };
      } catch (error) {
        throwIfAborted(signal);
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
    this.#patience = new Patience();
    this.#resendAt = 0;
  }

  /** @param {unknown} error */
  #leaveAlone(error) {
    const isFirst = this.#retryAt === 0;
    this.#retryAt = performance.now() + this.#patience.next();
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
    else this.#missed.push(batch);
    this.#missedVectors += sizeOf(batch);
    while (this.#missedVectors > MOST_MISSED) {
      const oldest = this.#missed.shift();
      // What is on its way is not among them.
      if (oldest === undefined) break;
      this.#missedVectors -= sizeOf(oldest);
    }
  }

  get #isResendDue() {
    return this.#missed.length > 0 && (this.#flushes.length > 0 || performance.now() >= this.#nextResend);
  }

  get #nextResend() {
    return Math.max(this.#retryAt, this.#resendAt);
  }

  /** Sees to it that the store gets what it has missed also when nothing more is asked. */
  #scheduleResend() {
    if (this.#missed.length === 0) return;
    const delay = Math.max(1, Math.ceil(this.#nextResend - performance.now()));
    this.#timer = setTimeout(() => this.#work(), delay);
    // No process has to go on for it.
    this.#timer.unref();
  }

  /**
   * Sends one batch that the store has missed.
   *
   * @param {Batch} batch
   */
  async #resend(batch) {
    try {
      await this.#send(batch);
    } catch (error) {
      // An error that says nothing may lie with the batch: if the store works, and again and again not for this one.
      if (batch.failedAfter !== undefined && batch.failedAfter < this.#answered) batch.doubts++;
      const isRefused = isRefusal(error) || (!isPassing(error) && batch.doubts >= MOST_REFUSALS);
      if (isRefused) this.#takeApart(batch, error);
      else this.#sendLater(batch, error);
      return;
    }
    this.#missedVectors -= sizeOf(batch);
    this.#resendPatience = new Patience();
    this.#markWorking();
  }

  /**
   * Behind the others, so that it does not hold them up.
   *
   * @param {Batch} batch
   * @param {unknown} error
   */
  #sendLater(batch, error) {
    batch.failedAfter = this.#answered;
    this.#missed.push(batch);
    this.#resendAt = performance.now() + this.#resendPatience.next();
    for (const { reject } of this.#flushes.splice(0)) reject(typed(error));
  }

  /**
   * Has what was refused together sent one by one, and gives up what was refused alone.
   *
   * @param {Batch} batch
   * @param {unknown} error
   */
  #takeApart(batch, error) {
    if (batch.entries.length > 1) {
      // None is added to.
      const apart = batch.entries.map((entry) => ({ ...batchOf([entry]), isSent: true }));
      this.#missed.unshift(...apart);
      return;
    }
    this.#missedVectors -= sizeOf(batch);
    this.#tellRefusal(error);
    for (const flush of this.#flushes) flush.refusal ??= typed(error);
  }

  #settleFlushes() {
    if (this.#missed.length > 0) return;
    for (const { resolve, reject, refusal } of this.#flushes.splice(0)) {
      if (refusal === undefined) resolve();
      else reject(refusal);
    }
  }
}

/** How long to wait after each failure. */
class Patience {
  #next = PATIENCE[0];

  next() {
    const patience = this.#next;
    this.#next = Math.min(patience * 2, PATIENCE[1]);
    return patience;
  }
}

/**
 * @param {NoveltyEntry[]} entries
 * @returns {Batch}
 */
function batchOf(entries) {
  return { call: randomUUID(), entries, isSent: false, failedAfter: undefined, doubts: 0 };
}

/** @param {Batch} batch */
function sizeOf({ entries }) {
  return entries.reduce((size, { vectors }) => size + vectors.length, 0);
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
