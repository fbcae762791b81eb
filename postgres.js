'use strict';

const { PostgresTraceStore } = require('./lib/store/postgres/trace-store.js');
const { PostgresVectorStore } = require('./lib/store/postgres/vector-store.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./postgres.js')} */
module.exports = { PostgresTraceStore, PostgresVectorStore };
