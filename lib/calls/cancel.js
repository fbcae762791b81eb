'use strict';

// Calls that an `AbortSignal` cancels.

const { addon } = require('../loader.js');
const { fromAddon } = require('./errors.js');

/** @import { NativeCall } from '../binding.js' */

/**
 * The calls of each signal, and the one listener that stops them all: from the eleventh listener on Node.js would warn of a leak.
 *
 * @type {WeakMap<AbortSignal, { stops: Set<() => void>, listener: () => void }>}
 */
const listened = new WeakMap();

/**
 * Calls `stop` when a signal aborts; returns a function that ends that.
 *
 * @param {AbortSignal} signal
 * @param {() => void} stop
 */
function onAbort(signal, stop) {
  let calls = listened.get(signal);
  if (calls === undefined) {
    const stops = new Set([stop]);
    calls = { stops, listener: () => [...stops].forEach((each) => void each()) };
    listened.set(signal, calls);
    signal.addEventListener('abort', calls.listener, { once: true });
  }
  const { stops, listener } = calls;
  stops.add(stop);
  return () => {
    stops.delete(stop);
    if (stops.size > 0) return;
    signal.removeEventListener('abort', listener);
    listened.delete(signal);
  };
}

/**
 * Makes a call and returns its reply. Rejects with the signal's reason if it has aborted, or aborts before the reply and `cancel` returns
 * true.
 *
 * @template T
 * @param {() => T | Promise<T>} begin
 * @param {AbortSignal | undefined} signal
 * @param {() => boolean} [cancel] whether the call could still be cancelled
 * @returns {T | Promise<T>}
 */
function cancellable(begin, signal, cancel = () => true) {
  if (signal === undefined) return begin();
  return new Promise((resolve, reject) => {
    const stop = () => {
      if (cancel()) reject(signal.reason);
    };
    // Listens first, because a getter that the call reads may abort the signal.
    const unlisten = onAbort(signal, stop);
    const reply = signal.aborted ? Promise.reject(signal.reason) : (async () => begin())();
    reply.then(resolve, reject).finally(unlisten);
  });
}

/**
 * Makes a call of the addon as {@link cancellable} does, until the addon completes it, with the errors of {@link fromAddon}:
 * `begin` calls nothing of the caller.
 *
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {(call: NativeCall) => T | Promise<T>} begin
 */
async function withCall(signal, begin) {
  const call = new addon.NativeCall();
  const ask = () => fromAddon(() => begin(call));
  return cancellable(ask, signal, () => call.cancel());
}

module.exports = { cancellable, withCall };
