'use strict';

const { isFloat32Array, isFloat64Array, isSharedArrayBuffer } = require('node:util').types;

const { codedError, localError } = require('./errors.js');
const native = require('./loader.js').addon;
const { isArray, readFrom } = require('./reading.js');

const DEFAULT_MAX_ELEMENTS = 1000;
const DEFAULT_DIMENSIONS = 384;

/** A `VectorCache` of the default dimensions around an existing native one. */
let adoptNative;
/** The native one of a `VectorCache`; undefined for anything else. */
let nativeOf;

class VectorCache {
  #native;
  #dimensions;

  static {
    adoptNative = (handle) => {
      const cache = new VectorCache({ maxElements: 0 });
      cache.#native = handle;
      return cache;
    };
    nativeOf = (value) =>
      typeof value === 'object' && value !== null && #native in value ? value.#native : undefined;
  }

  constructor(options = {}) {
    const { maxElements, dimensions, ttlMs } = readOptions(options);
    this.#dimensions = dimensions;
    this.#native = new native.NativeVectorCache(maxElements, dimensions, ttlMs);
  }

  add(vector) {
    const checked = toFloatArray(vector, 'vector', this.#dimensions);
    try {
      this.#native.add(checked);
    } catch (error) {
      throw localError(error);
    }
  }

  maxCosineSimilarity(query) {
    const checked = toFloatArray(query, 'query', this.#dimensions);
    try {
      return this.#native.maxCosineSimilarity(checked);
    } catch (error) {
      throw localError(error);
    }
  }

  get dimensions() {
    return this.#dimensions;
  }

  get size() {
    return this.#native.size;
  }

  evictExpired() {
    this.#native.evictExpired();
  }

  clear() {
    this.#native.clear();
  }
}

function readOptions(options) {
  if (options === null || typeof options !== 'object' || isArray(options)) {
    throw invalidOption(TypeError, 'options', 'an object', options);
  }
  return {
    maxElements: readInteger(options, 'maxElements', DEFAULT_MAX_ELEMENTS, 0),
    dimensions: readInteger(options, 'dimensions', DEFAULT_DIMENSIONS, 1),
    ttlMs: readDuration(options, 'ttlMs'),
  };
}

function readInteger(options, name, fallback, minimum) {
  const value = readNumber(options, name) ?? fallback;
  if (!Number.isSafeInteger(value) || value < minimum) {
    throw invalidOption(RangeError, `options.${name}`, `a safe integer of at least ${minimum}`, value);
  }
  return value;
}

function readDuration(options, name) {
  const value = readNumber(options, name) ?? Number.POSITIVE_INFINITY;
  // NaN fails every comparison.
  if (!(value >= 0)) throw invalidOption(RangeError, `options.${name}`, 'a non-negative number', value);
  return value;
}

function readNumber(options, name) {
  const path = `options.${name}`;
  const value = readFrom(options, name, path, 'ERR_INVALID_OPTION');
  if (value !== undefined && typeof value !== 'number') {
    throw invalidOption(TypeError, path, 'a number', value);
  }
  return value;
}

function invalidOption(Class, path, expected, found) {
  return codedError(Class, 'ERR_INVALID_OPTION', `${path} must be ${expected}, got ${describe(found)}`);
}

const TypedArray = Object.getPrototypeOf(Float32Array);
const bufferOf = Object.getOwnPropertyDescriptor(TypedArray.prototype, 'buffer').get;

/**
 * The typed array that the addon reads: `value` itself where that is safe, otherwise a copy in double
 * precision. Lengths and finiteness of typed arrays are checked by the addon.
 */
function toFloatArray(value, name, dimensions) {
  if (isFloat32Array(value) || isFloat64Array(value)) {
    // Another thread could change shared memory while the addon reads it. The value's own `buffer`, `slice`
    // and constructor are not to be trusted.
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

function allocate(length) {
  try {
    return new Float64Array(length);
  } catch (cause) {
    throw codedError(RangeError, 'ERR_OUT_OF_MEMORY', `no room for a vector of ${length} dimensions`, cause);
  }
}

function invalidVector(Class, message) {
  return codedError(Class, 'ERR_INVALID_VECTOR', message);
}

function describe(value) {
  if (value === null) return 'null';
  if (isArray(value)) return 'array';
  return typeof value === 'number' ? String(value) : typeof value;
}

module.exports = { VectorCache, adoptNative, nativeOf };
