'use strict';

/** @import { NoveltyEntry } from '../../index.js' */

/**
 * The bytes of an entry's trace as the addon compares them: its words, and after them its embedding if it has one.
 *
 * @param {NoveltyEntry} entry that has words
 * @returns {Uint8Array}
 */
function packed({ words, vectors: [vector] }) {
  const bytes = /** @type {Uint8Array} */ (words);
  return vector === undefined ? bytes : Buffer.concat([bytes, bytesOf(vector)]);
}

/**
 * The bytes of a vector, little-endian as all platforms of the addon are.
 *
 * @param {Float32Array} vector
 */
function bytesOf({ buffer, byteOffset, byteLength }) {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

module.exports = { bytesOf, packed };
