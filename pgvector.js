'use strict';

const { PgVectorStore } = require('./lib/pg-vector-store.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
module.exports = { PgVectorStore };
