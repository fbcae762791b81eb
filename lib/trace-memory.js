'use strict';

const path = require('node:path');
const { isUint8Array } = require('node:util').types;

const { withCall } = require('./calls/cancel.js');
const { attempt, codedError, fromAddon } = require('./calls/errors.js');
const { InOrder } = require('./calls/in-order.js');
const { kindOf, oneOf, readCallOptions, readCount, readOptions, readPath } = require('./calls/options.js');
const { wrongType } = require('./calls/reading.js');
const { embedderStatus, ensureConfigured } = require('./embedder.js');
const native = require('./loader.js').addon;
const { DEFAULTS, OPTIONS } = require('./vector-cache.js');

/**
 * @import { NoveltyMethod, ScorableTrace, Score, TraceMemory as Public } from '../index.js'
 * @import { NativeTraceMemory } from './binding.js'
 */

/** @type {readonly NoveltyMethod[]} */
const METHODS = ['prefix', 'lexical', 'full'];

const MEMORY_OPTIONS = { method: oneOf(METHODS), maxElements: OPTIONS.maxElements, ttlMs: OPTIONS.ttlMs };

/**
 * Returns the native memory of a `TraceMemory`; undefined for other values.
 *
 * @type {(value: unknown) => NativeTraceMemory | undefined}
 */
let nativeOf;

/**
 * A bounded first-in-first-out memory of traces.
 *
 * @implements {Public}
 */
class TraceMemory {
  /** @type {NativeTraceMemory} */
  #native;
  /** Compares with the memory. */
  #scorer;
  #saves = new InOrder();

  static {
    nativeOf = (value) =>
      typeof value === 'object' && value !== null && #native in value ? value.#native : undefined;
  }

  /** @param {ConstructorParameters<typeof Public>[0]} options within this package also the native memory itself */
  constructor(options) {
    const isNative = attempt(() => Object(options) instanceof native.NativeTraceMemory, false);
    this.#native = isNative ? /** @type {any} */ (options) : createdWith(options);
    this.#scorer = new native.NativeScorer([], this.#native);
  }

  /** @type {typeof Public['load']} */
  static async load(file, options) {
    return loadedFrom(resolved(file), options);
  }

  /** @type {typeof Public['fromBytes']} */
  static async fromBytes(bytes, options) {
    if (!isUint8Array(bytes)) throw wrongType('ERR_INVALID_INPUT', 'bytes', 'a Uint8Array', bytes);
    return loadedFrom(bytes, options);
  }

  /** @type {Public['save']} */
  async save(file, options) {
    const target = resolved(file);
    const { signal } = readCallOptions(options);
    const snapshot = this.#native.snapshot();
    await withCall(signal, (call) =>
      this.#saves.reply(async (earlier) => {
        // One save follows another, so that the later one stays.
        await earlier;
        await snapshot.save(target, call);
      }),
    );
  }

  /** @type {Public['toBytes']} */
  async toBytes() {
    const snapshot = this.#native.snapshot();
    // A copy, so that the array is of the caller's realm.
    return new Uint8Array(await fromAddon(() => snapshot.bytes()));
  }

  /** @type {Public['add']} */
  async add(trace, options) {
    await this.#compare(trace, true, options);
  }

  /** @type {Public['compare']} */
  async compare(trace, options) {
    const { dimensions, nearest } = await this.#compare(trace, false, options);
    return { novelty: dimensions.novelty, nearest };
  }

  /** @type {Public['nearest']} */
  async nearest(trace, count = 1, options) {
    const most = readCount(count, 'count');
    const { signal } = readCallOptions(options);
    this.#configure();
    const embedded = await withCall(signal, (call) => this.#scorer.embed(trace, call));
    if (embedded.packed === null && embedded.vector === null) throw await embedderFailure();
    const found = await fromAddon(() => embedded.nearest(most, false));
    return Array.from(found, (near) => ({ ...near, sharedWords: null, newWords: null }));
  }

  /** @type {Public['clear']} */
  clear() {
    this.#native.clear();
  }

  get size() {
    return this.#native.size;
  }

  get method() {
    return this.#native.method;
  }

  /**
   * @param {ScorableTrace} trace
   * @param {boolean} remember
   * @param {unknown} options
   */
  async #compare(trace, remember, options) {
    const { signal } = readCallOptions(options);
    this.#configure();
    /** @type {Score} */
    const score = JSON.parse(await withCall(signal, (call) => this.#scorer.explain(trace, remember, call)));
    if (score.basis === 'no-embedder') throw await embedderFailure();
    return score;
  }

  #configure() {
    if (this.#native.method !== 'lexical') ensureConfigured();
  }
}

/**
 * @param {string | Uint8Array} source a path, or the bytes of a file
 * @param {unknown} options
 */
async function loadedFrom(source, options) {
  const { signal } = readCallOptions(options);
  const loaded = await withCall(signal, (call) => native.NativeTraceMemory.load(source, call));
  return new TraceMemory(/** @type {any} */ (loaded));
}

/**
 * @param {unknown} options
 * @returns {NativeTraceMemory}
 */
function createdWith(options) {
  const { method, ...bounds } = readOptions(options, MEMORY_OPTIONS, 'options', ['method']);
  return new native.NativeTraceMemory(method, { ...DEFAULTS, ...bounds });
}

/** Returns the error for the missing or broken embedder. */
async function embedderFailure() {
  const { code, reason } = await embedderStatus();
  return codedError(Error, code ?? 'ERR_INTERNAL', reason ?? 'the embedder does not work');
}

/**
 * Returns the absolute path of a file, because the working directory may change before it is used.
 *
 * @param {unknown} file
 */
const resolved = (file) => path.resolve(readPath(file, 'path'));

/** Reads a `TraceMemory` of this copy of the package. */
const readMemory = kindOf(
  /** @type {(value: unknown) => value is TraceMemory} */ ((value) => nativeOf(value) !== undefined),
  'a TraceMemory',
);

module.exports = { METHODS, TraceMemory, nativeOf, readMemory };
