'use strict';

// Calls that an `AbortSignal` cancels.

const { setMaxListeners } = require('node:events');

const { attempt } = require('./errors.js');

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
    // One signal may serve any number of calls. Node.js would warn of a leak from the eleventh listener on.
    attempt(() => setMaxListeners(0, signal), undefined);
    // Listens first, because a getter that the call reads may abort the signal.
    signal.addEventListener('abort', stop, { once: true });
    const reply = signal.aborted ? Promise.reject(signal.reason) : (async () => begin())();
    reply.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

module.exports = { cancellable };
