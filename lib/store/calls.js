'use strict';

// The calls of a scorer whose memory is a store: the addon embeds, the store compares, and the addon scores.

const { setImmediate } = require('node:timers/promises');

const { codedError, fromAddon } = require('../calls/errors.js');
const { asked } = require('./fallback.js');

/**
 * @import { NoveltyMethod } from '../../index.js'
 * @import { EmbeddedTrace, NativeCall, NativeNeighbour } from '../binding.js'
 */

/**
 * A trace to compare: its embedding, its words with it in bytes of the addon, or both; and the same in the addon.
 *
 * @typedef {{ id: string | null, vector: Float32Array | null, packed: Uint8Array | null, model: { model: string, dtype: string } | null,
 *   embedded?: EmbeddedTrace }} Entry
 */

/** @typedef {Required<NativeNeighbour>} Neighbour the most similar trace */

/**
 * A memory that lies elsewhere. `compare` compares entries with those before them, and gives null where there are none. It adds them, all or none,
 * and once for each `call`, a UUID; where that is null, it adds nothing.
 *
 * @typedef {object} Store
 * @property {NoveltyMethod} method
 * @property {(entries: readonly Entry[], call?: string | null) => Promise<Array<Neighbour | null>>} compare
 * @property {() => Promise<number>} size
 */

/** @typedef {{ found: Neighbour | null, isLocal: boolean }} Answer `isLocal`: of the fallback */

/**
 * @typedef {object} Question
 * @property {Entry} entry
 * @property {boolean} remember
 * @property {NativeCall | undefined} call
 * @property {(answer: Answer) => void} resolve
 * @property {(reason: unknown) => void} reject
 */

/** The most traces that a store gets at a time. */
const MOST_ENTRIES = 64;

/** Asks a store in the order of the calls, several traces at a time. */
class StoreCalls {
  #store;
  /** @type {Question[]} */
  #questions = [];
  #isWorking = false;

  /**
   * @param {Store} store
   * @param {boolean} hasFallback whether the scorer's own memory stands in for the store while that fails
   */
  constructor(store, hasFallback) {
    this.#store = asked(store, hasFallback);
  }

  /**
   * Scores a trace. The addon embeds traces in the order of the calls, so the store is asked in that order.
   *
   * @param {Promise<EmbeddedTrace>} embedding
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   */
  async explain(embedding, remember, call) {
    const embedded = await embedding;
    const entry = entryOf(embedded);
    if (entry === null) return embedded.score(null, true);
    /** @type {Promise<Answer>} */
    const answer = new Promise((resolve, reject) => {
      this.#questions.push({ entry, remember, call, resolve, reject });
    });
    this.#work();
    const { found, isLocal } = await answer;
    return fromAddon(() => embedded.score(found, !isLocal));
  }

  async #work() {
    if (this.#isWorking) return;
    this.#isWorking = true;
    // Questions that are asked in the same turn of the event loop go into the same call.
    await null;
    while (this.#questions.length > 0) await this.#answer(this.#take());
    this.#isWorking = false;
  }

  /** Takes the next questions for one call of the store: several to remember, or one that only asks. */
  #take() {
    const { remember } = this.#questions[0];
    const isOther = (/** @type {Question} */ question) => !question.remember;
    const end = remember ? this.#questions.slice(0, MOST_ENTRIES).findIndex(isOther) : 1;
    return this.#questions.splice(0, end === -1 ? MOST_ENTRIES : end).filter(({ call, reject }) => {
      // An entry that was sent cannot be cancelled, because the store may have it.
      const isWanted = !remember || call === undefined || call.complete();
      // The caller has its rejection already.
      if (!isWanted) reject(codedError(Error, 'ERR_ABORTED', 'the call was cancelled'));
      return isWanted;
    });
  }

  /** @param {Question[]} questions */
  async #answer(questions) {
    if (questions.length === 0) return;
    const entries = questions.map(({ entry }) => entry);
    // Loaded late, because it takes 1.5 of the 17 ms of an import of the package.
    const call = questions[0].remember ? require('node:crypto').randomUUID() : null;
    try {
      const { found, isLocal } = await this.#store.compare(entries, call);
      for (const [index, { resolve }] of questions.entries()) resolve({ found: found[index], isLocal });
    } catch (error) {
      for (const { reject } of questions) reject(error);
      // Lets a batch that fails here cancel its other traces before they are sent.
      await setImmediate();
    }
  }
}

/**
 * Returns an entry for a store; null if there is nothing to compare. Copies, so that the arrays and the object are of the caller's realm.
 *
 * @param {EmbeddedTrace} embedded
 * @returns {Entry | null}
 */
function entryOf(embedded) {
  const { id, vector, packed, model } = embedded;
  if (vector === null && packed === null) return null;
  return {
    id,
    vector: vector && new Float32Array(vector),
    packed: packed && new Uint8Array(packed),
    model: model && { model: model[0], dtype: model[1] },
    embedded,
  };
}

module.exports = { StoreCalls };
