'use strict';

const { throwIfAborted } = require('./abort.js');
const { codedError } = require('./errors.js');
const { VectorCache, nativeOf } = require('./vector-cache.js');

/** A `VectorCache` as a novelty store. It lives in this process, so all its calls are atomic. */
class LocalStore {
  #cache;
  #model = null;

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
    return (await this.compareAndAddBatch([entry], options))[0];
  }

  async compareAndAddBatch(entries, options) {
    throwIfAborted(options?.signal);
    for (const { model } of entries) this.#check(model);
    // All or nothing: a cache without room checks them all.
    const { dimensions } = this.#cache;
    new VectorCache({ maxElements: 0, dimensions }).addBatch(entries.flatMap(({ vectors }) => [...vectors]));
    return entries.map((entry) => {
      const comparison = Array.from(entry.vectors, (vector) => this.#nearest(vector, 1)[0] ?? null);
      for (const vector of entry.vectors) this.#cache.add(vector, entry.id ?? undefined);
      return comparison;
    });
  }

  async nearest(vector, count, model, options) {
    throwIfAborted(options?.signal);
    this.#check(model);
    return this.#nearest(vector, count);
  }

  async size(options) {
    throwIfAborted(options?.signal);
    return this.#cache.size;
  }

  #nearest(vector, count) {
    return this.#cache
      .nearest(vector, count)
      .map(({ label, similarity }) => ({ label: label ?? null, similarity }));
  }

  /** The first model is the one that all vectors must be of. */
  #check({ model, dtype }) {
    if (this.#cache.size === 0) this.#model = null;
    this.#model ??= this.#cache.model ?? { model, dtype };
    if (this.#model.model !== model || this.#model.dtype !== dtype) {
      const message = `the store holds vectors of ${this.#model.model} (${this.#model.dtype}), not of ${model} (${dtype})`;
      throw codedError(Error, 'ERR_STORE_OTHER_MODEL', message);
    }
  }
}

module.exports = { LocalStore };
