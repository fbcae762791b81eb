'use strict';

const { cancellable, throwIfAborted } = require('../calls/abort.js');
const { ofType, readCallOptions, requireNumber } = require('../calls/options.js');
const { codedError, fromAddon } = require('../calls/errors.js');
const { custom, inspectAs } = require('../inspect.js');
const native = require('../loader.js').addon;
const { originOf, readEntries, readEntry, readMethod, readModel, readVector } = require('./entry.js');
const { VectorCache, nativeOf } = require('../vector-cache.js');

/**
 * @import { AbortSignalLike, AddOptions, CallOptions, NearestOptions, NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour,
 *   VectorModel } from '../../index.js'
 * @import { VectorCache as VectorCacheInterface } from '../../index.js'
 * @import { NativeCall, NativeVectorCache } from '../binding.js'
 * @import { Origin } from './entry.js'
 */

/**
 * A `VectorCache` as a novelty store. All its calls are atomic, and are worked on in the order in which they were made, away
 * from the event loop.
 *
 * @implements {NoveltyStore}
 */
class LocalStore {
  #cache;

  /**
   * Stores in a cache, by default a new one for 1,000 vectors. Throws `ERR_INVALID_OPTION`.
   *
   * @param {VectorCacheInterface} [cache]
   */
  constructor(cache = new VectorCache()) {
    if (nativeOf(cache) === undefined) {
      throw codedError(TypeError, 'ERR_INVALID_OPTION', 'cache must be a VectorCache');
    }
    this.#cache = cache;
  }

  /**
   * The cache that it stores in: the live one, not a copy.
   *
   * @returns {VectorCacheInterface}
   */
  get cache() {
    return this.#cache;
  }

  /** @type {import('../inspect.js').Inspect} */
  [custom](depth, options) {
    return inspectAs('LocalStore', { cache: this.#cache }, depth, options);
  }

  /**
   * Compares an entry with everything stored before it, and stores it. Rejects with `ERR_INVALID_…` or `ERR_STORE_OTHER_MODEL`.
   *
   * @param {NoveltyEntry} entry
   * @param {AddOptions} [options]
   * @returns {Promise<NoveltyComparison>}
   */
  async compareAndAdd(entry, options) {
    const { signal } = readCallOptions(options, { call: ofType('string') });
    const [comparison] = await this.#compareAndAdd([readEntry(entry, 'entry', this.#kind)], signal);
    return comparison;
  }

  /**
   * As one `compareAndAdd` after another, all or nothing.
   *
   * @param {readonly NoveltyEntry[]} entries
   * @param {AddOptions} [options]
   * @returns {Promise<NoveltyComparison[]>}
   */
  async compareAndAddBatch(entries, options) {
    const { signal } = readCallOptions(options, { call: ofType('string') });
    return this.#compareAndAdd(readEntries(entries, this.#kind), signal);
  }

  /**
   * The `count` stored vectors that are most similar to a vector, the most similar first. Stores nothing.
   *
   * @param {Float32Array} vector
   * @param {number} count
   * @param {VectorModel} model
   * @param {NearestOptions} [options]
   * @returns {Promise<StoredNeighbour[]>}
   */
  async nearest(vector, count, model, options) {
    const { signal, method } = readCallOptions(options, { method: ofType('string') });
    const { vector: query } = readVector(vector, 'vector', this.#cache.dimensions);
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

  /**
   * How many vectors are stored and compared with.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async size(options) {
    const { signal } = readCallOptions(options);
    return this.#ask(signal, (cache, call) => cache.count(call));
  }

  get #kind() {
    return { dimensions: this.#cache.dimensions };
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @param {AbortSignalLike | undefined} signal
   * @returns {Promise<NoveltyComparison[]>}
   */
  async #compareAndAdd(entries, signal) {
    throwIfAborted(signal);
    if (entries.length === 0) return [];
    const { model, method } = originOf(entries);
    const comparisons = await this.#ask(signal, (cache, call) =>
      cache.compareAndAdd(vectorsOf(entries), countsOf(entries), model, method, call),
    );
    return Array.from(comparisons, (comparison) =>
      Array.from(comparison, (neighbour) => neighbour && copyOf(neighbour)),
    );
  }

  /**
   * Makes a call to the addon, which works on it away from the event loop and after the calls before. The signal can cancel it
   * until the work begins.
   *
   * @template T
   * @param {AbortSignalLike | undefined} signal
   * @param {(cache: NativeVectorCache, call: NativeCall | undefined) => Promise<T>} begin
   * @returns {Promise<T>}
   */
  async #ask(signal, begin) {
    throwIfAborted(signal);
    const cache = /** @type {NativeVectorCache} */ (nativeOf(this.#cache));
    const call = signal && new native.NativeCall();
    return cancellable(() => asStore(fromAddon(() => begin(cache, call))), call, signal);
  }
}

/**
 * The reply of a cache, with the errors for another model or method under the codes that stores have for them.
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
    if (!/^ERR_CACHE_OTHER_(MODEL|METHOD)$/.test(error.code)) throw error;
    throw codedError(Error, error.code.replace('CACHE', 'STORE'), error.message);
  }
}

/**
 * A copy, so that the object is of the caller's realm.
 *
 * @param {StoredNeighbour} neighbour
 * @returns {StoredNeighbour}
 */
function copyOf({ label, similarity }) {
  return { label, similarity };
}

/**
 * The vectors of entries one after another, as the addon takes them.
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
 * The labels of entries, and how many vectors each has.
 *
 * @param {readonly NoveltyEntry[]} entries
 */
function countsOf(entries) {
  return entries.map(({ id, vectors }) => ({ label: id ?? undefined, vectors: vectors.length }));
}

/**
 * Adds entries of one origin to a cache, after the calls before, with nothing to compare them with.
 *
 * @param {VectorCacheInterface} cache
 * @param {readonly NoveltyEntry[]} entries
 */
async function addEntries(cache, entries) {
  const { model, method } = originOf(entries);
  await fromAddon(() => nativeOf(cache)?.addEntries(vectorsOf(entries), countsOf(entries), model, method));
}

/**
 * Throws if vectors of a model and a method do not compare with those in a cache.
 *
 * @param {VectorCacheInterface} cache
 * @param {Origin} origin
 */
function requireComparable(cache, { model, method }) {
  fromAddon(() => nativeOf(cache)?.checkOrigin(model, method));
}

module.exports = { LocalStore, addEntries, requireComparable };
