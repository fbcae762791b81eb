'use strict';

const { PgVectorStore } = require('./lib/store/postgres/store.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./pgvector.js')} */
module.exports = { PgVectorStore };
