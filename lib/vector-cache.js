'use strict';

const { isFloat32Array, isFloat64Array, isSharedArrayBuffer } = require('node:util').types;

const { readOptions, requireNumber } = require('./calls/options.js');
const { BoundedMemory, COUNT, DEFAULTS, OPTIONS, elements, loadMemory } = require('./bounded-memory.js');
const { codedError, errorsOf, fromAddon } = require('./calls/errors.js');
const native = require('./loader.js').addon;
const { describe, readFrom } = require('./calls/reading.js');

/**
 * @import { VectorCacheEntry, VectorCacheOptions } from '../index.js'
 * @import { VectorCache as Public } from '../index.js'
 * @import { NativeVectorCache } from './binding.js'
 */

const invalidVector = errorsOf('ERR_INVALID_VECTOR');

/** @type {(handle: NativeVectorCache) => VectorCache} wraps a native cache in a `VectorCache` */
let adoptNative;
/**
 * Returns the native cache of a `VectorCache`; undefined for other values.
 *
 * @type {(value: unknown) => NativeVectorCache | undefined}
 */
let nativeOf;

/**
 * A bounded first-in-first-out memory of vectors with exact search.
 *
 * @implements {Public}
 */
class VectorCache extends BoundedMemory {
  /** @type {NativeVectorCache} */
  #native;
  #dimensions;

  static {
    adoptNative = (handle) => {
      const cache = new VectorCache({ maxElements: 0 });
      cache.#native = handle;
      cache.#dimensions = handle.bounds.dimensions;
      return cache;
    };
    nativeOf = (value) =>
      typeof value === 'object' && value !== null && #native in value ? value.#native : undefined;
  }

  /** @param {VectorCacheOptions} [options] */
  constructor(options = {}) {
    super(() => this.#native);
    const bounds = { ...DEFAULTS, ...readOptions(options, OPTIONS) };
    this.#dimensions = bounds.dimensions;
    this.#native = new native.NativeVectorCache(bounds);
  }

  /** @type {typeof Public['load']} */
  static async load(file, options = {}) {
    const loaded = await loadMemory(native.NativeVectorCache, file, options, (held, identity) =>
      held.checkOrigin(identity),
    );
    return adoptNative(loaded);
  }

  /** @type {Public['add']} */
  add(vector, label) {
    const checked = toFloatArray(vector, 'vector', this.#dimensions);
    requireLabel(label);
    fromAddon(() => this.#native.add(checked, label));
  }

  /** @type {Public['maxCosineSimilarity']} */
  maxCosineSimilarity(query) {
    const checked = toFloatArray(query, 'query', this.#dimensions);
    return fromAddon(() => this.#native.maxCosineSimilarity(checked));
  }

  /** @type {Public['nearest']} */
  nearest(query, k = 1) {
    const checked = toFloatArray(query, 'query', this.#dimensions);
    const count = requireNumber(k, 'k', COUNT);
    const found = fromAddon(() => this.#native.nearest(checked, count));
    // Copies, so that the array and the objects are of the caller's realm.
    return Array.from(found, ({ label, similarity, index }) => ({ label, similarity, index }));
  }

  /** @returns {IterableIterator<VectorCacheEntry>} */
  [Symbol.iterator]() {
    const [start, end] = this.#native.sequence();
    // A copy, so that the array is of the caller's realm.
    return elements(this.#native, start, end, ({ vector, label }, index) => ({
      ...{ vector: new Float32Array(vector), label: label ?? undefined, index },
    }));
  }

  /** @returns {number} */
  get dimensions() {
    return this.#dimensions;
  }

  /** @returns {string | undefined} */
  get method() {
    return this.#native.method ?? undefined;
  }
}

const TypedArray = Object.getPrototypeOf(Float32Array);
/** @type {PropertyDescriptor} */
const bufferProperty = Object.getOwnPropertyDescriptor(TypedArray.prototype, 'buffer') ?? {};
const bufferOf = /** @type {() => ArrayBufferLike} */ (bufferProperty.get);

/**
 * Returns the typed array for the addon: `value` itself where that is safe, otherwise a copy in double precision. The addon checks
 * lengths and finiteness of typed arrays.
 *
 * @param {unknown} value
 * @param {string} name
 * @param {number} dimensions
 * @returns {Float32Array | Float64Array}
 */
function toFloatArray(value, name, dimensions) {
  if (isFloat32Array(value) || isFloat64Array(value)) {
    // Copies shared memory, which another thread could change meanwhile. The value's own `buffer`, `slice` and constructor are not
    // trusted.
    if (!isSharedArrayBuffer(bufferOf.call(value))) return value;
    return isFloat32Array(value) ? new Float32Array(value) : new Float64Array(value);
  }
  if (value === null || typeof value !== 'object') {
    throw invalidVector(TypeError, `${name} must be an array of numbers, got ${describe(value)}`);
  }
  const length = readFrom(value, 'length', `${name}.length`, 'ERR_INVALID_VECTOR');
  if (typeof length !== 'number') {
    throw invalidVector(TypeError, `${name}.length must be a number, got ${describe(length)}`);
  }
  if (length !== dimensions) {
    throw invalidVector(RangeError, `Expected ${dimensions} dimensions, got ${length}`);
  }
  const copy = allocate(length);
  for (let index = 0; index < length; index++) {
    const component = readFrom(value, index, `${name}[${index}]`, 'ERR_INVALID_VECTOR');
    if (typeof component !== 'number') {
      throw invalidVector(TypeError, `${name}[${index}] must be a number, got ${describe(component)}`);
    }
    copy[index] = component;
  }
  return copy;
}

/** @param {unknown} label */
function requireLabel(label) {
  if (label === undefined || typeof label === 'string') return label;
  throw codedError(TypeError, 'ERR_INVALID_LABEL', `label must be a string, got ${describe(label)}`);
}

/** @param {number} length */
function allocate(length) {
  try {
    return new Float64Array(length);
  } catch (cause) {
    throw codedError(RangeError, 'ERR_OUT_OF_MEMORY', `no room for a vector of ${length} dimensions`, cause);
  }
}

/**
 * @param {unknown} value
 * @returns {value is Public}
 */
function isVectorCache(value) {
  return nativeOf(value) !== undefined;
}

module.exports = {
  VectorCache,
  adoptNative,
  isVectorCache,
  nativeOf,
  toFloatArray,
};
