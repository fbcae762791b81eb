'use strict';

// Calls that an `AbortSignal` cancels.

const { setMaxListeners } = require('node:events');

const { attempt } = require('./errors.js');

/**
 * Calls `callback` when a signal aborts; the returned function stops that.
 *
 * @param {AbortSignal} signal
 * @param {() => void} callback
 */
function onAbort(signal, callback) {
  // One signal may serve any number of calls. Node.js would warn of a leak from the eleventh listener on.
  attempt(() => setMaxListeners(0, signal), undefined);
  signal.addEventListener('abort', callback, { once: true });
  return () => signal.removeEventListener('abort', callback);
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
    const forget = onAbort(signal, stop);
    const reply = signal.aborted ? Promise.reject(signal.reason) : (async () => begin())();
    reply.then(resolve, reject).finally(forget);
  });
}

module.exports = { cancellable };
