'use strict';

// Calls that an `AbortSignal` can cancel.

/** @import { AbortSignalLike } from '../../index.js' */

const { codedError } = require('./errors.js');

/**
 * The callbacks for each signal. A signal gets one listener for all of them, because Node.js warns of a leak from eleven on.
 *
 * @type {WeakMap<AbortSignalLike, Set<() => void>>}
 */
const waiting = new WeakMap();

/**
 * Has `callback` called when `signal` aborts, unless the function that is returned has been called by then.
 *
 * @param {AbortSignalLike} signal
 * @param {() => void} callback
 */
function onAbort(signal, callback) {
  const known = waiting.get(signal);
  /** @type {Set<() => void>} */
  const callbacks = known ?? new Set();
  callbacks.add(callback);
  if (known === undefined) {
    listen(signal, () => {
      for (const each of callbacks) each();
      callbacks.clear();
    });
    waiting.set(signal, callbacks);
  }
  return () => callbacks.delete(callback);
}

/**
 * @param {AbortSignalLike} signal
 * @param {() => void} listener
 */
function listen(signal, listener) {
  try {
    signal.addEventListener('abort', listener, { once: true });
  } catch (cause) {
    const message = 'options.signal could not be listened to: it threw';
    throw codedError(TypeError, 'ERR_INVALID_OPTION', message, cause);
  }
}

/**
 * Makes a call. Gives its reply, or a rejection with the signal's reason if that aborts while the call can still be
 * cancelled.
 *
 * @template T
 * @param {() => T | Promise<T>} begin
 * @param {{ cancel(): boolean } | undefined} call
 * @param {AbortSignalLike | undefined} signal
 * @returns {T | Promise<T>}
 */
function cancellable(begin, call, signal) {
  if (signal === undefined) return begin();
  return new Promise((resolve, reject) => {
    // Listens before the call is made: a getter that the call reads may abort the signal.
    const forget = onAbort(signal, () => {
      if (call?.cancel()) reject(reasonOf(signal));
    });
    const reply = (async () => begin())();
    /** @type {<V>(take: (value: V) => void) => (value: V) => void} */
    const settle = (take) => (value) => {
      forget();
      take(value);
    };
    reply.then(settle(resolve), settle(reject));
  });
}

/**
 * Throws the signal's reason if it has aborted.
 *
 * @param {AbortSignalLike | undefined} signal
 */
function throwIfAborted(signal) {
  if (signal !== undefined && isAborted(signal)) throw reasonOf(signal);
}

/**
 * What a promise gives, unless the signal aborts before: then a rejection with its reason, whatever becomes of the promise.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignalLike | undefined} signal
 * @returns {Promise<T>}
 */
function untilAborted(promise, signal) {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(reasonOf(signal)));
    /** @type {<V>(take: (value: V) => void) => (value: V) => void} */
    const settle = (take) => (value) => {
      forget();
      take(value);
    };
    promise.then(settle(resolve), settle(reject));
    if (isAborted(signal)) settle(reject)(reasonOf(signal));
  });
}

/**
 * Calls `begin` with a signal of our own that aborts when `signal` does. That one can be handed on safely: the caller's object may
 * have changed by the time that it is read again.
 *
 * @template T
 * @param {AbortSignalLike | undefined} signal
 * @param {(signal: AbortSignal | undefined) => T | Promise<T>} begin
 * @returns {Promise<T>}
 */
async function withOwnSignal(signal, begin) {
  if (signal === undefined) return begin(undefined);
  const controller = new AbortController();
  const forget = onAbort(signal, () => controller.abort(reasonOf(signal)));
  try {
    return await begin(controller.signal);
  } finally {
    forget();
  }
}

/**
 * Whether a signal has aborted. One whose getter throws counts as not aborted.
 *
 * @param {AbortSignalLike} signal
 */
function isAborted(signal) {
  try {
    return signal.aborted === true;
  } catch {
    return false;
  }
}

/**
 * The signals of older libraries have no reason.
 *
 * @param {AbortSignalLike} signal
 */
function reasonOf(signal) {
  let reason;
  try {
    reason = signal.reason;
  } catch {}
  return reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason;
}

module.exports = { cancellable, isAborted, onAbort, reasonOf, throwIfAborted, untilAborted, withOwnSignal };
