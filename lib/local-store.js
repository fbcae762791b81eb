'use strict';

const { throwIfAborted } = require('./abort.js');
const { readCallOptions } = require('./call-options.js');
const { codedError, fromAddon } = require('./errors.js');
const { isSameModel, nameOf, readEntries, readEntry, readModel, readVector } = require('./novelty-entry.js');
const { VectorCache, nativeOf } = require('./vector-cache.js');

/** A `VectorCache` as a novelty store. It lives in this process, so all its calls are atomic. */
class LocalStore {
  #cache;

  constructor(cache = new VectorCache()) {
    if (nativeOf(cache) === undefined) {
      throw codedError(TypeError, 'ERR_INVALID_OPTION', 'cache must be a VectorCache');
    }
    this.#cache = cache;
  }

  get cache() {
    return this.#cache;
  }

  async compareAndAdd(entry, options) {
    const { signal } = readCallOptions(options);
    const [comparison] = this.#compareAndAdd([readEntry(entry, 'entry', this.#kind)], signal);
    return comparison;
  }

  async compareAndAddBatch(entries, options) {
    const { signal } = readCallOptions(options);
    return this.#compareAndAdd(readEntries(entries, this.#kind), signal);
  }

  async nearest(vector, count, model, options) {
    const { signal } = readCallOptions(options);
    const { vector: query } = readVector(vector, 'vector', this.#cache.dimensions);
    const identity = readModel(model, 'model');
    throwIfAborted(signal);
    this.#check(identity);
    return this.#nearest(query, count);
  }

  async size(options) {
    throwIfAborted(readCallOptions(options).signal);
    return this.#cache.size;
  }

  get #kind() {
    return { dimensions: this.#cache.dimensions };
  }

  /** All or nothing: there is nothing left to refuse once it begins. */
  #compareAndAdd(entries, signal) {
    throwIfAborted(signal);
    if (entries.length === 0) return [];
    const [{ model }] = entries;
    this.#check(model);
    bindModel(this.#cache, model);
    return entries.map(({ id, vectors }) => {
      const comparison = vectors.map((vector) => this.#nearest(vector, 1)[0] ?? null);
      for (const vector of vectors) this.#cache.add(vector, id ?? undefined);
      return comparison;
    });
  }

  #nearest(vector, count) {
    return this.#cache
      .nearest(vector, count)
      .map(({ label, similarity }) => ({ label: label ?? null, similarity }));
  }

  /** The first model is the one that all vectors must be of. */
  #check(model) {
    const held = otherModelIn(this.#cache, model);
    if (held === null) return;
    const message = `the store holds vectors of ${nameOf(held)}, not of ${nameOf(model)}`;
    throw codedError(Error, 'ERR_STORE_OTHER_MODEL', message);
  }
}

/** The model of the vectors in a cache, if they do not compare with those of `model`; otherwise null. */
function otherModelIn(cache, model) {
  const held = cache.size === 0 ? null : cache.model;
  return held === null || isSameModel(held, model) ? null : held;
}

function bindModel(cache, { model, dtype }) {
  fromAddon(() => nativeOf(cache).bindModel(model, dtype));
}

/** Adds entries of one model to a cache, with nothing to compare them with. */
function addEntries(cache, entries) {
  const [{ model }] = entries;
  bindModel(cache, model);
  const labels = entries.flatMap(({ id, vectors }) => Array.from(vectors, () => id ?? undefined));
  cache.addBatch(
    entries.flatMap(({ vectors }) => [...vectors]),
    labels,
  );
}

/** Throws if vectors of a model do not compare with those in a cache. */
function requireModelOf(cache, model) {
  const held = otherModelIn(cache, model);
  if (held === null) return;
  throw codedError(
    Error,
    'ERR_CACHE_OTHER_MODEL',
    `the cache holds vectors of ${nameOf(held)}, which do not compare with those of ${nameOf(model)}: clear it, or use another`,
  );
}

module.exports = { LocalStore, addEntries, requireModelOf };
