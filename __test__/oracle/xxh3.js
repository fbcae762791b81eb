'use strict';

// XXH3, 64 bits and seed 0, of 32 bytes: of the algorithm what such an input takes
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).

const MASK = (1n << 64n) - 1n;
const PRIME = 0x9e3779b185ebca87n;
const PRIME_OF_AVALANCHE = 0x165667919e3779f9n;
/** The first 32 bytes of the default secret, eight at a time. */
const SECRET = [0xbe4ba423396cfeb8n, 0x1cad21f72c81017cn, 0xdb979083e96dd4den, 0x1f67b3b7a4a44072n];

function fold(a, b) {
  const product = a * b;
  return (product & MASK) ^ (product >> 64n);
}

/** The hash of 32 bytes, a BigInt. */
function xxh3(bytes) {
  if (bytes.length !== 32) throw new RangeError(`expected 32 bytes, got ${bytes.length}`);
  const words = SECRET.map((secret, index) => Buffer.from(bytes).readBigUInt64LE(8 * index) ^ secret);
  let hash = (32n * PRIME + fold(words[0], words[1]) + fold(words[2], words[3])) & MASK;
  hash ^= hash >> 37n;
  hash = (hash * PRIME_OF_AVALANCHE) & MASK;
  return hash ^ (hash >> 32n);
}

module.exports = { xxh3 };
