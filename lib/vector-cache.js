'use strict';

const { isFloat32Array, isFloat64Array, isSharedArrayBuffer } = require('node:util').types;

const { inRange, readCount, readObject, readOptions } = require('./calls/options.js');
const { attempt, codedError, fromAddon } = require('./calls/errors.js');
const native = require('./loader.js').addon;
const { readFrom, wrongType } = require('./calls/reading.js');

/** @import { VectorCache as Public } from '../index.js' */

/** The length of an embedding of all-MiniLM-L6-v2. The addon refuses models of another length. */
const DIMENSIONS = 384;

const DEFAULTS = { maxElements: 1000, dimensions: DIMENSIONS, ttlMs: Number.POSITIVE_INFINITY };

const OPTIONS = {
  maxElements: readCount,
  dimensions: inRange({ from: 1, whole: true }),
  ttlMs: inRange({ from: 0 }),
};

/**
 * Reads the options of a cache. As in the SDK, unknown ones are ignored, and null is no `ttlMs`.
 *
 * @param {unknown} options
 */
function readBounds(options) {
  const given = readObject(options, 'options');
  const read = (/** @type {string} */ name) => readFrom(given, name, `options.${name}`, 'ERR_INVALID_OPTION');
  const known = Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, read(name)]));
  return readOptions({ ...known, ttlMs: known.ttlMs ?? undefined }, OPTIONS);
}

/**
 * A bounded first-in-first-out memory of vectors, as the SDK has it.
 *
 * @implements {Public}
 */
class VectorCache {
  /** @type {import('./binding.js').NativeVectorCache} */
  #native;
  #dimensions;

  /** @param {ConstructorParameters<typeof Public>[0]} [options] within this package also the native cache itself */
  constructor(options = {}) {
    const isNative = attempt(() => Object(options) instanceof native.NativeVectorCache, false);
    const bounds = { ...DEFAULTS, ...(isNative ? {} : readBounds(options)) };
    this.#dimensions = bounds.dimensions;
    this.#native = isNative ? /** @type {any} */ (options) : new native.NativeVectorCache(bounds);
  }

  /** @type {Public['add']} */
  add(vector) {
    const checked = toFloatArray(vector, 'vector', this.#dimensions);
    fromAddon(() => this.#native.add(checked));
  }

  /** @type {Public['maxCosineSimilarity']} */
  maxCosineSimilarity(query) {
    const checked = toFloatArray(query, 'query', this.#dimensions);
    return fromAddon(() => this.#native.maxCosineSimilarity(checked));
  }

  get size() {
    return this.#native.size;
  }

  /** @type {Public['evictExpired']} */
  evictExpired() {
    this.#native.evictExpired();
  }

  /** @type {Public['clear']} */
  clear() {
    this.#native.clear();
  }
}

const TypedArray = Object.getPrototypeOf(Float32Array);
/** @type {any} the getter of the buffer, which a value's own property cannot replace */
const { get: bufferOf } = Object.getOwnPropertyDescriptor(TypedArray.prototype, 'buffer') ?? {};

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
  // Shared memory is copied, because another thread could change it meanwhile.
  if ((isFloat32Array(value) || isFloat64Array(value)) && !isSharedArrayBuffer(bufferOf.call(value)))
    return value;
  const code = 'ERR_INVALID_INPUT';
  if (value === null || typeof value !== 'object') throw wrongType(code, name, 'an array of numbers', value);
  const length = readFrom(value, 'length', `${name}.length`, code);
  if (typeof length !== 'number') throw wrongType(code, `${name}.length`, 'a number', length);
  if (length !== dimensions)
    throw codedError(RangeError, code, `Expected ${dimensions} dimensions, got ${length}`);
  const copy = attempt(() => new Float64Array(length), undefined);
  if (copy === undefined) {
    throw codedError(RangeError, 'ERR_OUT_OF_MEMORY', `no room for a vector of ${length} dimensions`);
  }
  for (let index = 0; index < length; index++) {
    const component = readFrom(value, index, `${name}[${index}]`, code);
    if (typeof component !== 'number') throw wrongType(code, `${name}[${index}]`, 'a number', component);
    copy[index] = component;
  }
  return copy;
}

const localCache = new VectorCache(/** @type {any} */ (native.localCache()));

/** @type {typeof import('../index.js')._getLocalCache} */
function _getLocalCache() {
  return localCache;
}

module.exports = { DEFAULTS, DIMENSIONS, OPTIONS, VectorCache, _getLocalCache };
