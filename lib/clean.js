'use strict';

// Cleans texts and traces.

const { isRegExp } = require('node:util').types;

const { withCall } = require('./calls/cancel.js');
const { fromAddon, invalidInput } = require('./calls/errors.js');
const { writeJson } = require('./calls/json.js');
const {
  invalidOption,
  listOf,
  ofType,
  oneOf,
  readCallOptions,
  readOptions,
  recordOf,
} = require('./calls/options.js');
const { describe, isArray } = require('./calls/reading.js');
const native = require('./loader.js').addon;

/**
 * @import { Cleaned, PrivacyLevel } from '../index.js'
 * @import { NativeCleanSettings } from './binding.js'
 * @import { OptionReader } from './calls/options.js'
 */

/** @type {readonly PrivacyLevel[]} */
const LEVELS = ['aggregated', 'federated', 'private'];

const readLevel = oneOf(LEVELS);

/** @type {typeof import('../index.js').cleanPii} */
function cleanPii(text, level = LEVELS[0]) {
  if (typeof text !== 'string') {
    throw invalidInput(`text must be a string, got ${describe(text)}`);
  }
  const identifiers = readLevel(level, 'level') !== 'private';
  const [cleaned, redactions] = fromAddon(() => native.cleanPii(text, identifiers)) ?? [text, []];
  return { cleaned, redactions: counts(redactions) };
}

/**
 * Returns the source of an expression without what Rust would read in another way: within brackets `&&`, `--`, `~~` and `[`, which are signs
 * in JavaScript, and everywhere `\A`, `\z`, `\a`, `\<` and `\>`, which are letters and signs, `[]` (nothing) and `[^]` (anything).
 *
 * @param {RegExp} expression
 */
function inRust({ source, flags }) {
  if (flags.includes('v')) return source;
  let isInBrackets = false;
  return source.replace(/\\.|\[\^?\]|[[\]]|&&|--|~~/gs, (part) => {
    if (part.startsWith('\\')) return part.replace(/\\([Aza<>])/, '$1');
    if (part.length > 1 && part.startsWith('[')) {
      if (!isInBrackets) return part === '[]' ? '[^\\s\\S]' : '[\\s\\S]';
      // A sign, and the end of the brackets.
      isInBrackets = false;
      return `\\${part}`;
    }
    const isSign = isInBrackets && part !== ']';
    if (part === '[' || part === ']') isInBrackets = part === '[';
    return isSign ? part.replace(/.$/, '\\$&') : part;
  });
}

/** @type {OptionReader<string>} an expression as the addon reads it */
function readExpression(value, path) {
  if (!isRegExp(value)) throw invalidOption(TypeError, `${path} must be a RegExp, got ${describe(value)}`);
  const { flags } = /** @type {RegExp} */ (value);
  const source = inRust(/** @type {RegExp} */ (value));
  const own = flags.replace(/[^ims]/g, '');
  return own === '' ? source : `(?${own})${source}`;
}

/** @type {OptionReader<NativeCleanSettings['allow'][number]>} a value that stays: a text or an expression */
const readAllowed = (value, path) =>
  typeof value === 'string' ? [value, false] : [readExpression(value, path), true];

const OPTIONS = {
  level: readLevel,
  strict: ofType('boolean'),
  allow: listOf(readAllowed),
  rules: recordOf((value, path, name) => {
    if (/^\w+$/.test(name)) return readExpression(value, path);
    throw invalidOption(RangeError, `${path} must have a name of letters, digits and _`);
  }),
};

/** @type {OptionReader<NativeCleanSettings>} */
function readCleaning(options, path) {
  return settingsOf(readOptions(options, OPTIONS, path));
}

/**
 * @param {import('./calls/options.js').OptionsRead<typeof OPTIONS>} given
 * @returns {NativeCleanSettings}
 */
function settingsOf({ level = LEVELS[0], strict = true, allow = [], rules = [] }) {
  return { identifiers: level !== 'private', strict, allow, rules };
}

/**
 * @template {string | object} T
 * @param {T} value
 * @param {Parameters<typeof import('../index.js').clean>[1]} [options]
 * @returns {Promise<Cleaned<T extends string ? string : T>>}
 */
async function clean(value, options) {
  const { signal, ...given } = readCallOptions(options, OPTIONS);
  const isText = typeof value === 'string';
  if (!isText && (value === null || typeof value !== 'object' || isArray(value))) {
    throw invalidInput(`the value to clean must be a text or a trace, got ${describe(value)}`);
  }
  const text = isText ? value : writeJson(value, 'trace', 'ERR_INVALID_TRACE');
  const [cleaned, redactions] = await withCall(signal, (call) =>
    fromAddon(() => native.clean(text, !isText, settingsOf(given), call)),
  );
  return {
    cleaned: isText ? cleaned : JSON.parse(cleaned),
    redactions: counts(redactions),
  };
}

/** @param {Array<[string, number]>} redactions types, and how often each was found */
const counts = (redactions) => Array.from(redactions, ([type, count]) => ({ type, count }));

module.exports = { clean, cleanPii, readCleaning };
