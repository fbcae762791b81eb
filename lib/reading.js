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

module.exports = { isArray, readFrom };
