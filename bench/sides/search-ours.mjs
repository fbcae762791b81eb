// This package's `VectorCache`.

import { VectorCache } from '../../index.js';
import { DIMENSIONS } from '../workload.mjs';
import { serveSearcher } from './searcher.mjs';

await serveSearcher((vectors) => {
  const cache = new VectorCache({ maxElements: vectors.length, dimensions: DIMENSIONS });
  for (const vector of vectors) cache.add(vector);
  return (query) => cache.maxCosineSimilarity(query);
});
