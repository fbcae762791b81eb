'use strict';

/** The file of the addon that is loaded; outside of compiled programs it is one. */
const addon = /** @type {string} */ (require('../../lib/loader.js').file);

module.exports = { addon };
