'use strict';

const { VectorCache } = require('./lib/vector-cache.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./vector-cache.js')} */
module.exports = { VectorCache };
