'use strict';

// What a store is given, read once and checked before anything is stored.

const { isFloat32Array } = require('node:util').types;

const { codedError } = require('./errors.js');
const { isArray, readFrom, readLength } = require('./reading.js');

/** The longest id, in bytes of UTF-8. */
const MAX_ID_BYTES = 1024;

/** How much the length of a vector may differ from 1: in single precision a computed one does, by less. */
const LENGTH_TOLERANCE = 1e-5;

/**
 * What the vectors of an entry must be: of so many `dimensions`, and if `isUnit`, of length 1.
 *
 * @typedef {{ dimensions: number, isUnit?: boolean }} Kind
 */

/**
 * A copy of an entry.
 *
 * @param {Kind} kind
 * @returns {import('..').NoveltyEntry}
 */
function readEntry(entry, path, { dimensions, isUnit = false }) {
  if (entry === null || typeof entry !== 'object') {
    throw invalidEntry(TypeError, `${path} must be an object`);
  }
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
  const count = isArray(vectors) ? readLength(vectors, `${path}.vectors`, 'ERR_INVALID_ENTRY') : 0;
  if (count === 0) {
    throw invalidEntry(TypeError, `${path}.vectors must be an array of at least one`);
  }
  return {
    id,
    vectors: Array.from({ length: count }, (_, index) => {
      const where = `${path}.vectors[${index}]`;
      const { vector, length } = readVector(read(vectors, index, where), where, dimensions);
      if (isUnit && Math.abs(length - 1) > LENGTH_TOLERANCE) {
        throw invalidVector(RangeError, `${where} must have length 1, got ${length}`);
      }
      return vector;
    }),
    model: readModel(read(entry, 'model', `${path}.model`), `${path}.model`),
  };
}

/**
 * Copies of entries, which are all of one model.
 *
 * @param {Kind} kind
 */
function readEntries(entries, kind) {
  if (!isArray(entries)) throw invalidEntry(TypeError, 'entries must be an array');
  const length = readLength(entries, 'entries', 'ERR_INVALID_ENTRY');
  const read = Array.from({ length }, (_, index) => {
    const path = `entries[${index}]`;
    return readEntry(readFrom(entries, index, path, 'ERR_INVALID_ENTRY'), path, kind);
  });
  for (const [index, { model }] of read.entries()) {
    const first = read[0].model;
    if (isSameModel(model, first)) continue;
    const message = `entries[${index}] is of another model than entries[0]: of ${nameOf(model)}, not of ${nameOf(first)}`;
    throw codedError(Error, 'ERR_STORE_OTHER_MODEL', message);
  }
  return read;
}

/** A copy of a vector, and its Euclidean length. */
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

/** @returns {import('..').VectorModel} */
function readModel(identity, path) {
  if (identity === null || typeof identity !== 'object') {
    throw invalidEntry(TypeError, `${path} must be an object`);
  }
  const read = (key) => {
    const value = readFrom(identity, key, `${path}.${key}`, 'ERR_INVALID_ENTRY');
    if (typeof value !== 'string') throw invalidEntry(TypeError, `${path}.${key} must be a string`);
    return value;
  };
  return { model: read('model'), dtype: read('dtype') };
}

function isSameModel(one, other) {
  return one.model === other.model && one.dtype === other.dtype;
}

function nameOf({ model, dtype }) {
  return `${model} (${dtype})`;
}

function invalidEntry(Class, message) {
  return codedError(Class, 'ERR_INVALID_ENTRY', message);
}

function invalidVector(Class, message) {
  return codedError(Class, 'ERR_INVALID_VECTOR', message);
}

module.exports = { isSameModel, nameOf, readEntries, readEntry, readModel, readVector };
