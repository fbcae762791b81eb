// The alternative to this package: transformers.js on the main thread, with its default session options, and the arithmetic
// in JavaScript.

import { createRequire } from 'node:module';

import { loadPipeline } from '../../__test__/oracle/pipeline.mjs';
import { OracleScorer, textOf } from '../../__test__/oracle/score.js';
import { modelDirectory } from '../../__test__/support/paths.js';
import { serveScorer } from './scorer.mjs';

/** @type {import('@huggingface/transformers').FeatureExtractionPipeline} */
let extract;
let scorer = new OracleScorer();

/** @param {import('../../index.js').ReasoningTrace} trace */
async function evaluate(trace) {
  const { data } = await extract(textOf(trace), { pooling: 'mean', normalize: true });
  return scorer.evaluate(trace, Float32Array.from(data));
}

await serveScorer({
  async load() {
    extract = await loadPipeline(await import('@huggingface/transformers'), modelDirectory);
  },
  async about() {
    const packageOf = createRequire(createRequire(import.meta.url).resolve('@huggingface/transformers'));
    return { runtimeVersion: packageOf('onnxruntime-node/package.json').version };
  },
  evaluate,
  async evaluateAll(traces) {
    const scores = [];
    for (const trace of traces) scores.push(await evaluate(trace));
    return scores;
  },
  clear() {
    scorer = new OracleScorer();
  },
});
