// The sides that search vectors: `ours`, `loop`, `usearch` and `usearch-1`, which has one thread.

import { cosineSimilarity } from '../../__test__/oracle/score.js';
import { DIMENSIONS, makeQueries, makeVectors } from '../workload.mjs';
import { serve, timeBatches } from './serve.mjs';

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
  usearch: (vectors) => usearch(vectors, 0),
  'usearch-1': (vectors) => usearch(vectors, 1),
};

/**
 * @param {Float32Array[]} vectors
 * @param {number} threads 0 leaves it to usearch
 * @returns {Promise<Search>}
 */
async function usearch(vectors, threads) {
  const { exactSearch, MetricKind } = await import('usearch');
  // One matrix, as it likes best: an array of rows would be copied at every call.
  const matrix = new Float32Array(vectors.length * DIMENSIONS);
  for (const [row, vector] of vectors.entries()) matrix.set(vector, row * DIMENSIONS);
  return (query) => 1 - exactSearch(matrix, query, DIMENSIONS, 1, MetricKind.Cos, threads).distances[0];
}

/** @type {Search} */
let search;
/** @type {Float32Array[]} */
let queries;

await serve({
  async fill({ count }) {
    const vectors = [...makeVectors(count)];
    queries = makeQueries(vectors, QUERIES);
    search = await sides[process.argv[2]](vectors);
  },
  answers: () => queries.map((query) => search(query)),
  /** Returns milliseconds for one call. */
  time: ({ milliseconds }) =>
    timeBatches((call) => search(queries[call % QUERIES]), { milliseconds, batches: BATCHES }),
});
