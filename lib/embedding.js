'use strict';

/** The length of an embedding of all-MiniLM-L6-v2. The addon refuses models of another length. */
const DIMENSIONS = 384;

module.exports = { DIMENSIONS };
