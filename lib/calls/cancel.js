'use strict';

// Calls that an `AbortSignal` cancels. A caller's signal is followed by one of the platform's, which is what the package reads.

const { codedError } = require('./errors.js');

/** @import { AbortSignalLike } from '../../index.js' */

/**
 * The follower of each signal of a caller.
 *
 * @type {WeakMap<AbortSignalLike, Follower>}
 */
const followers = new WeakMap();

/**
 * The follower that each of our signals belongs to.
 *
 * @type {WeakMap<AbortSignal, Follower>}
 */
const owners = new WeakMap();

/**
 * A signal of ours that aborts when that of a caller does. It listens while calls wait, with one listener for all of them: Node.js warns
 * of a leak from the eleventh on, and keeps a signal of `AbortSignal.any` for as long as somebody listens.
 */
class Follower {
  #source;
  #controller = new AbortController();
  /** @type {Set<() => void>} */
  #callbacks = new Set();
  #listener = () => this.#abort();
  #isListening = false;

  /** @param {AbortSignalLike & Partial<Pick<AbortSignal, 'removeEventListener'>>} source */
  constructor(source) {
    this.#source = source;
    owners.set(this.#controller.signal, this);
  }

  /** Our signal, up to date also where nobody has listened to the caller's. */
  get signal() {
    if (isAborted(this.#source)) this.#abort();
    return this.#controller.signal;
  }

  /** @param {() => void} callback */
  add(callback) {
    // Before listening: some signals call back at once.
    this.#callbacks.add(callback);
    try {
      this.#listen();
    } catch (error) {
      this.#callbacks.delete(callback);
      throw error;
    }
    if (isAborted(this.#source)) this.#abort();
  }

  /** @param {() => void} callback */
  remove(callback) {
    this.#callbacks.delete(callback);
    if (this.#callbacks.size > 0) return;
    try {
      // The signals of some libraries do not have it.
      if (this.#source.removeEventListener === undefined) return;
      this.#source.removeEventListener('abort', this.#listener);
      this.#isListening = false;
    } catch {}
  }

  #listen() {
    if (this.#isListening) return;
    try {
      this.#source.addEventListener('abort', this.#listener, { once: true });
    } catch (cause) {
      const message = 'options.signal could not be listened to: it threw';
      throw codedError(TypeError, 'ERR_INVALID_OPTION', message, cause);
    }
    this.#isListening = true;
  }

  #abort() {
    if (this.#controller.signal.aborted) return;
    // Without a reason, as the signals of older libraries are, it becomes an `AbortError`.
    this.#controller.abort(reasonOf(this.#source));
    for (const callback of this.#callbacks) callback();
  }
}

/**
 * Returns a signal of the platform that aborts when `signal` does, which may be of another realm or library.
 *
 * @param {AbortSignalLike} signal
 */
function follow(signal) {
  let follower = followers.get(signal);
  if (follower === undefined) {
    follower = new Follower(signal);
    followers.set(signal, follower);
  }
  return follower.signal;
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
 * Calls `callback` when a signal aborts, unless the function that is returned has been called by then. Throws `ERR_INVALID_OPTION` if
 * the caller's signal cannot be listened to.
 *
 * @param {AbortSignal} signal that {@link follow} has returned
 * @param {() => void} callback
 */
function onAbort(signal, callback) {
  const owner = owners.get(signal);
  owner?.add(callback);
  return () => owner?.remove(callback);
}

/**
 * Makes a call and returns its reply. Rejects with the signal's reason if that has aborted, or if it aborts meanwhile and `cancel`
 * returns true.
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
    const reply = signal.aborted ? Promise.reject(signal.reason) : (async () => begin())();
    reply.then(resolve, reject).finally(forget);
  });
}

module.exports = { cancellable, follow, onAbort };
