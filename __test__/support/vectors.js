'use strict';

// Vectors as embeddings are: of 384 numbers and length 1. The same seed gives the same one, in every process.

const DIMENSIONS = 384;

function randomVector(seed) {
  let state = Math.imul(seed + 1, 0x9e3779b1);
  const vector = Float32Array.from({ length: DIMENSIONS }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32 - 0.5;
  });
  return unit(vector);
}

/** One of a kind: those of the same of `kinds` resemble one another, as traces of a task do. */
function clusteredVector(seed, kinds = 100) {
  const noise = randomVector(1_000_000 + seed);
  return unit(randomVector(seed % kinds).map((component, index) => component + noise[index] * 0.8));
}

function unit(vector) {
  const length = Math.hypot(...vector);
  return vector.map((component) => component / length);
}

module.exports = { clusteredVector, randomVector, unit };
