'use strict';

/** @import { NoveltyEntry } from '../../index.js' */

/**
 * Returns the bytes of an entry for the addon: its words, then its embedding if it has one.
 *
 * @param {NoveltyEntry} entry that has words
 * @returns {Uint8Array}
 */
function packed({ words, vectors: [vector] }) {
  const bytes = /** @type {Uint8Array} */ (words);
  return vector === undefined ? bytes : Buffer.concat([bytes, bytesOf(vector)]);
}

/**
 * Returns the bytes of a vector. All platforms of the addon are little-endian.
 *
 * @param {Float32Array} vector
 */
function bytesOf({ buffer, byteOffset, byteLength }) {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

module.exports = { bytesOf, packed };
