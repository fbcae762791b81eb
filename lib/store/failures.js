'use strict';

// What the error of a store says: whether it passes, and how it is told.

const { codeOf, codedError } = require('../calls/errors.js');

/** Failures that pass, or are repaired, whatever was sent. */
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
 * Whether an error says that what was sent will not be taken. One without a code of ours says nothing.
 *
 * @param {unknown} error
 */
function isRefusal(error) {
  return !isPassing(error) && /^ERR_(STORE|INVALID)/.test(codeOf(error) ?? '');
}

/** @param {unknown} error */
function messageOf(error) {
  try {
    return String(/** @type {{ message?: unknown } | null | undefined} */ (error)?.message ?? error);
  } catch {
    return 'its error cannot be read';
  }
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

/**
 * An error with a code.
 *
 * @param {unknown} error
 */
function typed(error) {
  if (codeOf(error) !== undefined) return error;
  return codedError(Error, 'ERR_STORE', `the store failed: ${messageOf(error)}`, error);
}

module.exports = { isPassing, isRefusal, typed, warn };
