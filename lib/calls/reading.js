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
 * Returns the length of an array. Checks it, because a getter or proxy may return anything.
 *
 * @param {unknown} array
 * @param {string} path
 * @param {Code} code of the error, also for what is no array
 */
function lengthOf(array, path, code) {
  if (!isArray(array)) throw codedError(TypeError, code, `${path} must be an array, got ${describe(array)}`);
  const length = readFrom(array, 'length', `${path}.length`, code);
  if (typeof length !== 'number') {
    throw codedError(TypeError, code, `${path}.length must be a number, got ${describe(length)}`);
  }
  if (!Number.isSafeInteger(length) || length < 0) {
    const message = `${path}.length must be a safe integer of at least 0, got ${length}`;
    throw codedError(RangeError, code, message);
  }
  return length;
}

/**
 * Returns what `read` makes of each element of an array, given the element and its path.
 *
 * @template T
 * @param {unknown} array
 * @param {string} path
 * @param {Code} code as of {@link lengthOf}
 * @param {(element: unknown, path: string) => T} read
 */
function readList(array, path, code, read) {
  return Array.from({ length: lengthOf(array, path, code) }, (_, index) => {
    const place = `${path}[${index}]`;
    return read(readFrom(Object(array), index, place, code), place);
  });
}

/** @param {unknown} value */
function describe(value) {
  if (value === null) return 'null';
  if (isArray(value)) return 'array';
  return typeof value === 'number' ? String(value) : typeof value;
}

module.exports = { describe, guarded, isArray, lengthOf, namesOf, readFrom, readList };
