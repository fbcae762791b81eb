'use strict';

// Traces whose records are spread over an input: a bounded number of them is open at a time, and a bounded part of the input.

const { DEFAULT_LIMIT } = require('./records.js');

/** How many traces are open at a time. */
const MAX_OPEN = 1024;

/** How many bytes of the input the open traces may hold, all together. One alone may hold `DEFAULT_LIMIT`, as a record may. */
const MAX_BYTES = 4 * DEFAULT_LIMIT;

/** What nearly every record takes out, without a list of its own. @type {readonly never[]} */
const NONE = [];

/** How many keys of finished traces are remembered, to tell records that come too late. */
const MAX_FINISHED = 100_000;

/**
 * The traces that are open, by what their records have in common.
 *
 * @template Value
 */
class OpenTraces {
  /** In the order in which something was last added. @type {Map<string, { value: Value, bytes: number, order: number }>} */
  #open = new Map();
  /** The last key of these. @type {string | undefined} */
  #last;
  #bytes = 0;
  #begun = 0;
  /** @type {Set<string>} */
  #finished = new Set();
  #limits;

  /** @param {{ maxOpen?: number, maxBytes?: number, maxTraceBytes?: number }} [limits] */
  constructor({ maxOpen = MAX_OPEN, maxBytes = MAX_BYTES, maxTraceBytes = DEFAULT_LIMIT } = {}) {
    this.#limits = { maxOpen, maxBytes, maxTraceBytes };
  }

  /**
   * The trace that a record of this size belongs to, made if it is the first.
   *
   * @param {string} key
   * @param {number} size
   * @param {() => Value} make
   * @returns {Value}
   * @throws {TypeError} if the trace is finished, or becomes too long; what it had until then stays
   */
  add(key, size, make) {
    const { maxTraceBytes, maxOpen } = this.#limits;
    const trace = this.#open.get(key) ?? { value: undefined, bytes: 0, order: this.#begun++ };
    if (trace.value === undefined && this.#finished.has(key)) {
      throw new TypeError(
        `it comes too late for its trace, which was finished because ${maxOpen} others were open, or 256 MB of them`,
      );
    }
    if (trace.bytes + size > maxTraceBytes) {
      throw new TypeError(
        `its trace would be longer than ${maxTraceBytes / 1024 / 1024} MB, and goes on without it`,
      );
    }
    trace.value ??= make();
    trace.bytes += size;
    this.#bytes += size;
    // Records of a trace mostly follow each other; then it is the last one already.
    if (key !== this.#last) {
      this.#open.delete(key);
      this.#open.set(key, /** @type {{ value: Value, bytes: number, order: number }} */ (trace));
      this.#last = key;
    }
    return trace.value;
  }

  /**
   * A trace that is open.
   *
   * @param {string} key
   */
  get(key) {
    return this.#open.get(key)?.value;
  }

  /** Takes out the traces that are too many, those first to which nothing was added for longest. @returns {readonly Value[]} */
  overflow() {
    const { maxBytes, maxOpen } = this.#limits;
    if (this.#open.size <= maxOpen && this.#bytes <= maxBytes) return NONE;
    const taken = [];
    for (const key of this.#open.keys()) {
      if (this.#open.size <= maxOpen && this.#bytes <= maxBytes) break;
      taken.push(...this.take(key));
    }
    return taken;
  }

  /**
   * Takes out a trace, if it is open.
   *
   * @param {string} key
   * @returns {Generator<Value, void>}
   */
  *take(key) {
    const trace = this.#open.get(key);
    if (trace === undefined) return;
    this.#open.delete(key);
    if (key === this.#last) this.#last = undefined;
    this.#bytes -= trace.bytes;
    if (this.#finished.size >= MAX_FINISHED) this.#finished.clear();
    this.#finished.add(key);
    yield trace.value;
  }

  /** Takes out all, in the order in which they began. @returns {Generator<Value, void>} */
  *takeAll() {
    const keys = [...this.#open].sort(([, a], [, b]) => a.order - b.order).map(([key]) => key);
    for (const key of keys) yield* this.take(key);
  }
}

module.exports = { OpenTraces };
