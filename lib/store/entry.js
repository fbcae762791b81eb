'use strict';

// Reads the arguments of a store once, and checks all of them before anything is stored.

const { isFloat32Array, isUint8Array } = require('node:util').types;

const { codedError, errorsOf } = require('../calls/errors.js');
const { isArray, readFrom, readLength } = require('../calls/reading.js');

/** @import { NoveltyEntry, VectorModel } from '../../index.js' */

/** @typedef {{ model: VectorModel | null, method?: string }} Origin of vectors; vectors of different origins cannot be compared */

const invalidEntry = errorsOf('ERR_INVALID_ENTRY');
const invalidVector = errorsOf('ERR_INVALID_VECTOR');

/** The longest id, in bytes of UTF-8. */
const MAX_ID_BYTES = 1024;

/** The tolerance of a vector's length 1; rounding to single precision stays below it. */
const LENGTH_TOLERANCE = 1e-5;

/** The bytes of a word: eight of its hash, two of its count. */
const WORD_BYTES = 10;

const MOST_WORDS = 480;

/**
 * The requirements of an entry: the `dimensions` of its vectors, and length 1 if `isUnit`. With a `method`, entries have words, and a vector
 * only with `full`.
 *
 * @typedef {{ dimensions: number, isUnit?: boolean, method?: 'lexical' | 'full' }} Kind
 */

/**
 * @param {unknown} entry
 * @param {string} path
 * @param {Kind} kind
 * @returns {NoveltyEntry}
 */
function readEntry(entry, path, { dimensions, isUnit = false, method: expected }) {
  if (entry === null || typeof entry !== 'object') {
    throw invalidEntry(TypeError, `${path} must be an object`);
  }
  /** @type {(object: object, key: PropertyKey, where: string) => unknown} */
  const read = (object, key, where) => readFrom(object, key, where, 'ERR_INVALID_ENTRY');
  const id = read(entry, 'id', `${path}.id`);
  if (id !== null && typeof id !== 'string') {
    throw invalidEntry(TypeError, `${path}.id must be a string or null`);
  }
  if (id !== null && Buffer.byteLength(id) > MAX_ID_BYTES) {
    const message = `${path}.id must be of at most ${MAX_ID_BYTES} bytes, got ${Buffer.byteLength(id)}`;
    throw invalidEntry(RangeError, message);
  }
  const vectors = read(entry, 'vectors', `${path}.vectors`);
  const count = isArray(vectors) ? readLength(vectors, `${path}.vectors`, 'ERR_INVALID_ENTRY') : -1;
  const isFitting = expected === undefined ? count > 0 : count === (expected === 'full' ? 1 : 0);
  if (!isArray(vectors) || !isFitting) {
    const wanted = { undefined: 'of at least one', full: 'of one vector', lexical: 'without a vector' };
    throw invalidEntry(TypeError, `${path}.vectors must be an array ${wanted[`${expected}`]}`);
  }
  const method = readMethod(read(entry, 'method', `${path}.method`), `${path}.method`, 'ERR_INVALID_ENTRY');
  const model = read(entry, 'model', `${path}.model`);
  const copy = {
    id,
    vectors: Array.from({ length: count }, (_, index) => {
      const where = `${path}.vectors[${index}]`;
      const { vector, length } = readVector(read(vectors, index, where), where, dimensions);
      if (isUnit && Math.abs(length - 1) > LENGTH_TOLERANCE) {
        throw invalidVector(RangeError, `${where} must have length 1, got ${length}`);
      }
      return vector;
    }),
    // Words have no model.
    model: expected === 'lexical' ? null : readModel(model, `${path}.model`),
    method,
  };
  if (expected === undefined) return copy;
  if (method !== undefined && method !== expected) {
    const message = `${path} is of novelty '${method}', and the store of novelty '${expected}'`;
    throw codedError(Error, 'ERR_STORE_OTHER_METHOD', message);
  }
  return { ...copy, words: readWords(read(entry, 'words', `${path}.words`), `${path}.words`) };
}

/**
 * @param {unknown} value
 * @param {string} path
 */
function readWords(value, path) {
  if (!isUint8Array(value)) throw invalidEntry(TypeError, `${path} must be a Uint8Array`);
  const words = new Uint8Array(value);
  const { length } = words;
  if (length % WORD_BYTES !== 0 || length > MOST_WORDS * WORD_BYTES) {
    const message = `${path} must have ${WORD_BYTES} bytes for each of at most ${MOST_WORDS} words, got ${length}`;
    throw invalidEntry(RangeError, message);
  }
  const view = new DataView(words.buffer);
  let last = -1n;
  for (let at = 0; at < length; at += WORD_BYTES) {
    const hash = view.getBigUint64(at, true);
    if (hash <= last) throw invalidEntry(RangeError, `${path} must be in the order of their hashes`);
    last = hash;
  }
  return words;
}

/**
 * Checks and copies entries, which must have one model and, where known, one method.
 *
 * @param {unknown} entries
 * @param {Kind} kind
 */
function readEntries(entries, kind) {
  if (!isArray(entries)) throw invalidEntry(TypeError, 'entries must be an array');
  const length = readLength(entries, 'entries', 'ERR_INVALID_ENTRY');
  const read = Array.from({ length }, (_, index) => {
    const path = `entries[${index}]`;
    return readEntry(readFrom(entries, index, path, 'ERR_INVALID_ENTRY'), path, kind);
  });
  const { model: expected, method: expectedMethod } = originOf(read);
  for (const [index, { model, method }] of read.entries()) {
    if (model?.model !== expected?.model || model?.dtype !== expected?.dtype) {
      const message = `entries[${index}] is of another model than entries[0]: of ${nameOf(model)}, not of ${nameOf(expected)}`;
      throw codedError(Error, 'ERR_STORE_OTHER_MODEL', message);
    }
    if (method !== undefined && method !== expectedMethod) {
      const message = `entries[${index}] is of another method than those before: of '${method}', not of '${expectedMethod}'`;
      throw codedError(Error, 'ERR_STORE_OTHER_METHOD', message);
    }
  }
  return read;
}

/**
 * Returns the origin of the vectors of entries of one call: their model, and their method if one entry names it.
 *
 * @param {readonly NoveltyEntry[]} entries not empty
 * @returns {Origin}
 */
function originOf(entries) {
  return {
    model: entries[0]?.model,
    method: entries.find(({ method }) => method !== undefined)?.method,
  };
}

/**
 * Checks and copies a vector; returns it with its Euclidean length.
 *
 * @param {unknown} value
 * @param {string} path
 * @param {number} dimensions
 */
function readVector(value, path, dimensions) {
  if (!isFloat32Array(value)) throw invalidVector(TypeError, `${path} must be a Float32Array`);
  const vector = new Float32Array(value);
  if (vector.length !== dimensions) {
    throw invalidVector(RangeError, `${path} must have ${dimensions} dimensions, got ${vector.length}`);
  }
  let sum = 0;
  for (const component of vector) sum += component * component;
  if (!Number.isFinite(sum)) throw invalidVector(RangeError, `${path} must have finite components`);
  return { vector, length: Math.sqrt(sum) };
}

/**
 * @param {unknown} identity
 * @param {string} path
 * @returns {VectorModel}
 */
function readModel(identity, path) {
  if (identity === null || typeof identity !== 'object') {
    throw invalidEntry(TypeError, `${path} must be an object`);
  }
  const read = (/** @type {string} */ key) => {
    const value = readFrom(identity, key, `${path}.${key}`, 'ERR_INVALID_ENTRY');
    return requireName(value, `${path}.${key}`, 'ERR_INVALID_ENTRY');
  };
  return { model: read('model'), dtype: read('dtype') };
}

/**
 * Checks the name of a method; undefined if unknown.
 *
 * @param {unknown} method
 * @param {string} path
 * @param {import('../calls/errors.js').Code} code of the error
 */
function readMethod(method, path, code) {
  return method === undefined || method === null ? undefined : requireName(method, path, code);
}

/** The longest name of a model or method in bytes of UTF-8, because the header of a file contains it. */
const MAX_NAME_BYTES = 1024;

/**
 * @param {unknown} value
 * @param {string} path
 * @param {import('../calls/errors.js').Code} code
 */
function requireName(value, path, code) {
  if (typeof value !== 'string') throw codedError(TypeError, code, `${path} must be a string`);
  if (Buffer.byteLength(value) > MAX_NAME_BYTES) {
    throw codedError(RangeError, code, `${path} must be of at most ${MAX_NAME_BYTES} bytes`);
  }
  return value;
}

/** @param {VectorModel | null} identity */
function nameOf(identity) {
  return identity === null ? 'no model' : `${identity.model} (${identity.dtype})`;
}

module.exports = { originOf, readEntries, readEntry, readMethod, readModel, readVector };
