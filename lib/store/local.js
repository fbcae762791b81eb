'use strict';

const { callAddon } = require('../calls/addon.js');
const { ofType, readCallOptions, requireNumber } = require('../calls/options.js');
const { codedError, fromAddon } = require('../calls/errors.js');
const { custom, inspectAs } = require('../inspect.js');
const { requireReceiver } = require('../calls/receiver.js');
const { originOf, readEntries, readEntry, readMethod, readModel, readVector } = require('./entry.js');
const { packed } = require('./packed.js');
const { isTraceMemory, nativeOfTraces } = require('../trace-memory.js');
const { VectorCache, isVectorCache, nativeOf } = require('../vector-cache.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour, TraceMemory, VectorModel } from '../../index.js'
 * @import { LocalStore as Public, VectorCache as VectorCacheInterface } from '../../index.js'
 * @import { NativeCall, NativeSimilarTrace, NativeTraceMemory, NativeVectorCache } from '../binding.js'
 * @import { Origin } from './entry.js'
 */

/**
 * A novelty store in a `VectorCache` or a `TraceMemory`. Calls are atomic and run in their order, away from the event loop.
 *
 * @template {VectorCacheInterface | TraceMemory} [Memory=VectorCacheInterface]
 * @implements {NoveltyStore}
 */
class LocalStore {
  /** @type {VectorCacheInterface | TraceMemory} */
  #memory;

  static {
    requireReceiver(LocalStore, (value) => typeof value === 'object' && value !== null && #memory in value);
  }

  /** @param {Memory} [memory] */
  constructor(memory = /** @type {any} */ (new VectorCache())) {
    if (!isVectorCache(memory) && !isTraceMemory(memory)) {
      throw codedError(TypeError, 'ERR_INVALID_OPTION', 'memory must be a VectorCache or a TraceMemory');
    }
    this.#memory = memory;
  }

  /** @returns {Memory} */
  get memory() {
    return /** @type {Memory} */ (this.#memory);
  }

  get #traces() {
    return isTraceMemory(this.#memory) ? this.#memory : null;
  }

  /** @returns {Public['novelty']} */
  get novelty() {
    return this.#traces?.novelty ?? 'prefix';
  }

  /** @type {import('../inspect.js').Inspect} */
  [custom](depth, options) {
    return inspectAs('LocalStore', { memory: this.#memory }, depth, options);
  }

  /** @type {Public['compareAndAdd']} */
  async compareAndAdd(entry, options) {
    const { signal } = readCallOptions(options, { call: ofType('string') });
    const [comparison] = await this.#compareAndAdd([readEntry(entry, 'entry', this.#kind)], signal);
    return comparison;
  }

  /** @type {Public['compareAndAddBatch']} */
  async compareAndAddBatch(entries, options) {
    const { signal } = readCallOptions(options, { call: ofType('string') });
    return this.#compareAndAdd(readEntries(entries, this.#kind), signal);
  }

  /** @type {Public['nearest']} */
  async nearest(vector, count, model, options) {
    const { signal, method } = readCallOptions(options, { method: ofType('string') });
    if (this.#traces !== null) throw otherMethod('nearest is for vectors; ask nearestTraces');
    const { vector: query } = readVector(vector, 'vector', this.#kind.dimensions);
    const origin = {
      model: readModel(model, 'model'),
      method: readMethod(method, 'options.method', 'ERR_INVALID_OPTION'),
    };
    requireNumber(count, 'count', { from: 0, whole: true });
    const neighbours = await this.#ask(signal, (cache, call) =>
      cache.lookUp(query, count, origin.model, origin.method, call),
    );
    return Array.from(neighbours, copyOf);
  }

  /** @type {Public['nearestTraces']} */
  async nearestTraces(entry, count, options) {
    const { signal } = readCallOptions(options);
    if (this.#traces === null) throw otherMethod('nearestTraces is for traces; ask nearest');
    const read = readEntry(entry, 'entry', this.#kind);
    requireNumber(count, 'count', { from: 0, whole: true });
    const similar = await this.#askTraces(signal, (native, call) =>
      native.nearestPacked({ trace: packed(read) }, count, read.model ?? undefined, call),
    );
    return Array.from(similar, neighbourOf);
  }

  /** @type {Public['size']} */
  async size(options) {
    const { signal } = readCallOptions(options);
    if (this.#traces !== null) return this.#askTraces(signal, (memory, call) => memory.count(call));
    return this.#ask(signal, (cache, call) => cache.count(call));
  }

  /** @returns {import('./entry.js').Kind} */
  get #kind() {
    const memory = this.#traces;
    if (memory === null) return { dimensions: this.#cache.dimensions };
    const { dimensions } = /** @type {NativeTraceMemory} */ (nativeOfTraces(memory)).bounds;
    return { dimensions, method: memory.novelty };
  }

  get #cache() {
    return /** @type {VectorCacheInterface} */ (this.#memory);
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<NoveltyComparison[]>}
   */
  async #compareAndAdd(entries, signal) {
    signal?.throwIfAborted();
    if (entries.length === 0) return [];
    const { model, method } = originOf(entries);
    if (this.#traces !== null) {
      const nearest = await this.#askTraces(signal, (memory, call) =>
        memory.compareAndAddPacked(packedEntries(entries), model ?? undefined, call),
      );
      return Array.from(nearest, (similar) => [similar && neighbourOf(similar)]);
    }
    const comparisons = await this.#ask(signal, (cache, call) =>
      cache.compareAndAdd(
        vectorsOf(entries),
        countsOf(entries),
        /** @type {VectorModel} */ (model),
        method,
        call,
      ),
    );
    return Array.from(comparisons, (comparison) =>
      Array.from(comparison, (neighbour) => neighbour && copyOf(neighbour)),
    );
  }

  /**
   * Calls the addon, which runs calls in their order away from the event loop. The signal can cancel a call until it begins.
   *
   * @template T
   * @param {AbortSignal | undefined} signal
   * @param {(cache: NativeVectorCache, call: NativeCall | undefined) => Promise<T>} begin
   * @returns {Promise<T>}
   */
  async #ask(signal, begin) {
    const cache = /** @type {NativeVectorCache} */ (nativeOf(this.#cache));
    return askLater(signal, (call) => begin(cache, call));
  }

  /**
   * Does the same as `#ask` for a `TraceMemory`.
   *
   * @template T
   * @param {AbortSignal | undefined} signal
   * @param {(memory: NativeTraceMemory, call: NativeCall | undefined) => Promise<T>} begin
   * @returns {Promise<T>}
   */
  async #askTraces(signal, begin) {
    const memory = /** @type {NativeTraceMemory} */ (nativeOfTraces(this.#traces));
    return askLater(signal, (call) => begin(memory, call));
  }
}

/**
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {(call: NativeCall | undefined) => Promise<T>} begin
 * @returns {Promise<T>}
 */
function askLater(signal, begin) {
  return asStore(callAddon(signal, begin));
}

/** @param {string} message */
function otherMethod(message) {
  return codedError(Error, 'ERR_STORE_OTHER_METHOD', message);
}

/**
 * Converts a similar trace of a memory to a neighbour of a store.
 *
 * @param {NativeSimilarTrace} similar
 * @returns {StoredNeighbour}
 */
function neighbourOf({ label, similarity, lexical, contained, embedded }) {
  return { label: label ?? null, similarity, lexical, contained, embedded: embedded ?? null };
}

/**
 * Converts entries with words for the addon.
 *
 * @param {readonly NoveltyEntry[]} entries
 */
function packedEntries(entries) {
  return entries.map((entry) => ({ trace: packed(entry), label: entry.id ?? undefined }));
}

/** @type {Map<string, import('../calls/errors.js').Code>} */
const STORE_CODES = new Map([
  ['ERR_MEMORY_OTHER_MODEL', 'ERR_STORE_OTHER_MODEL'],
  ['ERR_MEMORY_OTHER_METHOD', 'ERR_STORE_OTHER_METHOD'],
]);

/**
 * Returns the reply of a cache, with the codes of stores for another model or method.
 *
 * @template T
 * @param {Promise<T>} reply
 * @returns {Promise<T>}
 */
async function asStore(reply) {
  try {
    return await reply;
  } catch (thrown) {
    const error = /** @type {import('../calls/errors.js').CodedError} */ (thrown);
    const code = STORE_CODES.get(error.code);
    throw code === undefined ? error : codedError(Error, code, error.message);
  }
}

/**
 * A copy, so that the object is of the caller's realm.
 *
 * @param {{ label: string | null, similarity: number }} neighbour
 * @returns {StoredNeighbour}
 */
function copyOf({ label, similarity }) {
  return { label, similarity };
}

/**
 * Concatenates the vectors of entries for the addon.
 *
 * @param {readonly NoveltyEntry[]} entries
 */
function vectorsOf(entries) {
  const vectors = entries.flatMap((entry) => [...entry.vectors]);
  const length = vectors[0]?.length ?? 0;
  const all = new Float32Array(vectors.length * length);
  for (const [index, vector] of vectors.entries()) all.set(vector, index * length);
  return all;
}

/**
 * Returns the labels of entries and their numbers of vectors.
 *
 * @param {readonly NoveltyEntry[]} entries
 */
function countsOf(entries) {
  return entries.map(({ id, vectors }) => ({ label: id ?? undefined, vectors: vectors.length }));
}

/**
 * Adds entries of one origin to a memory without comparing them, in the order of the calls.
 *
 * @param {VectorCacheInterface | TraceMemory} memory
 * @param {readonly NoveltyEntry[]} entries
 */
async function addEntries(memory, entries) {
  const { model, method } = originOf(entries);
  if (isTraceMemory(memory)) {
    await fromAddon(() => nativeOfTraces(memory)?.addPacked(packedEntries(entries), model ?? undefined));
    return;
  }
  const identity = /** @type {VectorModel} */ (model);
  await fromAddon(() =>
    nativeOf(memory)?.addEntries(vectorsOf(entries), countsOf(entries), identity, method),
  );
}

/**
 * Throws if a memory holds vectors of another model or method.
 *
 * @param {VectorCacheInterface | TraceMemory} memory
 * @param {Origin} origin
 */
function requireComparable(memory, { model, method }) {
  // Words have no model.
  if (model === null) return;
  if (isTraceMemory(memory)) fromAddon(() => nativeOfTraces(memory)?.checkModel(model));
  else fromAddon(() => nativeOf(memory)?.checkOrigin(model, method));
}

module.exports = { LocalStore, addEntries, requireComparable };
