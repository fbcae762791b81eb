'use strict';

// A memory of this process with the methods of a store, for a fallback.

const { fromAddon } = require('../calls/errors.js');
const { isTraceMemory, nativeOfTraces } = require('../trace-memory.js');
const { nativeOf } = require('../vector-cache.js');

/**
 * @import { TraceMemory, VectorCache, VectorModel } from '../../index.js'
 * @import { NativeTraceMemory, NativeVectorCache } from '../binding.js'
 * @import { Entry, Neighbour, Store } from './calls.js'
 */

/** @implements {Pick<Store, 'compare' | 'compareAndAdd'>} */
class LocalMemory {
  #cache;
  #traces;

  /** @param {VectorCache | TraceMemory} memory */
  constructor(memory) {
    this.#cache = isTraceMemory(memory) ? undefined : nativeOf(memory);
    this.#traces = nativeOfTraces(memory);
  }

  /** @type {Store['compareAndAdd']} */
  async compareAndAdd(entries) {
    const model = entries[0].model ?? undefined;
    const traces = this.#traces;
    if (traces !== undefined) {
      const named = entries.map((entry) => ({ trace: packed(entry), label: entry.id ?? undefined }));
      return copies(await fromAddon(() => traces.compareAndAddPacked(named, model)));
    }
    const cache = /** @type {NativeVectorCache} */ (this.#cache);
    const named = entries.map(({ id }) => ({ label: id ?? undefined, vectors: 1 }));
    const vectors = Float32Array.from(
      entries.flatMap(({ vector }) => [.../** @type {Float32Array} */ (vector)]),
    );
    const identity = /** @type {VectorModel} */ (model);
    const found = await fromAddon(() => cache.compareAndAdd(vectors, named, identity, 'prefix'));
    return copies(found.flat());
  }

  /** @type {Store['compare']} */
  async compare(entry) {
    const model = entry.model ?? undefined;
    const traces = this.#traces;
    if (traces !== undefined) {
      const [nearest = null] = await fromAddon(() =>
        traces.nearestPacked({ trace: packed(entry) }, 1, model),
      );
      return copy(nearest);
    }
    const cache = /** @type {NativeVectorCache} */ (this.#cache);
    const vector = /** @type {Float32Array} */ (entry.vector);
    const identity = /** @type {VectorModel} */ (model);
    const [nearest = null] = await fromAddon(() => cache.lookUp(vector, 1, identity, 'prefix'));
    return copy(nearest);
  }
}

/** @param {Array<Parameters<typeof copy>[0]>} found */
const copies = (found) => Array.from(found, copy);

/**
 * Copies a neighbour, so that the object is of the caller's realm.
 *
 * @param {{ label?: string | null, similarity: number, lexical?: number | null, contained?: number | null, embedded?: number | null } | null} found
 * @returns {Neighbour | null}
 */
function copy(found) {
  if (found === null) return null;
  const { label = null, similarity, lexical = null, contained = null, embedded = null } = found;
  return { label, similarity, lexical, contained, embedded };
}

/**
 * Returns the bytes of an entry with words for the addon: its words, then its embedding if it has one. All platforms of the addon are
 * little-endian.
 *
 * @param {Entry} entry
 * @returns {Uint8Array}
 */
function packed({ words, vector }) {
  const bytes = /** @type {Uint8Array} */ (words);
  if (vector === null) return bytes;
  return Buffer.concat([bytes, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)]);
}

module.exports = { LocalMemory, copy, packed };
