'use strict';

const { cleanPii, cleanPiiAsync } = require('./lib/clean/text.js');
const { cleanTrace } = require('./lib/clean/trace.js');

// A literal of names: Node.js finds the named exports of an ES-module import by reading this line.
/** @type {typeof import('./pii.js')} */
module.exports = { cleanPii, cleanPiiAsync, cleanTrace };
