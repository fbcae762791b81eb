'use strict';

/** The length of an embedding: that of the vectors of all-MiniLM-L6-v2. The addon refuses a model of another. */
const DIMENSIONS = 384;

module.exports = { DIMENSIONS };
