'use strict';

const { cancellable } = require('./cancel.js');
const { fromAddon } = require('./errors.js');
const native = require('../loader.js').addon;

/** @import { NativeCall } from '../binding.js' */

/**
 * Calls the addon and returns its reply. Rejects with the signal's reason, or with the addon's error as an error of this realm.
 *
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {(call: NativeCall | undefined) => Promise<T>} begin
 * @returns {Promise<T>}
 */
async function callAddon(signal, begin) {
  if (signal === undefined) return fromAddon(() => begin(undefined));
  signal.throwIfAborted();
  const call = new native.NativeCall();
  return cancellable(
    () => fromAddon(() => begin(call)),
    signal,
    () => call.cancel(),
  );
}

/**
 * Copies plain data of the addon, so that its objects are of the caller's realm.
 *
 * @template T
 * @param {T} value
 * @returns {T}
 */
function localCopy(value) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return /** @type {any} */ (Array.from(value, localCopy));
  const entries = Object.entries(value).map(([name, each]) => [name, localCopy(each)]);
  return Object.fromEntries(entries);
}

module.exports = { callAddon, localCopy };
