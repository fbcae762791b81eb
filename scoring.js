'use strict';

const { _getLocalCache, evaluateValue, evaluateValues } = require('./lib/scoring.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./scoring.js')} */
module.exports = { _getLocalCache, evaluateValue, evaluateValues };
