'use strict';

// The default scorer of the process, and its methods as the functions of the SDK.

const native = require('./loader.js').addon;
const { Scorer } = require('./scorer.js');
const { adoptNative } = require('./vector-cache.js');

/** @import { BatchOptions, CallOptions, ExplainOptions, ReadonlyReasoningTrace } from '../index.js' */

/** @type {import('../index.js').VectorCache} */
const localCache = adoptNative(native.localCache());
/** The scorer behind the functions: its memory is that of the process, shared by all threads. */
const processScorer = new Scorer({ memory: localCache });

/**
 * Ignores the index that `map` passes in place of the options.
 *
 * @template Options
 * @param {Options | number | null | undefined} options
 */
const unlessIndex = (options) => (options === null || typeof options === 'number' ? undefined : options);

/**
 * @param {ReadonlyReasoningTrace} trace
 * @param {CallOptions | number | null} [options]
 */
function evaluateValue(trace, options) {
  return processScorer.evaluateValue(trace, unlessIndex(options));
}

/**
 * @param {readonly ReadonlyReasoningTrace[]} traces
 * @param {BatchOptions | number | null} [options]
 */
function evaluateValues(traces, options) {
  return processScorer.evaluateValues(traces, unlessIndex(options));
}

/**
 * @param {ReadonlyReasoningTrace} trace
 * @param {ExplainOptions | number | null} [options]
 */
function explain(trace, options) {
  return processScorer.explain(trace, unlessIndex(options));
}

/** @type {typeof import('../index.js')._getLocalCache} */
function _getLocalCache() {
  return localCache;
}

module.exports = { _getLocalCache, evaluateValue, evaluateValues, explain };
