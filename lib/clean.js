'use strict';

// Cleans texts and traces.

const { isRegExp } = require('node:util').types;

const { withCall } = require('./calls/cancel.js');
const { fromAddon } = require('./calls/errors.js');
const {
  invalidOption,
  kindOf,
  listOf,
  ofType,
  oneOf,
  readCallOptions,
  readOptions,
  recordOf,
} = require('./calls/options.js');
const { isObject, readText, writeJson, wrongType } = require('./calls/reading.js');
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
  const given = readText(text, 'text');
  const identifiers = readLevel(level, 'level') !== 'private';
  const [cleaned, redactions] = fromAddon(() => native.cleanPii(given, identifiers)) ?? [given, []];
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
  const plain = (/** @type {string} */ escaped) => escaped.replace(/\\([Aza<>])/, '$1');
  return source.replace(/\\.|\[(\^?)((?:\\.|[^\]\\])*)\]/gs, (part, not, inner) => {
    if (inner === undefined) return plain(part);
    if (inner === '') return not ? '[\\s\\S]' : '[^\\s\\S]';
    const signs = String(inner).replace(/\\.|\[|&&|--|~~/gs, (sign) =>
      sign.startsWith('\\') ? plain(sign) : sign.replace(/.$/, '\\$&'),
    );
    return `[${not}${signs}]`;
  });
}

const readRegExp = kindOf(isRegExp, 'a RegExp');

/** @type {OptionReader<string>} an expression as the addon reads it */
function readExpression(value, path) {
  const expression = readRegExp(value, path);
  const own = expression.flags.replace(/[^ims]/g, '');
  return own === '' ? inRust(expression) : `(?${own})${inRust(expression)}`;
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
  if (!isText && !isObject(value))
    throw wrongType('ERR_INVALID_INPUT', 'the value to clean', 'a text or a trace', value);
  const text = isText ? value : writeJson(value, 'trace', 'ERR_INVALID_TRACE');
  const settings = settingsOf(given);
  const [cleaned, redactions] = await withCall(signal, (call) => native.clean(text, !isText, settings, call));
  return { cleaned: isText ? cleaned : JSON.parse(cleaned), redactions: counts(redactions) };
}

/** @param {Array<[string, number]>} redactions types, and how often each was found */
const counts = (redactions) => Array.from(redactions, ([type, count]) => ({ type, count }));

module.exports = { clean, cleanPii, readCleaning };
