'use strict';

const { KnowledgePulseError } = require('./lib/calls/errors.js');
const { clean, cleanPii } = require('./lib/clean.js');
const { configureEmbedder, embed, embedderStatus } = require('./lib/embedder.js');
const { readTraces, traceFromMessages } = require('./lib/read-traces.js');
const { Scorer, evaluateValue } = require('./lib/scorer.js');
const { select } = require('./lib/select.js');
const { sessions } = require('./lib/sessions.js');
const { share } = require('./lib/share.js');
const { TraceMemory } = require('./lib/trace-memory.js');
const { VectorCache, _getLocalCache } = require('./lib/vector-cache.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./index.js')} */
module.exports = {
  KnowledgePulseError,
  Scorer,
  TraceMemory,
  VectorCache,
  _getLocalCache,
  clean,
  cleanPii,
  configureEmbedder,
  embed,
  embedderStatus,
  evaluateValue,
  readTraces,
  select,
  sessions,
  share,
  traceFromMessages,
};
