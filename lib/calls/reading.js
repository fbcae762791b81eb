'use strict';

// Reads values of callers, whose getters and proxies may throw.

/** @import { Code } from './errors.js' */

const { attempt, codedError } = require('./errors.js');

/**
 * Returns the error for a value that is not what it must be.
 *
 * @param {Code} code
 * @param {string} path of the value in messages
 * @param {string} expected
 * @param {unknown} value
 */
function wrongType(code, path, expected, value) {
  return codedError(TypeError, code, `${path} must be ${expected}, got ${describe(value)}`);
}

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
 * `Array.isArray`, which throws for a revoked proxy.
 *
 * @param {unknown} value
 * @returns {value is readonly unknown[]}
 */
function isArray(value) {
  return attempt(() => Array.isArray(value), false);
}

/**
 * Whether a value is an object and no array.
 *
 * @param {unknown} value
 * @returns {value is object}
 */
function isObject(value) {
  return value !== null && typeof value === 'object' && !isArray(value);
}

/**
 * Returns the length of an array. Checks it, because a getter or proxy may return anything.
 *
 * @param {unknown} array
 * @param {string} path
 * @param {Code} code of the error, also for what is no array
 */
function lengthOf(array, path, code) {
  if (!isArray(array)) throw wrongType(code, path, 'an array', array);
  const length = readFrom(array, 'length', `${path}.length`, code);
  if (typeof length !== 'number') throw wrongType(code, `${path}.length`, 'a number', length);
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

/**
 * Reads a text.
 *
 * @param {unknown} value
 * @param {string} path
 */
function readText(value, path) {
  if (typeof value === 'string') return value;
  throw wrongType('ERR_INVALID_INPUT', path, 'a string', value);
}

/** @param {unknown} value */
function describe(value) {
  if (value === null) return 'null';
  if (value === '') return 'an empty string';
  if (isArray(value)) return 'array';
  return typeof value === 'number' ? String(value) : typeof value;
}

/**
 * Returns the JSON of a value; `null` where it has none, as `undefined` and functions.
 *
 * @param {unknown} value
 * @param {string} path of the value in messages
 * @param {Code} code of the error
 * @throws if the value contains itself or a bigint, is too deep or too long, or if a getter or `toJSON` throws
 */
function writeJson(value, path, code) {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch (cause) {
    const Class = cause instanceof RangeError ? RangeError : TypeError;
    throw codedError(Class, code, `${path} has no JSON: ${reasonOf(cause)}`, cause);
  }
}

/**
 * Returns why a value has no JSON.
 *
 * @param {unknown} thrown
 */
function reasonOf(thrown) {
  // For the one limit, engines speak of the stack, and for the other of a string's length or of memory.
  if (thrown instanceof RangeError) {
    return /stack/.test(thrown.message) ? 'it is nested too deeply' : 'it is longer than a string can be';
  }
  // Engines explain circular references on further lines.
  return thrown instanceof Error ? thrown.message.split('\n', 1)[0] : 'it could not be read';
}

module.exports = {
  guarded,
  isArray,
  isObject,
  lengthOf,
  readFrom,
  readList,
  readText,
  reasonOf,
  writeJson,
  wrongType,
};
