'use strict';

// Scoring by a store: the addon embeds, the store compares, and the addon scores.

const { fromAddon } = require('../calls/errors.js');

/**
 * @import { ScoreBreakdown } from '../../index.js'
 * @import { EmbeddedTrace, NativeBreakdown, NativeCall } from '../binding.js'
 */

/**
 * A breakdown of the addon, whose `noveltyBasis` can name the store.
 *
 * @typedef {Omit<NativeBreakdown, 'noveltyBasis'> & { noveltyBasis: ScoreBreakdown['noveltyBasis'] }} Found
 */

/** @type {Record<NativeBreakdown['noveltyBasis'], ScoreBreakdown['noveltyBasis']>} */
const STORE_BASES = {
  cache: 'store',
  'empty-cache': 'empty-store',
  'no-embedder': 'no-embedder',
  given: 'given',
};

/**
 * Asks the store about an embedded trace, in the order of the calls, and scores it.
 *
 * @param {InstanceType<typeof import('./fallback.js').StoreWithFallback>} store
 * @param {Promise<EmbeddedTrace>} embedding
 * @param {boolean} remember
 * @param {NativeCall | undefined} call
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<Found>}
 */
async function explainByStore(store, embedding, remember, call, signal) {
  // Embeddings resolve in the order of the calls, so the store is asked in that order.
  const embedded = await embedding;
  const { vector, words, model } = embedded;
  if (vector === null && words === null) return embedded.score(null);
  // Copies, so that the arrays and the object are of the caller's realm.
  const entry = {
    id: embedded.id,
    vectors: vector === null ? [] : [new Float32Array(vector)],
    ...(words === null ? {} : { words: new Uint8Array(words) }),
    model: model && { model: model.model, dtype: model.dtype },
    method: embedded.method ?? undefined,
  };
  const {
    comparison: [nearest],
    isLocal,
  } = await store.ask(entry, remember, call, signal);
  // The addon reads all fields; a neighbour by a vector has no parts.
  const neighbour = nearest && { lexical: null, contained: null, embedded: null, ...nearest };
  const breakdown = fromAddon(() => embedded.score(neighbour));
  return isLocal ? breakdown : { ...breakdown, noveltyBasis: STORE_BASES[breakdown.noveltyBasis] };
}

module.exports = { explainByStore };
