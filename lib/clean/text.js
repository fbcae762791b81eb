'use strict';

// Cleaning a text.

const { cancellable, throwIfAborted } = require('../calls/abort.js');
const { codedError, fromAddon } = require('../calls/errors.js');
const { describe } = require('../calls/reading.js');
const native = require('../loader.js').addon;
const { readCallSettings, readSettings, refuseMore } = require('./options.js');

/** @import { CallOptions, CleanOptions, CleanedText, PrivacyLevel, Redaction } from '../../index.js' */

/** @typedef {import('./options.js').Settings} Settings */

/**
 * Replaces secrets and personal data in a text, as the SDK's function of this name does, but in linear time.
 *
 * @param {string} text
 * @param {PrivacyLevel | CleanOptions} [level]
 * @returns {CleanedText}
 */
function cleanPii(text, level) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const { identifiers, strict } = readSettings(level);
  const checked = requireText(text);
  const found = fromAddon(() => native.cleanPii(checked, identifiers, strict));
  if (found === null) return { cleaned: checked, redactions: [] };
  return { cleaned: found.cleaned, redactions: copyOf(found.redactions) };
}

/**
 * Does what `cleanPii` does on another thread.
 *
 * @param {string} text
 * @param {PrivacyLevel | (CleanOptions & CallOptions)} [level]
 * @returns {Promise<CleanedText>}
 */
async function cleanPiiAsync(text, level) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const settings = readCallSettings(level);
  const checked = requireText(text);
  const { changed, redactions } = await cleanAll([checked], settings);
  return { cleaned: changed.get(0) ?? checked, redactions };
}

/**
 * Cleans texts on another thread: those that change, by their indexes, and what is replaced in all of them.
 *
 * @param {string[]} texts
 * @param {Settings} settings
 * @returns {Promise<{ changed: Map<number, string>, redactions: Redaction[] }>}
 */
async function cleanAll(texts, { identifiers, strict, signal }) {
  throwIfAborted(signal);
  const call = signal && new native.NativeCall();
  const begin = () => fromAddon(() => native.cleanAll(texts, identifiers, strict, call));
  const found = await cancellable(begin, call, signal);
  const changed = new Map(found.indexes.map((index, place) => [index, found.texts[place]]));
  return { changed, redactions: copyOf(found.redactions) };
}

/**
 * Copies, so that the objects are of the caller's realm.
 *
 * @param {Redaction[]} redactions
 * @returns {Redaction[]}
 */
function copyOf(redactions) {
  return Array.from(redactions, ({ type, count }) => ({ type, count }));
}

/** @param {unknown} text */
function requireText(text) {
  if (typeof text === 'string') return text;
  throw codedError(TypeError, 'ERR_INVALID_TEXT', `text must be a string, got ${describe(text)}`);
}

module.exports = { cleanAll, cleanPii, cleanPiiAsync };
