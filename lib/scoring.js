'use strict';

// The default scorer of the process, and its methods as the functions of the SDK.

const native = require('./loader.js').addon;
const { Scorer } = require('./scorer.js');
const { adoptNative } = require('./vector-cache.js');

const localCache = adoptNative(native.localCache());
const defaultScorer = new Scorer({ cache: localCache });

// One parameter, so that it can be handed to `map`, which passes an index as the second.
function evaluateValue(trace) {
  return defaultScorer.evaluateValue(trace);
}

function evaluateValues(traces, options) {
  return defaultScorer.evaluateValues(traces, options);
}

function explain(trace, options) {
  return defaultScorer.explain(trace, options);
}

function _getLocalCache() {
  return localCache;
}

module.exports = { _getLocalCache, defaultScorer, evaluateValue, evaluateValues, explain };
