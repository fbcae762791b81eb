'use strict';

const { noveltyStoreConformance } = require('./lib/store/conformance.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./conformance.js')} */
module.exports = { noveltyStoreConformance };
