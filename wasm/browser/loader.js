'use strict';

// What lib/loader.js is in a browser.

module.exports = require('./holder.mjs').holder;
