'use strict';

const { toTraces } = require('./lib/formats.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./formats.js')} */
module.exports = { toTraces };
