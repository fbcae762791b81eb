'use strict';

const path = require('node:path');

const { attempt, codedError, fromAddon } = require('./calls/errors.js');
const { InOrder } = require('./calls/in-order.js');
const { invalidOption, oneOf, readOptions, requireNumber } = require('./calls/options.js');
const { describe } = require('./calls/reading.js');
const { embedderStatus, ensureConfigured } = require('./embedder.js');
const native = require('./loader.js').addon;
const { scoreOf } = require('./score.js');
const { DEFAULTS, OPTIONS } = require('./vector-cache.js');

/**
 * @import { NoveltyMethod, ScorableTrace, TraceMemory as Public } from '../index.js'
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
  static async load(file) {
    const resolved = readPath(file);
    const loaded = await fromAddon(() => native.NativeTraceMemory.load(resolved));
    return new TraceMemory(/** @type {any} */ (loaded));
  }

  /** @type {Public['save']} */
  async save(file) {
    const resolved = readPath(file);
    const snapshot = this.#native.snapshot();
    await this.#saves.reply(async (earlier) => {
      // One save follows another, so that the later one stays.
      await earlier;
      await fromAddon(() => snapshot.save(resolved));
    });
  }

  /** @type {Public['add']} */
  async add(trace) {
    await this.#compare(trace, true);
  }

  /** @type {Public['compare']} */
  async compare(trace) {
    const { dimensions, nearest } = await this.#compare(trace, false);
    return { novelty: dimensions.novelty, nearest };
  }

  /** @type {Public['nearest']} */
  async nearest(trace, count = 1) {
    const most = requireNumber(count, 'count', { from: 0, whole: true });
    this.#configure();
    const embedded = await fromAddon(() => this.#scorer.embed(trace));
    if (embedded.words === null && embedded.vector === null) throw await embedderFailure();
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
   */
  async #compare(trace, remember) {
    this.#configure();
    const score = scoreOf(await fromAddon(() => this.#scorer.explain(trace, remember)));
    if (score.basis === 'no-embedder') throw await embedderFailure();
    return score;
  }

  #configure() {
    if (this.#native.method !== 'lexical') ensureConfigured();
  }
}

/**
 * @param {unknown} options
 * @returns {NativeTraceMemory}
 */
function createdWith(options) {
  const { method, ...bounds } = readOptions(options, MEMORY_OPTIONS);
  if (method === undefined) {
    throw invalidOption(TypeError, "options.method must be 'prefix', 'lexical' or 'full'");
  }
  return new native.NativeTraceMemory(method, { ...DEFAULTS, ...bounds });
}

/** Returns the error for the missing or broken embedder. */
async function embedderFailure() {
  const { code, reason } = await embedderStatus();
  return codedError(Error, code ?? 'ERR_INTERNAL', reason ?? 'the embedder does not work');
}

/** @param {unknown} file */
function readPath(file) {
  if (typeof file !== 'string') {
    throw invalidOption(TypeError, `path must be a string, got ${describe(file)}`);
  }
  if (file === '') throw invalidOption(RangeError, 'path must not be empty');
  // Resolved now, because the working directory may change before it is used.
  return path.resolve(file);
}

module.exports = { METHODS, TraceMemory, nativeOf };
