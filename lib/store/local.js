'use strict';

const { throwIfAborted } = require('../calls/abort.js');
const { readCallOptions } = require('../calls/options.js');
const { codedError, fromAddon } = require('../calls/errors.js');
const { custom, inspectAs } = require('../inspect.js');
const { originOf, readEntries, readEntry, readMethod, readModel, readVector } = require('./entry.js');
const { VectorCache, nativeOf } = require('../vector-cache.js');

/**
 * @import { AbortSignalLike, AddOptions, CallOptions, NearestOptions, NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour,
 *   VectorModel } from '../../index.js'
 * @import { VectorCache as VectorCacheInterface } from '../../index.js'
 * @import { Origin } from './entry.js'
 */

/**
 * A `VectorCache` as a novelty store. It lives in this process, so all its calls are atomic.
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
   * Where it stores: the live one.
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
    const { signal } = readCallOptions(options, { call: 'string' });
    const [comparison] = this.#compareAndAdd([readEntry(entry, 'entry', this.#kind)], signal);
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
    const { signal } = readCallOptions(options, { call: 'string' });
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
    const { signal, method } = readCallOptions(options, { method: 'string' });
    const { vector: query } = readVector(vector, 'vector', this.#cache.dimensions);
    const origin = {
      model: readModel(model, 'model'),
      method: readMethod(method, 'options.method', 'ERR_INVALID_OPTION'),
    };
    throwIfAborted(signal);
    asStore(() => requireComparable(this.#cache, origin));
    return this.#nearest(query, count);
  }

  /**
   * How many vectors are stored and compared with.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async size(options) {
    throwIfAborted(readCallOptions(options).signal);
    return this.#cache.size;
  }

  get #kind() {
    return { dimensions: this.#cache.dimensions };
  }

  /**
   * All or nothing: there is nothing left to refuse once it begins.
   *
   * @param {NoveltyEntry[]} entries
   * @param {AbortSignalLike | undefined} signal
   * @returns {NoveltyComparison[]}
   */
  #compareAndAdd(entries, signal) {
    throwIfAborted(signal);
    if (entries.length === 0) return [];
    asStore(() => bindOrigin(this.#cache, originOf(entries)));
    return entries.map(({ id, vectors }) => {
      const comparison = vectors.map((vector) => this.#nearest(vector, 1)[0] ?? null);
      for (const vector of vectors) this.#cache.add(vector, id ?? undefined);
      return comparison;
    });
  }

  /**
   * @param {Float32Array} vector
   * @param {number} count
   * @returns {StoredNeighbour[]}
   */
  #nearest(vector, count) {
    return this.#cache
      .nearest(vector, count)
      .map(({ label, similarity }) => ({ label: label ?? null, similarity }));
  }
}

/**
 * Has a cache that refuses vectors refuse them as a store does.
 *
 * @param {() => void} check
 */
function asStore(check) {
  try {
    check();
  } catch (thrown) {
    const error = /** @type {import('../calls/errors.js').CodedError} */ (thrown);
    if (!/^ERR_CACHE_OTHER_(MODEL|METHOD)$/.test(error.code)) throw error;
    throw codedError(Error, error.code.replace('CACHE', 'STORE'), error.message);
  }
}

/**
 * Says where the vectors of a cache come from, or throws if that is somewhere else.
 *
 * @param {VectorCacheInterface} cache
 * @param {Origin} origin
 */
function bindOrigin(cache, { model, method }) {
  fromAddon(() => nativeOf(cache)?.bindOrigin(model, method));
}

/**
 * Adds entries of one origin to a cache, with nothing to compare them with.
 *
 * @param {VectorCacheInterface} cache
 * @param {readonly NoveltyEntry[]} entries
 */
function addEntries(cache, entries) {
  bindOrigin(cache, originOf(entries));
  const labels = entries.flatMap(({ id, vectors }) => Array.from(vectors, () => id ?? undefined));
  cache.addBatch(
    entries.flatMap(({ vectors }) => [...vectors]),
    labels,
  );
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
