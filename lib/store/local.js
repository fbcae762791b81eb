'use strict';

const { callAddon } = require('../calls/addon.js');
const { ofType, readCallOptions, requireNumber } = require('../calls/options.js');
const { codeOf, codedError, fromAddon } = require('../calls/errors.js');
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
  /** The memory in the addon: `#cache` for vectors, `#traces` for traces. */
  #cache;
  #traces;
  #kind;

  /** @param {Memory} [memory] */
  constructor(memory = /** @type {any} */ (new VectorCache())) {
    if (!isVectorCache(memory) && !isTraceMemory(memory)) {
      throw codedError(TypeError, 'ERR_INVALID_OPTION', 'memory must be a VectorCache or a TraceMemory');
    }
    this.#memory = memory;
    this.#cache = nativeOf(memory);
    this.#traces = nativeOfTraces(memory);
    const method = isTraceMemory(memory) ? memory.novelty : undefined;
    const { dimensions } = /** @type {NativeVectorCache | NativeTraceMemory} */ (this.#cache ?? this.#traces)
      .bounds;
    this.#kind = { dimensions, method };
  }

  /** @returns {Memory} */
  get memory() {
    return /** @type {Memory} */ (this.#memory);
  }

  /** @returns {Public['novelty']} */
  get novelty() {
    return this.#kind.method ?? 'prefix';
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
    const cache = this.#cache;
    if (cache === undefined) throw otherMethod('nearest is for vectors; ask nearestTraces');
    const { vector: query } = readVector(vector, 'vector', this.#kind.dimensions);
    const identity = readModel(model, 'model');
    const named = readMethod(method, 'options.method', 'ERR_INVALID_OPTION');
    requireNumber(count, 'count', { from: 0, whole: true });
    const neighbours = await ask(signal, (call) => cache.lookUp(query, count, identity, named, call));
    return Array.from(neighbours, copyOf);
  }

  /** @type {Public['nearestTraces']} */
  async nearestTraces(entry, count, options) {
    const { signal } = readCallOptions(options);
    const traces = this.#traces;
    if (traces === undefined) throw otherMethod('nearestTraces is for traces; ask nearest');
    const read = readEntry(entry, 'entry', this.#kind);
    requireNumber(count, 'count', { from: 0, whole: true });
    const similar = await ask(signal, (call) =>
      traces.nearestPacked({ trace: packed(read) }, count, read.model ?? undefined, call),
    );
    return Array.from(similar, neighbourOf);
  }

  /** @type {Public['size']} */
  async size(options) {
    const { signal } = readCallOptions(options);
    const held = /** @type {NativeVectorCache | NativeTraceMemory} */ (this.#cache ?? this.#traces);
    return ask(signal, (call) => held.count(call));
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
    const [cache, traces] = [this.#cache, this.#traces];
    if (traces !== undefined) {
      const nearest = await ask(signal, (call) =>
        traces.compareAndAddPacked(packedEntries(entries), model ?? undefined, call),
      );
      return Array.from(nearest, (similar) => [similar && neighbourOf(similar)]);
    }
    const identity = /** @type {VectorModel} */ (model);
    const comparisons = await ask(signal, (call) =>
      /** @type {NativeVectorCache} */ (cache).compareAndAdd(
        vectorsOf(entries),
        countsOf(entries),
        identity,
        method,
        call,
      ),
    );
    return Array.from(comparisons, (comparison) =>
      Array.from(comparison, (neighbour) => neighbour && copyOf(neighbour)),
    );
  }
}

/**
 * Calls the addon, which runs calls in their order away from the event loop. The signal can cancel a call until it begins. Errors for
 * another model or method get the codes of stores.
 *
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {(call: NativeCall | undefined) => Promise<T>} begin
 * @returns {Promise<T>}
 */
async function ask(signal, begin) {
  try {
    return await callAddon(signal, begin);
  } catch (thrown) {
    const code = STORE_CODES.get(codeOf(thrown) ?? '');
    throw code === undefined ? thrown : codedError(Error, code, /** @type {Error} */ (thrown).message);
  }
}

/** @param {string} message */
function otherMethod(message) {
  return codedError(Error, 'ERR_STORE_OTHER_METHOD', message);
}

/**
 * @param {NativeSimilarTrace} similar
 * @returns {StoredNeighbour}
 */
function neighbourOf({ label, similarity, lexical, contained, embedded }) {
  return { label: label ?? null, similarity, lexical, contained, embedded: embedded ?? null };
}

/** @param {readonly NoveltyEntry[]} entries */
function packedEntries(entries) {
  return entries.map((entry) => ({ trace: packed(entry), label: entry.id ?? undefined }));
}

/** @type {Map<string, import('../calls/errors.js').Code>} the codes of stores for those of memories */
const STORE_CODES = new Map([
  ['ERR_MEMORY_OTHER_MODEL', 'ERR_STORE_OTHER_MODEL'],
  ['ERR_MEMORY_OTHER_METHOD', 'ERR_STORE_OTHER_METHOD'],
]);

/**
 * A copy, so that the object is of the caller's realm.
 *
 * @param {{ label: string | null, similarity: number }} neighbour
 * @returns {StoredNeighbour}
 */
function copyOf({ label, similarity }) {
  return { label, similarity };
}

/** @param {readonly NoveltyEntry[]} entries */
function vectorsOf(entries) {
  const vectors = entries.flatMap((entry) => [...entry.vectors]);
  const length = vectors[0]?.length ?? 0;
  const all = new Float32Array(vectors.length * length);
  for (const [index, vector] of vectors.entries()) all.set(vector, index * length);
  return all;
}

/** @param {readonly NoveltyEntry[]} entries */
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
