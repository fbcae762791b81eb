'use strict';

// Calls that an `AbortSignal` can cancel.

/**
 * What to do when a signal aborts, by signal: each gets one listener, because Node.js warns of a leak at eleven.
 *
 * @type {WeakMap<AbortSignal, Set<() => void>>}
 */
const waiting = new WeakMap();

/**
 * Has `callback` called when `signal` aborts, unless the function that is returned has been called by then.
 *
 * @param {AbortSignal} signal
 * @param {() => void} callback
 */
function onAbort(signal, callback) {
  let callbacks = waiting.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    waiting.set(signal, callbacks);
    const all = callbacks;
    signal.addEventListener(
      'abort',
      () => {
        for (const each of all) each();
        all.clear();
      },
      { once: true },
    );
  }
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

/**
 * The reply to a call, or a rejection with the signal's reason if that aborts while the call can still be cancelled.
 *
 * @template T
 * @param {T | Promise<T>} reply
 * @param {{ cancel(): boolean } | undefined} call
 * @param {AbortSignal | undefined} signal
 * @returns {T | Promise<T>}
 */
function cancellable(reply, call, signal) {
  if (signal === undefined) return reply;
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => {
      if (call.cancel()) reject(signal.reason);
    });
    const settle = (take) => (value) => {
      forget();
      take(value);
    };
    Promise.resolve(reply).then(settle(resolve), settle(reject));
  });
}

function throwIfAborted(signal) {
  if (signal?.aborted) throw signal.reason;
}

module.exports = { cancellable, onAbort, throwIfAborted };
