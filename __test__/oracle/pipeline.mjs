import path from 'node:path';

/**
 * The pipeline that the SDK embeds with, offline.
 *
 * @param {typeof import('@huggingface/transformers')} transformers
 * @param {string} directory a model package
 */
export function loadPipeline({ env, pipeline }, directory) {
  env.allowRemoteModels = false;
  env.localModelPath = path.dirname(directory);
  // The model package has its files side by side, not in an `onnx` folder.
  return pipeline('feature-extraction', path.basename(directory), { dtype: 'fp32', subfolder: '' });
}
