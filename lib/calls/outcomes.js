'use strict';

// Traces whose outcome was unknown to a reader of logs, and is not unknown any more in a copy without `metadata.imported`.

const { attempt } = require('./errors.js');

/**
 * Returns whether a trace has the outcome that readers fill in, without the note that they have done so.
 *
 * @param {any} trace
 */
const isFilledIn = (trace) =>
  attempt(() => {
    const { imported, success } = trace.metadata;
    return success === false && trace.outcome.confidence === 0.5 && imported === undefined;
  }, false);

/**
 * Returns what is told of traces with {@link isFilledIn}; an empty text without one.
 *
 * @param {number} count
 */
function toldOfFilledIn(count) {
  if (count === 0) return '';
  const found = `${count} ${count === 1 ? 'trace has' : 'traces have'} success: false with a confidence of 0.5`;
  return `${found} and no metadata.imported, and count as failures: if readTraces made them, copy metadata.imported too`;
}

module.exports = { isFilledIn, toldOfFilledIn };
