'use strict';

// Reads the options of a call, each once; unknown ones are refused.

const { attempt, errorsOf } = require('./errors.js');
const { describe, isArray, namesOf, readFrom } = require('./reading.js');

const invalidOption = errorsOf('ERR_INVALID_OPTION');

/**
 * Checks the value of an option, which messages call `path`, and returns what it stands for.
 *
 * @template T
 * @typedef {(value: unknown, path: string) => T} OptionReader
 */

/**
 * The options that were read; undefined for absent ones.
 *
 * @template {Record<string, OptionReader<any>>} Readers
 * @typedef {{ [Name in keyof Readers]?: ReturnType<Readers[Name]> }} OptionsRead
 */

/**
 * Reads options, each once, in the order of their readers. Throws `ERR_INVALID_OPTION`, also for an option without a reader.
 *
 * @template {Record<string, OptionReader<any>>} Readers
 * @param {unknown} options
 * @param {Readers} readers
 * @param {string} [path]
 * @returns {OptionsRead<Readers>}
 */
function readOptions(options, readers, path = 'options') {
  const given = requireObject(options, path);
  requireKnown(given, Object.keys(readers), path);
  /** @type {Record<string, unknown>} */
  const read = {};
  for (const [name, reader] of Object.entries(readers)) {
    const value = readFrom(given, name, `${path}.${name}`, 'ERR_INVALID_OPTION');
    if (value !== undefined) read[name] = reader(value, `${path}.${name}`);
  }
  return /** @type {OptionsRead<Readers>} */ (read);
}

/**
 * Reads the options of a call, which may be absent or null: `signal`, and those that have a reader.
 *
 * @template {Record<string, OptionReader<any>>} [Readers={}]
 * @param {unknown} options
 * @param {Readers} [readers]
 * @returns {OptionsRead<Readers> & { signal?: AbortSignal }}
 */
function readCallOptions(options, readers) {
  if (options === undefined || options === null) return /** @type {OptionsRead<Readers>} */ ({});
  const read = readOptions(options, { signal: readSignal, ...readers });
  return /** @type {OptionsRead<Readers> & { signal?: AbortSignal }} */ (read);
}

/**
 * Returns the option `signal`. As for `fetch`, null means no signal.
 *
 * @type {OptionReader<AbortSignal | undefined>}
 */
function readSignal(value, path) {
  if (value === null) return undefined;
  if (!isAbortSignal(value)) throw invalidOption(TypeError, `${path} must be an AbortSignal`);
  return value;
}

/**
 * The types of options by `typeof`. The only function is `onProgress`.
 *
 * @typedef {{ boolean: boolean, function: (progress: { done: number, total: number }) => void, number: number, string: string }} OptionTypes
 */

/**
 * @template {keyof OptionTypes} Type
 * @param {Type} type
 * @returns {OptionReader<OptionTypes[Type]>}
 */
function ofType(type) {
  return (value, path) => {
    if (typeof value !== type) throw invalidOption(TypeError, `${path} must be a ${type}`);
    return /** @type {OptionTypes[Type]} */ (value);
  };
}

/**
 * @param {Range} range
 * @returns {OptionReader<number>}
 */
function inRange(range) {
  return (value, path) => requireNumber(value, path, range);
}

/**
 * @template {string} T
 * @param {readonly T[]} choices
 * @returns {OptionReader<T>}
 */
function oneOf(choices) {
  return (value, path) => {
    const chosen = choices.find((choice) => choice === value);
    if (chosen !== undefined) return chosen;
    const quoted = choices.map((choice) => `'${choice}'`);
    const listed = [quoted.slice(0, -1).join(', '), quoted.at(-1)].join(' or ');
    throw invalidOption(RangeError, `${path} must be ${listed}`);
  };
}

/**
 * Recognises an `AbortSignal`, also of another realm.
 *
 * @param {unknown} value
 * @returns {value is AbortSignal}
 */
function isAbortSignal(value) {
  return attempt(() => Object.prototype.toString.call(value) === '[object AbortSignal]', false);
}

/**
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
 * Refuses unknown options. An undefined option counts as absent. Inherited properties and symbols are ignored.
 *
 * @param {object} given
 * @param {string[]} known
 * @param {string} path
 */
function requireKnown(given, known, path) {
  // A signal has no own properties, so it would pass for empty options.
  if (known.includes('signal') && isAbortSignal(given)) {
    throw invalidOption(TypeError, `${path} must be an object with the signal in it: { signal }`);
  }
  for (const name of namesOf(given, path, 'ERR_INVALID_OPTION')) {
    if (known.includes(name)) continue;
    const where = /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
    if (readFrom(given, name, where, 'ERR_INVALID_OPTION') === undefined) continue;
    const wrong =
      path === 'options' ? 'is not an option of this call; its options are' : `is not known; ${path} has`;
    throw invalidOption(TypeError, `${where} ${wrong} ${known.join(', ')}`);
  }
}

/**
 * A range of numbers from `from` to `to`, both included; of safe integers if `whole`.
 *
 * @typedef {{ from: number, to?: number, whole?: boolean }} Range
 */

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

module.exports = {
  inRange,
  invalidOption,
  ofType,
  oneOf,
  readCallOptions,
  readOptions,
  requireNumber,
  requireObject,
};
