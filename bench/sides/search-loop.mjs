// The loop that one writes in JavaScript. Runs on Node.js and on Bun.

import { serveSearcher } from './searcher.mjs';

await serveSearcher((vectors) => (query) => {
  let largest = -Infinity;
  for (const vector of vectors) largest = Math.max(largest, cosineSimilarity(query, vector));
  return largest;
});

/**
 * @param {Float32Array} a
 * @param {Float32Array} b
 */
function cosineSimilarity(a, b) {
  let dot = 0;
  let normA = 0;
  let normB = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    normA += a[i] * a[i];
    normB += b[i] * b[i];
  }
  return dot / (Math.sqrt(normA) * Math.sqrt(normB));
}
