// The tasks for every side that searches vectors.

import { makeQueries, makeVectors } from '../workload.mjs';
import { serve } from './serve.mjs';

const QUERIES = 16;
const BATCHES = 4;

/**
 * @param {(vectors: Float32Array[]) => (query: Float32Array) => number} build makes the search for the most
 * similar of the vectors: its similarity
 */
export function serveSearcher(build) {
  /** @type {(query: Float32Array) => number} */
  let search;
  /** @type {Float32Array[]} */
  let queries;
  return serve({
    fill({ count }) {
      const vectors = [...makeVectors(count)];
      queries = makeQueries(vectors, QUERIES);
      search = build(vectors);
    },

    /** The answers, to be compared with the other sides'. */
    answers: () => queries.map((query) => search(query)),

    /** Milliseconds for one call, in batches of `milliseconds` each. */
    time({ milliseconds }) {
      const calls = Math.max(1, Math.round(milliseconds / timeCalls(1)));
      return Array.from({ length: BATCHES }, () => timeCalls(calls));
    },
  });

  /** @param {number} calls */
  function timeCalls(calls) {
    // The sum keeps the calls from being optimised away.
    let sum = 0;
    const start = performance.now();
    for (let call = 0; call < calls; call++) sum += search(queries[call % QUERIES]);
    const elapsed = performance.now() - start;
    if (Number.isNaN(sum)) throw new Error('a similarity is no number');
    return elapsed / calls;
  }
}
