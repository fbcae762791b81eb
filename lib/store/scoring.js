'use strict';

// Scoring by a store: the addon embeds, the store compares, and the addon scores.

const { untilAborted } = require('../calls/abort.js');
const { fromAddon } = require('../calls/errors.js');

/**
 * @import { AbortSignalLike, ScoreBreakdown } from '../../index.js'
 * @import { EmbeddedTrace, NativeBreakdown, NativeCall, NativeModelIdentity } from '../binding.js'
 */

/**
 * What the addon tells of a score. With a store, its name takes the place of the cache's in what novelty rests on.
 *
 * @typedef {Omit<NativeBreakdown, 'noveltyBasis'> & { noveltyBasis: ScoreBreakdown['noveltyBasis'] }} Found
 */

/** @type {Record<NativeBreakdown['noveltyBasis'], ScoreBreakdown['noveltyBasis']>} */
const STORE_BASES = { cache: 'store', 'empty-cache': 'empty-store', 'no-embedder': 'no-embedder' };

/** The scorings of one scorer. Their replies are made here and not by the engine, so their order is kept here. */
class StoreScoring {
  #memory;
  /**
   * Settles, and never rejects, when the last call has; undefined if none is under way.
   *
   * @type {Promise<void> | undefined}
   */
  #lastReply;

  /** @param {InstanceType<typeof import('./fallback.js').StoreWithFallback>} memory */
  constructor(memory) {
    this.#memory = memory;
  }

  /**
   * Embeds a trace with `embed`, asks the store in the order of the calls, and scores. Throws for an invalid trace.
   *
   * @param {() => Promise<EmbeddedTrace>} embed
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   * @param {AbortSignalLike | undefined} signal
   * @returns {Promise<Found>}
   */
  explain(embed, remember, call, signal) {
    return this.#score(fromAddon(embed), remember, call, signal);
  }

  /**
   * @param {Promise<EmbeddedTrace>} embedding
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   * @param {AbortSignalLike | undefined} signal
   * @returns {Promise<Found>}
   */
  async #score(embedding, remember, call, signal) {
    // The embeddings come in the order of the calls, and so the questions do.
    const embedded = await embedding;
    const { vectors } = embedded;
    if (vectors === null) return embedded.score([]);
    // Vectors have a model.
    const { model, dtype } = /** @type {NativeModelIdentity} */ (embedded.model);
    const entry = {
      id: embedded.id,
      // Copies, so that the arrays and the object are of the caller's realm.
      vectors: Array.from(vectors, (vector) => new Float32Array(vector)),
      model: { model, dtype },
      method: embedded.method ?? undefined,
    };
    const { comparison, isLocal } = await this.#memory.ask(entry, remember, call, signal);
    const breakdown = fromAddon(() => embedded.score(comparison));
    return isLocal ? breakdown : { ...breakdown, noveltyBasis: STORE_BASES[breakdown.noveltyBasis] };
  }

  /**
   * Makes a call with `begin`. Its reply comes after those to the calls before.
   *
   * @template T
   * @param {() => T | Promise<T>} begin
   * @returns {Promise<T>}
   */
  inOrder(begin) {
    const before = this.#lastReply;
    const reply = (async () => begin())();
    const settled = (async () => {
      try {
        return await reply;
      } finally {
        await before;
      }
    })();
    const ignore = () => {};
    const last = settled.then(ignore, ignore).then(() => {
      if (this.#lastReply === last) this.#lastReply = undefined;
    });
    this.#lastReply = last;
    return settled;
  }

  /**
   * Resolves when the store has what the calls before this one have found missing.
   *
   * @param {AbortSignalLike | undefined} signal
   */
  async flush(signal) {
    if (this.#lastReply !== undefined) await untilAborted(this.#lastReply, signal);
    await this.#memory.flush(signal);
  }
}

module.exports = { StoreScoring };
