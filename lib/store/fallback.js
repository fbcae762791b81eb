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
  /** The traces that were dropped since a `flush` told their number. */
  #dropped = 0;
  #pause = FIRST_PAUSE;
  /** @type {NodeJS.Timeout | undefined} the next attempt */
  #timer;
  /** @type {Promise<unknown>} the last attempt */
  #sending = Promise.resolve();
  /** Whether the store fails: a failure has been told, and the store does not have all missed traces yet. */
  #isAway = false;
  #hasToldRefusal = false;

  /**
   * @param {Store} store
   * @param {boolean} hasFallback
   */
  constructor(store, hasFallback) {
    this.#store = store;
    this.#hasFallback = hasFallback;
  }

  /**
   * Compares entries, and adds them if this is a `call`; without one there is a single entry.
   *
   * @param {readonly Entry[]} entries
   * @param {string | undefined} call
   * @returns {Promise<{ found: Array<Neighbour | null>, isLocal: boolean }>}
   */
  async compare(entries, call) {
    const remember = call !== undefined;
    // First, because it must be able to answer: one of another model rejects the call.
    const own = this.#hasFallback && remember ? await nearestOf(entries, true) : undefined;
    if (!this.#isAway) {
      try {
        const found = remember
          ? await this.#store.compareAndAdd(entries, call)
          : [await this.#store.compare(entries[0])];
        this.#hasToldRefusal = false;
        return { found, isLocal: false };
      } catch (error) {
        if (!this.#hasFallback) throw error;
        if (isPassing(error)) this.#leave(error);
        else this.#tellRefusal(error);
      }
    }
    if (this.#isAway && remember) this.#keep({ call, entries });
    return { found: own ?? (await nearestOf(entries, false)), isLocal: true };
  }

  /** Sends what the store has missed. Rejects if it fails, or if traces were dropped. */
  async flush() {
    await this.#send();
    const count = this.#dropped;
    if (count === 0) return;
    this.#dropped = 0;
    const message =
      `the store lacks ${count} of the traces that it has missed: more than ${MOST_MISSED} waited for it, ` +
      'so the oldest were dropped; score them again if the store must have them';
    throw codedError(Error, 'ERR_STORE_DROPPED', message);
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
      if (this.#dropped === 0) {
        const reason = codedError(Error, 'ERR_STORE_DROPPED', `more than ${MOST_MISSED} traces wait for it`);
        tell('The oldest traces that the novelty store has missed are dropped', reason);
      }
      count -= dropped;
      this.#dropped += dropped;
    }
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
    /** @type {{ error: unknown } | undefined} */
    let refusal;
    while (this.#isAway) {
      // Out of the queue, so that it is not dropped while the store gets it.
      const first = this.#missed.shift();
      try {
        if (first === undefined) await this.#store.size();
        else await this.#store.compareAndAdd(first.entries, first.call);
      } catch (error) {
        if (isPassing(error)) {
          if (first !== undefined) this.#missed.unshift(first);
          this.#schedule();
          throw error;
        }
        refusal = { error };
        this.#tellRefusal(error);
      }
      if (this.#missed.length === 0) this.#isAway = false;
    }
    if (refusal !== undefined) throw refusal.error;
  }

  /** @param {unknown} error */
  #tellRefusal(error) {
    if (this.#hasToldRefusal) return;
    this.#hasToldRefusal = true;
    tell('The novelty store refuses traces, which are compared with the memory of this process alone', error);
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
