'use strict';

const { PostgresStore } = require('./lib/store/postgres.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./postgres.js')} */
module.exports = { PostgresStore };
