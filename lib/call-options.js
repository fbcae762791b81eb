'use strict';

// The options of a call, each read once and checked.

const { codedError } = require('./errors.js');
const { isArray, readFrom } = require('./reading.js');

/**
 * Reads `signal`, and the options that `others` names with their types.
 *
 * @param {unknown} options
 * @param {Record<string, 'boolean' | 'function' | 'string'>} [others]
 */
function readCallOptions(options, others = {}) {
  if (options === undefined) return {};
  requireObject(options, 'options');
  // As for `fetch`, null is no signal.
  const read = { signal: readOption(options, 'signal') ?? undefined };
  if (read.signal !== undefined && !isAbortSignal(read.signal)) {
    throw invalidOption(TypeError, 'options.signal must be an AbortSignal');
  }
  for (const [name, type] of Object.entries(others)) {
    read[name] = readOption(options, name);
    if (read[name] !== undefined && typeof read[name] !== type) {
      throw invalidOption(TypeError, `options.${name} must be a ${type}`);
    }
  }
  return read;
}

/** By its shape: a signal may come from another realm, or from a library. */
function isAbortSignal(value) {
  try {
    return typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function';
  } catch {
    return false;
  }
}

function requireObject(value, path) {
  if (value === null || typeof value !== 'object' || isArray(value)) {
    throw invalidOption(TypeError, `${path} must be an object`);
  }
}

function readOption(options, name) {
  return readFrom(options, name, `options.${name}`, 'ERR_INVALID_OPTION');
}

function invalidOption(Class, message) {
  return codedError(Class, 'ERR_INVALID_OPTION', message);
}

module.exports = { invalidOption, readCallOptions, readOption, requireObject };
