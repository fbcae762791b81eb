'use strict';

// A store that is stood in for by a memory of this process while it fails.

const { codeOf, codedError, fromAddon } = require('../calls/errors.js');

/** @import { Entry, Neighbour, Store } from './calls.js' */

/** @typedef {{ call: string, entries: readonly Entry[] }} Missed traces that the store has missed, under the id of their first attempt */

/** The most traces that wait for the store. */
const MOST_MISSED = 10_000;

/** The pauses after which a failed store is tried again, in milliseconds: the first, which doubles, and the longest. */
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30_000;

/** Codes of failures after which the traces are sent again. With any other one, the store refuses them for good. */
const PASSING = ['ERR_STORE_UNAVAILABLE', 'ERR_STORE_SCHEMA'];

/** The name of the property of a store that asks it, for scorers of all copies of this package. */
const ASKED = Symbol.for('@knowledgepulse/native.store');

/**
 * Returns what asks a store, which all of its scorers share.
 *
 * @param {Store & { [ASKED]?: StoreWithFallback }} store
 * @param {boolean} hasFallback whether the scorers' own memory is its fallback
 */
function asked(store, hasFallback) {
  if (store[ASKED] !== undefined) return store[ASKED];
  const value = new StoreWithFallback(store, hasFallback);
  Object.defineProperty(store, ASKED, { value });
  return value;
}

/**
 * Sends what a store has missed; see `PostgresStore.flush`.
 *
 * @param {Store & { [ASKED]?: StoreWithFallback }} store
 */
async function flush(store) {
  await store[ASKED]?.flush();
}

/**
 * Asks a store, and while that fails its fallback, the memory of its scorers. From the first failure until the store has all traces that it
 * has missed, the memory answers, and every trace joins the queue of the missed ones.
 */
class StoreWithFallback {
  #store;
  #hasFallback;
  /** @type {Missed[]} in the order in which they were missed */
  #missed = [];
  /** @type {{ count: number, reason: unknown } | undefined} the traces that were dropped since a `flush`, and why the first */
  #lost;
  #pause = FIRST_PAUSE;
  /** @type {NodeJS.Timeout | undefined} the next attempt */
  #timer;
  /** @type {Promise<unknown>} the last attempt */
  #sending = Promise.resolve();
  /** Whether the store fails: a failure has been told, and the store does not have all missed traces yet. */
  #isAway = false;

  /**
   * @param {Store} store
   * @param {boolean} hasFallback
   */
  constructor(store, hasFallback) {
    this.#store = store;
    this.#hasFallback = hasFallback;
  }

  /**
   * Compares entries, and adds them if this is a `call`.
   *
   * @param {readonly Entry[]} entries
   * @param {string | null} call
   * @returns {Promise<{ found: Array<Neighbour | null>, isLocal: boolean }>}
   */
  async compare(entries, call) {
    // First, because it must be able to answer: one of another model rejects the call.
    const own = this.#hasFallback && call !== null ? await nearestOf(entries, true) : undefined;
    if (!this.#isAway) {
      try {
        return { found: await this.#store.compare(entries, call), isLocal: false };
      } catch (error) {
        if (!this.#hasFallback) throw error;
        if (isPassing(error)) this.#leave(error);
        else this.#drop(call === null ? 0 : entries.length, error);
      }
    }
    if (this.#isAway && call !== null) this.#keep({ call, entries });
    return { found: own ?? (await nearestOf(entries, false)), isLocal: true };
  }

  /** Sends what the store has missed. Rejects if it fails, or if traces were dropped. */
  async flush() {
    await this.#send();
    const lost = this.#lost;
    this.#lost = undefined;
    if (lost === undefined || lost.count === 0) return;
    const message =
      `the store lacks ${lost.count} of the traces that it should have, the first because ` +
      `${/** @type {Error} */ (lost.reason).message}; score them again if the store must have them`;
    throw codedError(Error, 'ERR_STORE_DROPPED', message, lost.reason);
  }

  /** @param {unknown} error */
  #leave(error) {
    // The call of another scorer may have failed meanwhile.
    if (this.#isAway) return;
    this.#isAway = true;
    this.#pause = FIRST_PAUSE;
    tell(
      'The novelty store does not work, so traces are compared with the memory of this process until it does',
      error,
    );
    this.#schedule();
  }

  /** @param {Missed} missed */
  #keep(missed) {
    this.#missed.push(missed);
    let count = this.#missed.reduce((sum, { entries }) => sum + entries.length, 0);
    while (count > MOST_MISSED) {
      const dropped = /** @type {Missed} */ (this.#missed.shift()).entries.length;
      count -= dropped;
      const reason = `more than ${MOST_MISSED} traces wait for it`;
      this.#drop(dropped, codedError(Error, 'ERR_STORE_DROPPED', reason));
    }
  }

  /**
   * Counts traces that the store does not get, and tells of the first.
   *
   * @param {number} count
   * @param {unknown} reason
   */
  #drop(count, reason) {
    if (this.#lost === undefined) {
      this.#lost = { count: 0, reason };
      tell('The novelty store lacks traces, which this process alone compares with', reason);
    }
    this.#lost.count += count;
  }

  #schedule() {
    this.#timer = setTimeout(() => this.#send().catch(ignore), this.#pause);
    // The timer does not keep the process alive.
    this.#timer.unref();
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  /** Sends the missed traces in their order, until the store has all or fails, which rejects. One attempt follows another. */
  #send() {
    const sending = this.#sending.then(() => this.#sendAll());
    this.#sending = sending.catch(ignore);
    return sending;
  }

  async #sendAll() {
    clearTimeout(this.#timer);
    while (this.#isAway) {
      // Out of the queue, so that it is not dropped while the store gets it.
      const first = this.#missed.shift();
      try {
        if (first === undefined) await this.#store.size();
        else await this.#store.compare(first.entries, first.call);
      } catch (error) {
        if (isPassing(error)) {
          if (first !== undefined) this.#missed.unshift(first);
          this.#schedule();
          throw error;
        }
        this.#drop(first?.entries.length ?? 0, error);
      }
      if (this.#missed.length === 0) this.#isAway = false;
    }
  }
}

/**
 * Compares entries with the memory of their scorer, one after another.
 *
 * @param {readonly Entry[]} entries
 * @param {boolean} remember
 */
async function nearestOf(entries, remember) {
  const found = [];
  for (const { embedded } of entries) {
    const [nearest = null] = (await fromAddon(() => embedded?.nearest(1, remember))) ?? [];
    found.push(/** @type {Neighbour | null} */ (nearest && { ...nearest }));
  }
  return found;
}

const ignore = () => {};

/** @param {unknown} error */
const isPassing = (error) => PASSING.includes(codeOf(error) ?? '');

/**
 * @param {string} message
 * @param {unknown} error
 */
function tell(message, error) {
  process.emitWarning(`${message}: ${/** @type {Error} */ (error).message}`, {
    type: 'KnowledgePulseWarning',
    code: codeOf(error) ?? 'ERR_STORE',
  });
}

module.exports = { StoreWithFallback, asked, flush };
