'use strict';

// Calls that an `AbortSignal` cancels. The package reads a follower: a signal of the platform that aborts with the caller's.

const { attempt, codedError } = require('./errors.js');

/** @import { AbortSignalLike } from '../../index.js' */

/** @type {WeakMap<AbortSignalLike, Follower>} the follower of each signal of a caller */
const followers = new WeakMap();

/** @type {WeakMap<AbortSignal, Follower>} the follower that each of our signals belongs to */
const owners = new WeakMap();

/**
 * A signal that aborts with a caller's. One listener serves all waiting calls: Node.js warns of a leak from the eleventh listener on, and
 * keeps a signal of `AbortSignal.any` alive while anything listens.
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

  /** The follower, updated even if nothing listened to the caller's signal. */
  get signal() {
    if (isAborted(this.#source)) this.#abort();
    return this.#controller.signal;
  }

  /** @param {() => void} callback */
  add(callback) {
    // Set before listening, because some signals call back at once.
    this.#callbacks.add(callback);
    try {
      if (!this.#isListening) this.#source.addEventListener('abort', this.#listener, { once: true });
      this.#isListening = true;
    } catch (cause) {
      this.#callbacks.delete(callback);
      const message = 'options.signal could not be listened to: it threw';
      throw codedError(TypeError, 'ERR_INVALID_OPTION', message, cause);
    }
    if (isAborted(this.#source)) this.#abort();
  }

  /** @param {() => void} callback */
  remove(callback) {
    this.#callbacks.delete(callback);
    if (this.#callbacks.size > 0) return;
    try {
      // Signals of some libraries lack it.
      if (this.#source.removeEventListener === undefined) return;
      this.#source.removeEventListener('abort', this.#listener);
      this.#isListening = false;
    } catch {}
  }

  #abort() {
    if (this.#controller.signal.aborted) return;
    // Signals of older libraries have no reason; it becomes an `AbortError`.
    this.#controller.abort(attempt(() => this.#source.reason, undefined));
    for (const callback of this.#callbacks) callback();
  }
}

/**
 * Returns a signal of the platform that aborts with `signal`, which may be of another realm or library.
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
const isAborted = (signal) => attempt(() => signal.aborted === true, false);

/**
 * Calls `callback` when a signal aborts; the returned function stops that. Throws `ERR_INVALID_OPTION` if listening to the caller's
 * signal fails.
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
 * Makes a call and returns its reply. Rejects with the signal's reason if it has aborted, or aborts before the reply and `cancel` returns
 * true.
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
    // Listens first, because a getter that the call reads may abort the signal.
    const forget = onAbort(signal, stop);
    const reply = signal.aborted ? Promise.reject(signal.reason) : (async () => begin())();
    reply.then(resolve, reject).finally(forget);
  });
}

module.exports = { cancellable, follow, onAbort };
