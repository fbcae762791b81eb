// The sides that search vectors: `ours`, `loop` and `usearch`.

import { cosineSimilarity } from '../../__test__/oracle/score.js';
import { clusteredVector, randomVector } from '../../__test__/support/vectors.js';
import { serve, timeBatches } from './serve.mjs';

const DIMENSIONS = 384;
const QUERIES = 16;
const BATCHES = 4;

/** @typedef {(query: Float32Array) => number} Search returns the greatest similarity */

/** @type {Record<string, (vectors: Float32Array[]) => Search | Promise<Search>>} */
const sides = {
  async ours(vectors) {
    const { VectorCache } = await import('../../index.js');
    const cache = new VectorCache({ maxElements: vectors.length, dimensions: DIMENSIONS });
    for (const vector of vectors) cache.add(vector);
    return (query) => cache.maxCosineSimilarity(query);
  },
  loop: (vectors) => (query) =>
    vectors.reduce((largest, vector) => Math.max(largest, cosineSimilarity(query, vector)), -Infinity),
  async usearch(vectors) {
    const { exactSearch, MetricKind } = await import('usearch');
    // One matrix, as it likes best: an array of rows would be copied at every call.
    const matrix = new Float32Array(vectors.length * DIMENSIONS);
    for (const [row, vector] of vectors.entries()) matrix.set(vector, row * DIMENSIONS);
    // It takes as many threads as it likes.
    return (query) => 1 - exactSearch(matrix, query, DIMENSIONS, 1, MetricKind.Cos, 0).distances[0];
  },
};

/** @type {Search} */
let search;
/** @type {Float32Array[]} */
let queries;

serve({
  async fill({ count }) {
    const vectors = Array.from({ length: count }, (_, seed) => randomVector(seed));
    // Each resembles one of the vectors, as a trace does an earlier one.
    queries = Array.from({ length: QUERIES }, (_, seed) => clusteredVector(seed, count));
    search = await sides[process.argv[2]](vectors);
  },
  answers: () => queries.map((query) => search(query)),
  /** Returns milliseconds for one call. */
  time: ({ milliseconds }) =>
    timeBatches((call) => search(queries[call % QUERIES]), { milliseconds, batches: BATCHES }),
});
