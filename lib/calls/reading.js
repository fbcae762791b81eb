'use strict';

// Reads values of callers, whose getters and proxies may throw.

/** @import { Code } from './errors.js' */

const { attempt, codedError } = require('./errors.js');

/**
 * Returns what code of the caller returns, such as a getter or a proxy. Its error becomes the cause of a typed error.
 *
 * @template T
 * @param {() => T} run
 * @param {string} path of what is read, in messages
 * @param {Code} code of the error
 */
function guarded(run, path, code) {
  try {
    return run();
  } catch (cause) {
    throw codedError(TypeError, code, `${path} could not be read: it threw`, cause);
  }
}

/**
 * Reads a property, with the errors of {@link guarded}.
 *
 * @param {object} object
 * @param {PropertyKey} key
 * @param {string} path of the property in messages
 * @param {Code} code of the error
 * @returns {unknown}
 */
function readFrom(object, key, path, code) {
  return guarded(() => /** @type {Record<PropertyKey, unknown>} */ (object)[key], path, code);
}

/**
 * `Object.keys`, with the errors of {@link guarded}.
 *
 * @param {object} object
 * @param {string} path
 * @param {Code} code
 */
function namesOf(object, path, code) {
  return guarded(() => Object.keys(object), path, code);
}

/**
 * `Array.isArray`, which throws for a revoked proxy.
 *
 * @param {unknown} value
 * @returns {value is readonly unknown[]}
 */
function isArray(value) {
  return attempt(() => Array.isArray(value), false);
}

/**
 * Reads the length of a list, and checks it, because a getter or proxy may return anything.
 *
 * @param {object} list
 * @param {string} path
 * @param {Code} code
 */
function readLength(list, path, code) {
  const length = readFrom(list, 'length', `${path}.length`, code);
  if (typeof length !== 'number') {
    throw codedError(TypeError, code, `${path}.length must be a number, got ${describe(length)}`);
  }
  if (!Number.isSafeInteger(length) || length < 0) {
    const message = `${path}.length must be a safe integer of at least 0, got ${length}`;
    throw codedError(RangeError, code, message);
  }
  return length;
}

/** @param {unknown} value */
function describe(value) {
  if (value === null) return 'null';
  if (isArray(value)) return 'array';
  return typeof value === 'number' ? String(value) : typeof value;
}

module.exports = { describe, guarded, isArray, namesOf, readFrom, readLength };
