'use strict';

// The options of a call: each is read once and checked, and none is ignored.

const { codedError } = require('./errors.js');
const { describe, isArray, readFrom } = require('./reading.js');

/**
 * Calls that have an option which others could be thought to have.
 *
 * @type {Record<string, string>}
 */
const OWNERS = {
  onProgress: 'evaluateValues and embedBatch',
  remember: 'explain',
};

/** @import { AbortSignalLike, BatchProgress } from '../../index.js' */

/**
 * What an option of a type is. The only one that is a function is `onProgress`.
 *
 * @typedef {{ boolean: boolean, function: (progress: BatchProgress) => void, string: string }} OptionTypes
 */

/**
 * Reads `signal`, and the options that `others` names with their types.
 *
 * @template {Record<string, keyof OptionTypes>} [Others={}]
 * @param {unknown} options
 * @param {Others} [others]
 * @returns {{ signal?: AbortSignalLike } & { [Name in keyof Others]?: OptionTypes[Others[Name]] }}
 */
function readCallOptions(options, others) {
  if (options === undefined) return /** @type {ReturnType<typeof readCallOptions<Others>>} */ ({});
  const given = requireOptions(options, ['signal', ...Object.keys(others ?? {})]);
  /** @type {Record<string, unknown>} */
  const read = { signal: readSignal(given) };
  for (const [name, type] of Object.entries(others ?? {})) {
    read[name] = readOption(given, name);
    if (read[name] !== undefined && typeof read[name] !== type) {
      throw invalidOption(TypeError, `options.${name} must be a ${type}`);
    }
  }
  return /** @type {ReturnType<typeof readCallOptions<Others>>} */ (read);
}

/**
 * The option `signal`. As for `fetch`, null means no signal.
 *
 * @param {object} options
 */
function readSignal(options) {
  const signal = readOption(options, 'signal') ?? undefined;
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw invalidOption(TypeError, 'options.signal must be an AbortSignal');
  }
  return signal;
}

/**
 * By its shape: a signal may come from another realm, or from a library.
 *
 * @param {unknown} value
 * @returns {value is AbortSignalLike}
 */
function isAbortSignal(value) {
  try {
    const { aborted, addEventListener } = /** @type {AbortSignalLike} */ (value);
    return typeof aborted === 'boolean' && typeof addEventListener === 'function';
  } catch {
    return false;
  }
}

/**
 * The value, which must be an object and no array.
 *
 * @param {unknown} value
 * @param {string} path
 * @returns {object}
 */
function requireObject(value, path) {
  if (value === null || typeof value !== 'object' || isArray(value)) {
    throw invalidOption(TypeError, `${path} must be an object, got ${describe(value)}`);
  }
  return value;
}

/**
 * Requires an object that has no other options than those of these names: a mistyped one would be ignored without a word.
 * An option that is undefined counts as not given. What is inherited is not looked at, because an object of a class has whatever its
 * class has; neither are symbols. Returns the object.
 *
 * @param {unknown} options
 * @param {string[]} known
 * @param {string} [path]
 * @returns {object}
 */
function requireOptions(options, known, path = 'options') {
  const given = requireObject(options, path);
  // Its properties say nothing, and the call would go on without it.
  if (known.includes('signal') && isAbortSignal(options)) {
    throw invalidOption(TypeError, `${path} must be an object with the signal in it: { signal }`);
  }
  let names;
  try {
    names = Object.keys(given);
  } catch (cause) {
    throw codedError(TypeError, 'ERR_INVALID_OPTION', `${path} could not be read: it threw`, cause);
  }
  for (const name of names) {
    if (known.includes(name)) continue;
    const where = /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
    if (readFrom(given, name, where, 'ERR_INVALID_OPTION') === undefined) continue;
    const owner = Object.hasOwn(OWNERS, name) ? `, but of ${OWNERS[name]}` : '';
    throw invalidOption(
      TypeError,
      `${where} is not an option of this call${owner}; its options are ${known.join(', ')}`,
    );
  }
  return given;
}

/**
 * @param {object} options
 * @param {string} name
 * @param {string} [path]
 */
function readOption(options, name, path = 'options') {
  return readFrom(options, name, `${path}.${name}`, 'ERR_INVALID_OPTION');
}

/**
 * What a number must be: from `from` to `to`, both included, and a safe integer if `whole`.
 *
 * @typedef {{ from: number, to?: number, whole?: boolean }} Range
 */

/**
 * Reads an option that is a number; undefined if it is not given.
 *
 * @param {object} options
 * @param {string} name
 * @param {Range} range
 * @param {string} [path]
 */
function readNumber(options, name, range, path = 'options') {
  const value = readOption(options, name, path);
  return value === undefined ? undefined : requireNumber(value, `${path}.${name}`, range);
}

/**
 * @param {unknown} value
 * @param {string} path
 * @param {Range} range
 */
function requireNumber(value, path, { from, to = Number.POSITIVE_INFINITY, whole = false }) {
  if (typeof value !== 'number') {
    throw invalidOption(TypeError, `${path} must be a number, got ${describe(value)}`);
  }
  // NaN fails every comparison.
  if (!(value >= from && value <= to) || (whole && !Number.isSafeInteger(value))) {
    const kind = whole ? 'a safe integer' : 'a number';
    const range = to === Number.POSITIVE_INFINITY ? `of at least ${from}` : `from ${from} to ${to}`;
    throw invalidOption(RangeError, `${path} must be ${kind} ${range}, got ${value}`);
  }
  return value;
}

/**
 * Reads an option that is one of some texts; undefined if it is not given.
 *
 * @template {string} T
 * @param {object} options
 * @param {string} name
 * @param {readonly T[]} choices
 * @returns {T | undefined}
 */
function readChoice(options, name, choices) {
  const value = readOption(options, name);
  if (value === undefined) return undefined;
  const chosen = choices.find((choice) => choice === value);
  if (chosen !== undefined) return chosen;
  const quoted = choices.map((choice) => `'${choice}'`).join(' or ');
  throw invalidOption(RangeError, `options.${name} must be ${quoted}`);
}

/**
 * @param {import('./errors.js').ErrorClass} Class
 * @param {string} message
 */
function invalidOption(Class, message) {
  return codedError(Class, 'ERR_INVALID_OPTION', message);
}

module.exports = {
  invalidOption,
  readCallOptions,
  readChoice,
  readNumber,
  readOption,
  readSignal,
  requireNumber,
  requireObject,
  requireOptions,
};
