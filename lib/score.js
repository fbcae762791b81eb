'use strict';

// Scores as callers get them.

/** @import { NearestTrace, Score, ScoringWeights } from '../index.js' */

/**
 * How a score came about: what is read of a breakdown of the addon and the command.
 *
 * @typedef {object} Breakdown
 * @property {number} score
 * @property {ScoringWeights} dimensions
 * @property {ScoringWeights} weights
 * @property {Score['overrides']} overrides
 * @property {'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder'} noveltyBasis
 * @property {Omit<NearestTrace, 'id'> & { label: string | null } | null} nearest
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
