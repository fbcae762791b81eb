'use strict';

// Calls that an `AbortSignal` cancels. A caller's signal is followed by one of the platform's, which is what the package reads.

const { codedError } = require('./errors.js');

/** @import { AbortSignalLike } from '../../index.js' */

/**
 * What follows each signal of a caller: a signal gets one listener, because Node.js warns of a leak from the eleventh.
 *
 * @type {WeakMap<AbortSignalLike, AbortController>}
 */
const followers = new WeakMap();

/**
 * What each of these has to call. A set, because an `EventTarget` looks through all listeners when one is added.
 *
 * @type {WeakMap<AbortSignal, Set<() => void>>}
 */
const callbacksOf = new WeakMap();

/**
 * Returns a signal of the platform that aborts when `signal` does, which may be of another realm or library. Throws
 * `ERR_INVALID_OPTION` if it cannot be listened to.
 *
 * @param {AbortSignalLike} signal
 * @param {string} path
 */
function follow(signal, path) {
  let follower = followers.get(signal);
  if (follower === undefined) {
    const made = new AbortController();
    listen(signal, path, () => abort(signal, made));
    callbacksOf.set(made.signal, new Set());
    followers.set(signal, made);
    follower = made;
  }
  if (isAborted(signal)) abort(signal, follower);
  return follower.signal;
}

/**
 * @param {AbortSignalLike} signal
 * @param {string} path
 * @param {() => void} listener
 */
function listen(signal, path, listener) {
  try {
    signal.addEventListener('abort', listener, { once: true });
  } catch (cause) {
    const message = `${path} could not be listened to: it threw`;
    throw codedError(TypeError, 'ERR_INVALID_OPTION', message, cause);
  }
}

/**
 * @param {AbortSignalLike} signal
 * @param {AbortController} follower
 */
function abort(signal, follower) {
  if (follower.signal.aborted) return;
  // Without a reason, as the signals of older libraries are, it becomes an `AbortError`.
  follower.abort(reasonOf(signal));
  const callbacks = callbacksOf.get(follower.signal) ?? [];
  for (const callback of callbacks) callback();
}

/** @param {AbortSignalLike} signal */
function isAborted(signal) {
  try {
    return signal.aborted === true;
  } catch {
    return false;
  }
}

/** @param {AbortSignalLike} signal */
function reasonOf(signal) {
  try {
    return signal.reason;
  } catch {
    return undefined;
  }
}

/**
 * Calls `callback` when a signal aborts, unless the function that is returned has been called by then.
 *
 * @param {AbortSignal} signal that {@link follow} has returned
 * @param {() => void} callback
 */
function onAbort(signal, callback) {
  const callbacks = callbacksOf.get(signal);
  callbacks?.add(callback);
  return () => void callbacks?.delete(callback);
}

/**
 * Makes a call and returns its reply. Rejects with the signal's reason if that aborts first and `cancel` returns true.
 *
 * @template T
 * @param {() => T | Promise<T>} begin
 * @param {AbortSignal | undefined} signal that {@link follow} has returned
 * @param {() => boolean} [cancel] whether the call could still be cancelled
 * @returns {T | Promise<T>}
 */
function cancellable(begin, signal, cancel = () => true) {
  if (signal === undefined) return begin();
  return new Promise((resolve, reject) => {
    const stop = () => {
      if (cancel()) reject(signal.reason);
    };
    // Listens before the call is made: a getter that the call reads may abort the signal.
    const forget = onAbort(signal, stop);
    const reply = (async () => begin())();
    if (signal.aborted) stop();
    reply.then(resolve, reject).finally(forget);
  });
}

module.exports = { cancellable, follow, onAbort };
