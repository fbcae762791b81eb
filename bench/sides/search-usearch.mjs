// usearch's exact search, on as many threads as the environment says; 0 leaves it to usearch.

import { exactSearch, MetricKind } from 'usearch';

import { DIMENSIONS } from '../workload.mjs';
import { serveSearcher } from './searcher.mjs';

const threads = Number(process.env.USEARCH_THREADS ?? 0);

await serveSearcher((vectors) => {
  // One matrix, as it likes best: an array of rows would be copied at every call.
  const matrix = new Float32Array(vectors.length * DIMENSIONS);
  for (const [row, vector] of vectors.entries()) matrix.set(vector, row * DIMENSIONS);
  return (query) => 1 - exactSearch(matrix, query, DIMENSIONS, 1, MetricKind.Cos, threads).distances[0];
});
