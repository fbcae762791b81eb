'use strict';

// The default scorer of the process, and its methods as the functions of the SDK.

const native = require('./loader.js').addon;
const { Scorer } = require('./scorer.js');
const { adoptNative } = require('./vector-cache.js');

/** @import { BatchOptions, CallOptions, ExplainOptions, ReadonlyReasoningTrace, ScoreBreakdown } from '../index.js' */

/** @type {import('../index.js').VectorCache} */
const localCache = adoptNative(native.localCache());
/** The scorer behind the functions: its memory is that of the process, shared by all threads. */
const defaultScorer = new Scorer({ memory: localCache });

/**
 * Ignores the index that `map` passes in place of the options.
 *
 * @template Options
 * @param {Options | number | undefined} options
 */
const unlessIndex = (options) => (typeof options === 'number' ? undefined : options);

/**
 * Scores a trace, 0 to 1, by complexity, novelty, tool diversity and outcome, and remembers it.
 *
 * @param {ReadonlyReasoningTrace} trace
 * @param {CallOptions | number} [options]
 * @returns {Promise<number>}
 */
function evaluateValue(trace, options) {
  return defaultScorer.evaluateValue(trace, unlessIndex(options));
}

/**
 * Scores many traces, several at a time, as one `evaluateValue` after another would.
 *
 * @param {readonly ReadonlyReasoningTrace[]} traces
 * @param {BatchOptions | number} [options]
 * @returns {Promise<number[]>}
 */
function evaluateValues(traces, options) {
  return defaultScorer.evaluateValues(traces, unlessIndex(options));
}

/**
 * Scores a trace as `evaluateValue` does, and returns the parts of the score.
 *
 * @param {ReadonlyReasoningTrace} trace
 * @param {ExplainOptions | number} [options]
 * @returns {Promise<ScoreBreakdown>}
 */
function explain(trace, options) {
  return defaultScorer.explain(trace, unlessIndex(options));
}

/**
 * Returns the novelty memory of `evaluateValue`: the live one, not a copy.
 *
 * @returns {import('../index.js').VectorCache}
 */
function _getLocalCache() {
  return localCache;
}

module.exports = { _getLocalCache, defaultScorer, evaluateValue, evaluateValues, explain };
