'use strict';

// Scores as callers get them.

/** @import { NearestTrace, Score, ScoringWeights } from '../index.js' */

/**
 * How a score came about, as the addon and the command have it.
 *
 * @typedef {object} Breakdown
 * @property {number} score
 * @property {ScoringWeights} dimensions
 * @property {string} profile
 * @property {ScoringWeights} weights
 * @property {ScoringWeights} contributions
 * @property {number} composite
 * @property {Score['overrides']} overrides
 * @property {'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder'} noveltyBasis
 * @property {Omit<NearestTrace, 'id'> & { label: string | null } | null} nearest
 * @property {number | null} tokens
 * @property {boolean | null} truncated
 */

/**
 * Returns the score of a breakdown in JSON.
 *
 * @param {string} json
 * @returns {Score}
 */
function scoreOf(json) {
  /** @type {Breakdown} */
  const { score, dimensions, weights, overrides, nearest, noveltyBasis } = JSON.parse(json);
  const { label: id = null, ...rest } = nearest ?? {};
  return {
    value: score,
    dimensions,
    weights,
    overrides,
    nearest: nearest && /** @type {NearestTrace} */ ({ id, ...rest }),
    basis: /** @type {Score['basis']} */ (noveltyBasis.replace('cache', 'memory')),
  };
}

module.exports = { scoreOf };
