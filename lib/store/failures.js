'use strict';

// Classifies the errors of a store, and reports them.

const { attempt, codeOf, codedError } = require('../calls/errors.js');

/** Codes of failures of the store itself, after which the call is repeated. */
const PASSING = [
  'ERR_STORE_UNAVAILABLE',
  'ERR_STORE_TIMEOUT',
  'ERR_STORE_READ_ONLY',
  'ERR_STORE_FULL',
  'ERR_STORE_SCHEMA',
  'ERR_STORE_OTHER_LIMITS',
];

/** @param {unknown} error */
function isPassing(error) {
  return PASSING.includes(codeOf(error) ?? '');
}

/**
 * Returns whether the store refuses these entries for good. An error without one of our codes does not mean that.
 *
 * @param {unknown} error
 */
function isRefusal(error) {
  return !isPassing(error) && !isStored(error) && /^ERR_(STORE|INVALID)/.test(codeOf(error) ?? '');
}

/**
 * Returns whether the store has these entries from an earlier attempt and can no longer compare them.
 *
 * @param {unknown} error
 */
function isStored(error) {
  return codeOf(error) === 'ERR_STORE_ALREADY_STORED';
}

/** @param {unknown} error */
function messageOf(error) {
  const read = () =>
    String(/** @type {{ message?: unknown } | null | undefined} */ (error)?.message ?? error);
  return attempt(read, 'its error cannot be read');
}

/**
 * @param {string} message
 * @param {unknown} error
 */
function warn(message, error) {
  process.emitWarning(`${message}: ${messageOf(error)}`, {
    type: 'KnowledgePulseWarning',
    code: codeOf(error) ?? 'ERR_STORE',
  });
}

/** @param {unknown} error */
function typed(error) {
  if (codeOf(error) !== undefined) return error;
  return codedError(Error, 'ERR_STORE', `the store failed: ${messageOf(error)}`, error);
}

module.exports = { isPassing, isRefusal, isStored, typed, warn };
