'use strict';

// Writes values of callers as JSON.

const { codedError } = require('./errors.js');

/** @import { Code } from './errors.js' */

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

module.exports = { reasonOf, writeJson };
