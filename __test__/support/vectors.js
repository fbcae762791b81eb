'use strict';

// Vectors as embeddings are: of 384 numbers and length 1. The same seed gives the same one, in every process.

const { random } = require('./random.js');

const DIMENSIONS = 384;

/** @param {number} seed */
function randomVector(seed) {
  const next = random(seed);
  return unit(Float32Array.from({ length: DIMENSIONS }, () => next() - 0.5));
}

/** One of a kind: those of the same of `kinds` resemble one another, as traces of a task do. @param {number} seed */
function clusteredVector(seed, kinds = 100) {
  const noise = randomVector(1_000_000 + seed);
  return unit(randomVector(seed % kinds).map((component, index) => component + noise[index] * 0.8));
}

/** @param {Float32Array} vector */
function unit(vector) {
  const length = Math.hypot(...vector);
  return vector.map((component) => component / length);
}

module.exports = { clusteredVector, randomVector, unit };
