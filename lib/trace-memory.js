'use strict';

const { callAddon } = require('./calls/addon.js');
const { invalidOption, oneOf, readCallOptions, readOptions, requireNumber } = require('./calls/options.js');
const { BoundedMemory, COUNT, DEFAULTS, OPTIONS, elements, loadMemory } = require('./bounded-memory.js');
const { codedError, fromAddon } = require('./calls/errors.js');
const native = require('./loader.js').addon;
const { toFloatArray } = require('./vector-cache.js');

/**
 * @import { ReadonlyReasoningTrace, SimilarTrace, TraceComparison, TraceMemoryEntry, TraceMemoryOptions, TraceOptions } from '../index.js'
 * @import { TraceMemory as Public } from '../index.js'
 * @import { NativeSimilarTrace, NativeTraceMemory } from './binding.js'
 */

const MEMORY_OPTIONS = { novelty: oneOf(['lexical', 'full']), ...OPTIONS };

/** The options of a call with a trace, without `signal`. */
const TRACE_OPTIONS = { vector: (/** @type {unknown} */ value) => value };

/** The novelty of a trace to an empty memory. */
const NEUTRAL = 0.5;

/** @type {(handle: NativeTraceMemory) => TraceMemory} wraps a native memory in a `TraceMemory` */
let adopt;
/**
 * Returns the native memory of a `TraceMemory`; undefined for other values.
 *
 * @type {(value: unknown) => NativeTraceMemory | undefined}
 */
let nativeOfTraces;

/**
 * A bounded first-in-first-out memory that compares whole traces.
 *
 * @implements {Public}
 */
class TraceMemory extends BoundedMemory {
  /** @type {NativeTraceMemory} */
  #native;

  static {
    adopt = (handle) => {
      const memory = new TraceMemory({ maxElements: 0 });
      memory.#native = handle;
      return memory;
    };
    nativeOfTraces = (value) =>
      typeof value === 'object' && value !== null && #native in value ? value.#native : undefined;
  }

  /** @param {TraceMemoryOptions} [options] */
  constructor(options = {}) {
    super(() => this.#native);
    const { novelty = 'lexical', ...bounds } = readOptions(options, MEMORY_OPTIONS);
    this.#native = new native.NativeTraceMemory(novelty, { ...DEFAULTS, ...bounds });
  }

  /** @type {typeof Public['load']} */
  static async load(file, options = {}) {
    const loaded = await loadMemory(native.NativeTraceMemory, file, options, (held, identity) =>
      held.checkOrigin(identity),
    );
    return adopt(loaded);
  }

  /** @type {typeof Public['fromHandle']} */
  static fromHandle(handle) {
    const found = native.NativeTraceMemory.fromHandle(requireNumber(handle, 'handle', COUNT));
    if (found !== null) return adopt(found);
    throw invalidOption(
      RangeError,
      `no TraceMemory of this process has the handle ${handle}: the thread that made it must keep it until this one has it`,
    );
  }

  /** @type {typeof Public['digest']} */
  static digest(trace) {
    return fromAddon(() => native.traceDigest(trace));
  }

  /** @type {Public['add']} */
  async add(trace, options) {
    await this.#call(options, (vector, call) => this.#native.add([trace], vector, undefined, call));
  }

  /** @type {Public['compare']} */
  async compare(trace, options) {
    return this.#compare(trace, options, false);
  }

  /** @type {Public['compareAndAdd']} */
  async compareAndAdd(trace, options) {
    return this.#compare(trace, options, true);
  }

  /** @type {Public['nearest']} */
  async nearest(trace, k = 1, options) {
    const count = requireNumber(k, 'k', COUNT);
    const nearest = await this.#call(options, (vector, call) =>
      this.#native.nearest(trace, count, vector, undefined, call),
    );
    return Array.from(nearest, shown);
  }

  /** @returns {IterableIterator<TraceMemoryEntry>} */
  [Symbol.iterator]() {
    const [start, end] = this.#native.sequence();
    return elements(this.#native, start, end, ({ label, words, vector }, index) => ({
      index,
      label: label ?? undefined,
      words: new Map(Array.from(words, ({ hash, count }) => [hash, count])),
      // A copy, so that the array is of the caller's realm.
      vector: vector && new Float32Array(vector),
    }));
  }

  /** @returns {'lexical' | 'full'} */
  get novelty() {
    return /** @type {'lexical' | 'full'} */ (this.#native.method);
  }

  get handle() {
    return this.#native.handle;
  }

  get bytes() {
    return this.#native.bytes;
  }

  /**
   * @param {ReadonlyReasoningTrace} trace
   * @param {TraceOptions | undefined} options
   * @param {boolean} remember
   * @returns {Promise<TraceComparison>}
   */
  async #compare(trace, options, remember) {
    const [nearest] = await this.#call(options, (vector, call) =>
      this.#native.compare([trace], vector, undefined, remember, call),
    );
    if (nearest === null) return { novelty: NEUTRAL, nearest: null };
    return { novelty: 1 - nearest.similarity, nearest: shown(nearest) };
  }

  /**
   * @template T
   * @param {TraceOptions | undefined} options
   * @param {(vector: Float32Array | undefined, call: import('./binding.js').NativeCall | undefined) => Promise<T>} begin
   * @returns {Promise<T>}
   */
  async #call(options, begin) {
    const { vector, signal } = readTraceOptions(options, this.#native);
    return callAddon(signal, (call) => begin(vector, call));
  }
}

/**
 * @param {NativeSimilarTrace} similar
 * @returns {SimilarTrace}
 */
function shown({ index, label, similarity, lexical, contained, embedded }) {
  return {
    index,
    label: label ?? undefined,
    similarity,
    lexical,
    contained,
    embedded: embedded ?? undefined,
  };
}

/**
 * @param {unknown} options
 * @param {NativeTraceMemory} memory
 */
function readTraceOptions(options, memory) {
  const { vector, signal } = readCallOptions(options, TRACE_OPTIONS);
  if (memory.method === 'lexical') return { signal };
  if (vector === undefined) {
    throw codedError(
      TypeError,
      'ERR_INVALID_VECTOR',
      "options.vector must be the embedding of TraceMemory.digest(trace) in a memory with novelty 'full'",
    );
  }
  return { vector: Float32Array.from(toFloatArray(vector, 'vector', memory.bounds.dimensions)), signal };
}

/**
 * @param {unknown} value
 * @returns {value is Public}
 */
function isTraceMemory(value) {
  return nativeOfTraces(value) !== undefined;
}

module.exports = { TraceMemory, isTraceMemory, nativeOfTraces };
