'use strict';

const native = require('../lib/loader.js').addon;
const { isTraceMemory, nativeOfTraces } = require('../lib/trace-memory.js');
const { nativeOf } = require('../lib/vector-cache.js');

/** @import { NativeTraceMemory, NativeVectorCache } from '../lib/binding.js' */

/** @typedef {import('../index.js').VectorCache | import('../index.js').TraceMemory} Memory */

/**
 * A trace that was looked up: the novelty of its earlier score if it is known, and what to call with that of its first score if it
 * is not.
 *
 * @typedef {{ novelty: number | Promise<number>, begin?: undefined } | { novelty: null, begin: (novelty: Promise<number>) => void }} Found
 */

/**
 * The traces that a run need not score: those that the memory held when it was loaded, and those that the run has handed in since,
 * as many as the memory keeps.
 */
class KnownTraces {
  #held;
  #mostNew;
  /** By fingerprint, the novelties of traces of this run, those handed in last. @type {Map<string, Promise<number>>} */
  #new = new Map();

  /** @param {Memory} memory */
  constructor(memory) {
    const { NativeKnownTraces } = native;
    this.#mostNew = memory.maxElements;
    this.#held = isTraceMemory(memory)
      ? NativeKnownTraces.ofMemory(/** @type {NativeTraceMemory} */ (nativeOfTraces(memory)))
      : NativeKnownTraces.ofCache(/** @type {NativeVectorCache} */ (nativeOf(memory)));
  }

  /**
   * Looks a trace up by its id and contents; null for one without an id, and for what is no trace.
   *
   * @param {unknown} trace
   * @returns {Found | null}
   */
  find(trace) {
    let found;
    try {
      found = this.#held.find(trace);
    } catch {
      // Scoring it says what is wrong.
      return null;
    }
    if (found === null) return null;
    const { fingerprint } = found;
    const novelty = found.novelty ?? this.#new.get(fingerprint);
    if (novelty !== undefined) return { novelty };
    return { novelty: null, begin: (first) => this.#add(fingerprint, first) };
  }

  /**
   * @param {string} fingerprint
   * @param {Promise<number>} novelty
   */
  #add(fingerprint, novelty) {
    // It is looked at only if the same trace comes again.
    novelty.catch(() => {});
    this.#new.set(fingerprint, novelty);
    const [oldest] = this.#new.keys();
    if (this.#new.size > this.#mostNew) this.#new.delete(oldest);
  }
}

module.exports = { KnownTraces };
