import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Returns the embedding of a trace's digest, which a memory with the method `full` compares.
 *
 * @param {import('../index.js').ReasoningTrace} trace
 * @returns {Promise<Float32Array>}
 */
export async function digestOf(trace) {
  const { ensureConfigured } = require('../lib/embedder.js');
  const { addon } = require('../lib/loader.js');
  ensureConfigured();
  const bounds = { maxElements: 0, dimensions: 384, ttlMs: Number.POSITIVE_INFINITY };
  const scorer = new addon.NativeScorer([], new addon.NativeTraceMemory('full', bounds));
  const { vector } = await scorer.embed(trace);
  if (vector === null) throw new Error('there is no embedder');
  return vector;
}
