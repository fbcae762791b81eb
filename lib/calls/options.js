'use strict';

// The options of a call: each is read once and checked, and none is ignored.

const { codedError } = require('./errors.js');
const { describe, isArray, readFrom } = require('./reading.js');

/** Calls that have an option which others could be thought to have. */
const OWNERS = {
  onProgress: 'evaluateValues and embedBatch',
  remember: 'explain',
};

/**
 * Reads `signal`, and the options that `others` names with their types.
 *
 * @param {unknown} options
 * @param {Record<string, 'boolean' | 'function' | 'string'>} [others]
 */
function readCallOptions(options, others = {}) {
  if (options === undefined) return {};
  requireOptions(options, ['signal', ...Object.keys(others)]);
  const read = { signal: readSignal(options) };
  for (const [name, type] of Object.entries(others)) {
    read[name] = readOption(options, name);
    if (read[name] !== undefined && typeof read[name] !== type) {
      throw invalidOption(TypeError, `options.${name} must be a ${type}`);
    }
  }
  return read;
}

/** The option `signal`. As for `fetch`, null is none. */
function readSignal(options) {
  const signal = readOption(options, 'signal') ?? undefined;
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw invalidOption(TypeError, 'options.signal must be an AbortSignal');
  }
  return signal;
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
    throw invalidOption(TypeError, `${path} must be an object, got ${describe(value)}`);
  }
}

/**
 * Requires an object that has no other options than those of these names: a mistyped one would be ignored without a word.
 * An option that is undefined is none. What is inherited is not looked at, because an object of a class has whatever its
 * class has; neither are symbols.
 *
 * @param {unknown} options
 * @param {string[]} known
 * @param {string} [path]
 */
function requireOptions(options, known, path = 'options') {
  requireObject(options, path);
  // Its properties say nothing, and the call would go on without it.
  if (known.includes('signal') && isAbortSignal(options)) {
    throw invalidOption(TypeError, `${path} must be an object with the signal in it: { signal }`);
  }
  let names;
  try {
    names = Object.keys(options);
  } catch (cause) {
    throw codedError(TypeError, 'ERR_INVALID_OPTION', `${path} could not be read: it threw`, cause);
  }
  for (const name of names) {
    if (known.includes(name)) continue;
    const where = /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
    if (readFrom(options, name, where, 'ERR_INVALID_OPTION') === undefined) continue;
    const owner = Object.hasOwn(OWNERS, name) ? `, but of ${OWNERS[name]}` : '';
    throw invalidOption(
      TypeError,
      `${where} is not an option of this call${owner}; its options are ${known.join(', ')}`,
    );
  }
}

function readOption(options, name) {
  return readFrom(options, name, `options.${name}`, 'ERR_INVALID_OPTION');
}

function invalidOption(Class, message) {
  return codedError(Class, 'ERR_INVALID_OPTION', message);
}

module.exports = { invalidOption, readCallOptions, readOption, readSignal, requireObject, requireOptions };
