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

module.exports = { callAddon };
