'use strict';

const { cleanPii, cleanPiiAsync } = require('./lib/clean/text.js');
const { cleanTrace } = require('./lib/clean/trace.js');
const { configureEmbedder, embed, embedderStatus } = require('./lib/embedder.js');
const { Scorer } = require('./lib/scorer.js');
const { _getLocalCache, evaluateValue, evaluateValues, explain } = require('./lib/scoring.js');
const { select } = require('./lib/select.js');
const { TraceMemory } = require('./lib/trace-memory.js');
const { VectorCache } = require('./lib/vector-cache.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./index.js')} */
module.exports = {
  Scorer,
  TraceMemory,
  VectorCache,
  _getLocalCache,
  cleanPii,
  cleanPiiAsync,
  cleanTrace,
  configureEmbedder,
  embed,
  embedderStatus,
  evaluateValue,
  evaluateValues,
  explain,
  select,
};
