'use strict';

const { configureEmbedder, embedderStatus } = require('./lib/embedder.js');
const { _getLocalCache, evaluateValue, evaluateValues } = require('./lib/scoring.js');
const { VectorCache } = require('./lib/vector-cache.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
module.exports = {
  VectorCache,
  _getLocalCache,
  configureEmbedder,
  embedderStatus,
  evaluateValue,
  evaluateValues,
};
