'use strict';

// Reads the options of a call, each once; unknown ones are refused.

const { isMap } = require('node:util').types;

const { attempt, codedError } = require('./errors.js');
const { guarded, isObject, readFrom, readList, wrongType } = require('./reading.js');

/** @import { ErrorClass } from './errors.js' */

/** @param {ErrorClass} Class @param {string} message */
const invalidOption = (Class, message) => codedError(Class, 'ERR_INVALID_OPTION', message);

/**
 * Checks the value of an option, which messages call `path`, and returns what it stands for.
 *
 * @template T
 * @typedef {(value: unknown, path: string) => T} OptionReader
 */

/**
 * The options that were read; undefined for absent ones that are not required.
 *
 * @template {Record<string, OptionReader<any>>} Readers
 * @template {keyof Readers} [Required=never]
 * @typedef {{ [Name in keyof Readers]?: ReturnType<Readers[Name]> } & { [Name in Required]: ReturnType<Readers[Name]> }} OptionsRead
 */

/**
 * Reads options, each once, in the order of their readers. Throws `ERR_INVALID_OPTION`, also for an option without a reader. The reader
 * of a required option refuses undefined.
 *
 * @template {Record<string, OptionReader<any>>} Readers
 * @template {keyof Readers} [Required=never]
 * @param {unknown} options
 * @param {Readers} readers
 * @param {string} [path]
 * @param {readonly Required[]} [required]
 * @returns {OptionsRead<Readers, Required>}
 */
function readOptions(options, readers, path = 'options', required = []) {
  const given = readObject(options, path);
  requireKnown(given, Object.keys(readers), path);
  /** @type {Record<string, unknown>} */
  const read = {};
  for (const [name, reader] of Object.entries(readers)) {
    const value = readFrom(given, name, `${path}.${name}`, 'ERR_INVALID_OPTION');
    if (value === undefined && !required.some((each) => each === name)) continue;
    read[name] = reader(value, `${path}.${name}`);
  }
  return /** @type {OptionsRead<Readers, Required>} */ (read);
}

/**
 * Reads the options of a call, which may be absent or null: `signal`, and those that have a reader.
 *
 * @template {Record<string, OptionReader<any>>} [Readers={}]
 * @template {keyof Readers} [Required=never]
 * @param {unknown} options
 * @param {Readers} [readers]
 * @param {readonly Required[]} [required]
 * @returns {OptionsRead<Readers, Required> & { signal?: AbortSignal }}
 */
function readCallOptions(options, readers, required) {
  const all = /** @type {Readers & { signal: typeof readSignal }} */ ({ signal: readSignal, ...readers });
  return readOptions(options ?? {}, all, 'options', required);
}

/**
 * Makes a reader of an object whose values have one reader, by names that the caller chooses.
 *
 * @template T
 * @param {(value: unknown, path: string, name: string) => T} read
 * @returns {OptionReader<Array<[string, T]>>}
 */
function recordOf(read) {
  return (value, path) => {
    const record = readObject(value, path);
    if (isMap(record)) throw invalidOption(TypeError, `${path} must be an object, not a Map`);
    return namesOf(record, path).map((name) => {
      const place = `${path}[${JSON.stringify(name)}]`;
      return [name, read(readFrom(record, name, place, 'ERR_INVALID_OPTION'), place, name)];
    });
  };
}

/** @param {object} object @param {string} path */
const namesOf = (object, path) => guarded(() => Object.keys(object), path, 'ERR_INVALID_OPTION');

/**
 * Makes a reader of an array whose elements have one reader.
 *
 * @template T
 * @param {OptionReader<T>} reader
 * @returns {OptionReader<T[]>}
 */
function listOf(reader) {
  return (value, path) => readList(value, path, 'ERR_INVALID_OPTION', reader);
}

/**
 * Makes a reader of values for which `is` holds; messages call them `expected`.
 *
 * @template T
 * @param {((value: unknown) => value is T) | ((value: any) => boolean)} is
 * @param {string} expected
 * @returns {OptionReader<T>}
 */
function kindOf(is, expected) {
  return (value, path) => {
    if (is(value)) return /** @type {T} */ (value);
    throw wrongType('ERR_INVALID_OPTION', path, expected, value);
  };
}

/**
 * The types of options by `typeof`. The only function is `onProgress`.
 *
 * @typedef {{ boolean: boolean, function: (progress: { done: number, total: number }) => void, number: number, string: string }} OptionTypes
 */

/** @type {<Type extends keyof OptionTypes>(type: Type) => OptionReader<OptionTypes[Type]>} */
const ofType = (type) => kindOf((/** @type {unknown} */ value) => typeof value === type, `a ${type}`);

const readObject = kindOf(isObject, 'an object');
/** @type {OptionReader<string>} */
const readPath = kindOf(
  (/** @type {unknown} */ value) => typeof value === 'string' && value !== '',
  'a path',
);
const readAbortSignal = kindOf(isAbortSignal, 'an AbortSignal');

/** @type {OptionReader<AbortSignal | undefined>} as for `fetch`, null means no signal */
const readSignal = (value, path) => (value === null ? undefined : readAbortSignal(value, path));

/**
 * Makes a reader of numbers from `from` to `to`, both included; of safe integers if `whole`.
 *
 * @param {{ from: number, to?: number, whole?: boolean }} range
 * @returns {OptionReader<number>}
 */
function inRange({ from, to = Number.POSITIVE_INFINITY, whole = false }) {
  return (value, path) => {
    if (typeof value !== 'number') throw wrongType('ERR_INVALID_OPTION', path, 'a number', value);
    // NaN fails every comparison.
    if (value >= from && value <= to && (!whole || Number.isSafeInteger(value))) return value;
    const kind = whole ? 'a safe integer' : 'a number';
    const range = to === Number.POSITIVE_INFINITY ? `of at least ${from}` : `from ${from} to ${to}`;
    throw invalidOption(RangeError, `${path} must be ${kind} ${range}, got ${value}`);
  };
}

/** Reads how many of something there may be. */
const readCount = inRange({ from: 0, whole: true });

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
    throw invalidOption(value === undefined ? TypeError : RangeError, `${path} must be ${listed}`);
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
  for (const name of namesOf(given, path)) {
    if (known.includes(name)) continue;
    const where = /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
    if (readFrom(given, name, where, 'ERR_INVALID_OPTION') === undefined) continue;
    const wrong =
      path === 'options' ? 'is not an option of this call; its options are' : `is not known; ${path} has`;
    throw invalidOption(TypeError, `${where} ${wrong} ${known.join(', ')}`);
  }
}

module.exports = {
  inRange,
  invalidOption,
  kindOf,
  listOf,
  ofType,
  oneOf,
  readCallOptions,
  readCount,
  readObject,
  readOptions,
  readPath,
  recordOf,
};
