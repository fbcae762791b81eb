'use strict';

// Cleaning a text.

const { callAddon, localCopy } = require('../calls/addon.js');
const { codedError, fromAddon } = require('../calls/errors.js');
const { describe } = require('../calls/reading.js');
const native = require('../loader.js').addon;
const { readCallSettings, readSettings, refuseMore } = require('./options.js');

/** @import { PiiCleanResult } from '../../index.js' */

/** @typedef {import('./options.js').Settings} Settings */
/** @typedef {import('../binding.js').NativeCall} NativeCall */

/** @type {typeof import('../../index.js').cleanPii} */
function cleanPii(text, level) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const { identifiers, strict } = readSettings(level);
  const checked = requireText(text);
  return resultOf(
    checked,
    fromAddon(() => native.cleanPii(checked, identifiers, strict)),
  );
}

/** @type {typeof import('../../index.js').cleanPiiAsync} */
async function cleanPiiAsync(text, level) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const settings = readCallSettings(level);
  const checked = requireText(text);
  return resultOf(checked, await onAnotherThread(native.cleanPiiAsync, checked, settings));
}

/**
 * @template T
 * @param {(given: string, identifiers: boolean, strict: boolean, call?: NativeCall) => Promise<T>} clean
 * @param {string} given
 * @param {Settings} settings
 * @returns {Promise<T>}
 */
async function onAnotherThread(clean, given, { identifiers, strict, signal }) {
  return callAddon(signal, (call) => clean(given, identifiers, strict, call));
}

/**
 * @param {string} text
 * @param {PiiCleanResult | null} found null if there is nothing to replace
 * @returns {PiiCleanResult}
 */
function resultOf(text, found) {
  return found === null ? { cleaned: text, redactions: [] } : localCopy(found);
}

/** @param {unknown} text */
function requireText(text) {
  if (typeof text === 'string') return text;
  throw codedError(TypeError, 'ERR_INVALID_TEXT', `text must be a string, got ${describe(text)}`);
}

module.exports = { cleanPii, cleanPiiAsync, onAnotherThread };
