'use strict';

// The default scorer of the process, and its methods as the functions of the SDK.

const native = require('./loader.js').addon;
const { Scorer } = require('./scorer.js');
const { adoptNative } = require('./vector-cache.js');

const localCache = adoptNative(native.localCache());
const defaultScorer = new Scorer({ cache: localCache });

/** The functions can be handed to `map`, as the SDK's can: it passes an index where the options are. */
const unlessIndex = (options) => (typeof options === 'number' ? undefined : options);

function evaluateValue(trace, options) {
  return defaultScorer.evaluateValue(trace, unlessIndex(options));
}

function evaluateValues(traces, options) {
  return defaultScorer.evaluateValues(traces, unlessIndex(options));
}

function explain(trace, options) {
  return defaultScorer.explain(trace, unlessIndex(options));
}

function _getLocalCache() {
  return localCache;
}

module.exports = { _getLocalCache, defaultScorer, evaluateValue, evaluateValues, explain };
