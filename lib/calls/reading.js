'use strict';

// Reading what callers pass: getters and proxies may throw.

const { codedError } = require('./errors.js');

/** Reads a property; what a getter or proxy throws becomes the cause of a typed error. */
function readFrom(object, key, path, code) {
  try {
    return object[key];
  } catch (cause) {
    throw codedError(TypeError, code, `${path} could not be read: it threw`, cause);
  }
}

/** `Array.isArray`, which throws for a revoked proxy. */
function isArray(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** The length of a list, which may be whatever a getter or proxy claims. */
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

function describe(value) {
  if (value === null) return 'null';
  if (isArray(value)) return 'array';
  return typeof value === 'number' ? String(value) : typeof value;
}

module.exports = { describe, isArray, readFrom, readLength };
