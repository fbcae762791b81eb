'use strict';

// Reads values of callers, whose getters and proxies may throw.

/** @import { Code } from './errors.js' */

const { codedError } = require('./errors.js');

/**
 * Reads a property. An error of a getter or proxy becomes the cause of a typed error.
 *
 * @param {object} object
 * @param {PropertyKey} key
 * @param {string} path of the property in messages
 * @param {Code} code of the error
 * @returns {unknown}
 */
function readFrom(object, key, path, code) {
  try {
    return /** @type {Record<PropertyKey, unknown>} */ (object)[key];
  } catch (cause) {
    throw codedError(TypeError, code, `${path} could not be read: it threw`, cause);
  }
}

/**
 * `Object.keys`, with the errors of {@link readFrom}.
 *
 * @param {object} object
 * @param {string} path
 * @param {Code} code
 */
function namesOf(object, path, code) {
  try {
    return Object.keys(object);
  } catch (cause) {
    throw codedError(TypeError, code, `${path} could not be read: it threw`, cause);
  }
}

/**
 * `Array.isArray`, which throws for a revoked proxy.
 *
 * @param {unknown} value
 * @returns {value is readonly unknown[]}
 */
function isArray(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
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

module.exports = { describe, isArray, namesOf, readFrom, readLength };
