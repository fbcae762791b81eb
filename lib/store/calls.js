'use strict';

// The calls of a scorer whose memory is a store: the addon embeds, the store compares, and the addon scores.

const { setImmediate } = require('node:timers/promises');

const { cancellable } = require('../calls/cancel.js');
const { codedError, errorOfTrace, fromAddon } = require('../calls/errors.js');
const { readFrom } = require('../calls/reading.js');
const native = require('../loader.js').addon;

/**
 * @import { NoveltyMethod, ScoreBreakdown, VectorModel } from '../../index.js'
 * @import { EmbeddedTrace, NativeCall, NativeScorer } from '../binding.js'
 * @import { Batch } from '../scorer.js'
 * @import { StoreWithFallback } from './fallback.js'
 */

/**
 * A trace to compare: its embedding, its words in bytes of the addon, or both.
 *
 * @typedef {{ id: string | null, vector: Float32Array | null, words: Uint8Array | null, model: VectorModel | null }} Entry
 */

/**
 * The most similar trace, with the parts of the similarity if it was compared by words.
 *
 * @typedef {{ label: string | null, similarity: number, lexical: number | null, contained: number | null, embedded: number | null }} Neighbour
 */

/**
 * A memory that lies elsewhere. `compareAndAdd` compares entries with those before them and adds them, all or none, and once for each `call`, a
 * UUID. `compare` adds nothing. Both give null where there is nothing to compare with.
 *
 * @typedef {object} Store
 * @property {NoveltyMethod} novelty
 * @property {(entries: readonly Entry[], call?: string) => Promise<Array<Neighbour | null>>} compareAndAdd
 * @property {(entry: Entry) => Promise<Neighbour | null>} compare
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

/** The most traces that a store gets at a time, and the most of a batch in flight. */
const MOST_ENTRIES = 64;

/** The number of traces of a batch after which other work gets a turn. */
const BREATH = 256;

/** @typedef {ScoreBreakdown['noveltyBasis']} Basis */

/** @type {Partial<Record<Basis, Basis>>} the bases of the addon that a store has in their place */
const STORE_BASES = { cache: 'store', 'empty-cache': 'empty-store' };

/** Asks a store in the order of the calls, several traces at a time, and replies in that order. */
class StoreCalls {
  #native;
  #store;
  #fallback;
  /** @type {Question[]} */
  #questions = [];
  #isWorking = false;
  /** Resolves when all calls so far have asked the store, and when all have been replied to. */
  #asked = Promise.resolve();
  #replied = Promise.resolve();

  /**
   * @param {NativeScorer} native
   * @param {Store} store
   * @param {InstanceType<typeof StoreWithFallback>} [fallback] of the store
   */
  constructor(native, store, fallback) {
    this.#native = native;
    this.#store = store;
    this.#fallback = fallback;
  }

  /**
   * @param {unknown} trace
   * @param {{ remember?: boolean, signal: AbortSignal | undefined }} options
   * @returns {Promise<ScoreBreakdown>}
   */
  explain(trace, { remember = true, signal }) {
    const call = signal && new native.NativeCall();
    return this.inOrder((earlier, asked) => {
      const begin = () => this.#explain(this.#embed(trace, call), { remember, call, earlier, asked });
      return cancellable(begin, signal, () => call?.cancel() === true);
    });
  }

  /**
   * Scores the traces of a batch. Later calls ask the store when it ends. Traces before an invalid one are scored, and stay in the store.
   *
   * @param {Batch} batch
   */
  evaluateAll({ traces, length, signal, onProgress }) {
    /** @type {number[]} */
    const scores = [];
    /** @type {Array<{ call: NativeCall, reply: Promise<ScoreBreakdown> }>} */
    const inFlight = [];
    const takeFirst = async () => {
      const { score } = await inFlight[0].reply;
      inFlight.shift();
      // If all traces in flight are scored, no rejection reports the abort.
      signal?.throwIfAborted();
      scores.push(score);
      onProgress?.({ done: scores.length, total: length });
    };
    /** @param {Promise<void>} earlier */
    const evaluate = async (earlier) => {
      let failure;
      try {
        for (let index = 0; index < length && failure === undefined; index++) {
          if (inFlight.length === MOST_ENTRIES) await takeFirst();
          if (index % BREATH === BREATH - 1) await setImmediate();
          signal?.throwIfAborted();
          const call = new native.NativeCall();
          try {
            const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
            const reply = this.#explain(this.#embed(trace, call), { remember: true, call, earlier });
            // Its rejection is handled later.
            reply.catch(() => {});
            inFlight.push({ call, reply });
          } catch (error) {
            failure = errorOfTrace(error, index);
          }
        }
        while (inFlight.length > 0) await takeFirst();
      } catch (error) {
        for (const { call } of inFlight) call.cancel();
        throw error;
      }
      if (failure !== undefined) throw failure;
      return scores;
    };
    return this.inOrder((earlier) => cancellable(() => evaluate(earlier), signal));
  }

  /**
   * Resolves when earlier calls have been replied to, and the store has what it has missed.
   *
   * @param {AbortSignal | undefined} signal
   */
  async flush(signal) {
    await cancellable(async () => {
      await this.inOrder(async () => {});
      await this.#fallback?.flush();
    }, signal);
  }

  /**
   * Makes a call. `begin` gets what resolves when earlier calls have asked the store, and what it calls when it has; its reply follows theirs.
   *
   * @template T
   * @param {(earlier: Promise<void>, asked: () => void) => T | Promise<T>} begin
   * @returns {Promise<T>}
   */
  async inOrder(begin) {
    const [earlier, earlierReplies] = [this.#asked, this.#replied];
    let asked = () => {};
    let replied = () => {};
    const hasAsked = new Promise((/** @type {(value?: undefined) => void} */ resolve) => {
      asked = resolve;
    });
    this.#asked = earlier.then(() => hasAsked);
    this.#replied = new Promise((resolve) => {
      replied = resolve;
    });
    try {
      return await begin(earlier, asked);
    } finally {
      asked();
      await earlierReplies;
      replied();
    }
  }

  /**
   * Reads a trace, and embeds it if embeddings are compared. Throws for an invalid trace.
   *
   * @param {unknown} trace
   * @param {NativeCall | undefined} call
   */
  #embed(trace, call) {
    return fromAddon(() => this.#native.embed(trace, call));
  }

  /**
   * @param {Promise<EmbeddedTrace>} embedding
   * @param {{ remember: boolean, call: NativeCall | undefined, earlier: Promise<void>, asked?: () => void }} options
   */
  async #explain(embedding, { remember, call, earlier, asked }) {
    const embedded = await embedding;
    await earlier;
    const entry = entryOf(embedded);
    if (entry === null) return embedded.score(null);
    /** @type {Promise<Answer>} */
    const answer = new Promise((resolve, reject) => {
      this.#questions.push({ entry, remember, call, resolve, reject });
    });
    asked?.();
    this.#work();
    const { found, isLocal } = await answer;
    const breakdown = fromAddon(() => embedded.score(found));
    const { noveltyBasis } = breakdown;
    return isLocal ? breakdown : { ...breakdown, noveltyBasis: STORE_BASES[noveltyBasis] ?? noveltyBasis };
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
    const [{ entry, remember }] = questions;
    const entries = questions.map((question) => question.entry);
    try {
      const { found, isLocal } = remember ? await this.#compareAndAdd(entries) : await this.#compare(entry);
      for (const [index, { resolve }] of questions.entries()) resolve({ found: found[index], isLocal });
    } catch (error) {
      for (const { reject } of questions) reject(error);
      // Lets a batch that fails here cancel its other traces before they are sent.
      await setImmediate();
    }
  }

  /** @param {Entry[]} entries */
  async #compareAndAdd(entries) {
    // Loaded late, because it takes 1.5 of the 17 ms of an import of the package.
    const call = require('node:crypto').randomUUID();
    const fallback = this.#fallback;
    if (fallback !== undefined) return fallback.compareAndAdd(entries, call);
    return { found: await this.#store.compareAndAdd(entries, call), isLocal: false };
  }

  /** @param {Entry} entry */
  async #compare(entry) {
    const answer = this.#fallback?.compare(entry) ?? {
      found: await this.#store.compare(entry),
      isLocal: false,
    };
    const { found, isLocal } = await answer;
    return { found: [found], isLocal };
  }
}

/**
 * Returns an entry for a store; null if there is nothing to compare. Copies, so that the arrays and the object are of the caller's realm.
 *
 * @param {EmbeddedTrace} embedded
 * @returns {Entry | null}
 */
function entryOf({ id, vector, words, model }) {
  if (vector === null && words === null) return null;
  return {
    id,
    vector: vector && new Float32Array(vector),
    words: words && new Uint8Array(words),
    model: model && { model: model.model, dtype: model.dtype },
  };
}

module.exports = { StoreCalls };
