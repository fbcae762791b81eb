// Other packages that bring an ONNX Runtime, one older and one newer than ours, and how each embeds a sentence with the model that
// we use.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { npm, prepare } from '../../scripts/setup.mjs';
import { loadPipeline } from '../oracle/pipeline.mjs';
import { modelDirectory, root } from '../support/paths.js';

/**
 * What is used of an `onnxruntime-node`, of whatever version.
 *
 * @typedef {object} OnnxRuntime
 * @property {{ create(file: string): Promise<Session> }} InferenceSession
 * @property {new (type: string, data: BigInt64Array, dims: number[]) => object} Tensor
 */

/**
 * @typedef {object} Session
 * @property {string[]} inputNames
 * @property {string[]} outputNames
 * @property {(inputs: Record<string, object>) => Promise<Record<string, { data: Float32Array, dims: number[] }>>} run
 */

const folder = path.join('__test__', 'coexistence');
const modules = path.join(folder, 'node_modules');

const repository = createRequire(path.join(root, 'package.json'));
const own = createRequire(path.join(root, folder, 'package.json'));
/**
 * How each is loaded. The lockfiles decide the versions: transformers.js 3 brings ONNX Runtime 1.21, the other is 1.30.
 *
 * @type {Record<string, { require: NodeJS.Require, id: string }>}
 */
export const neighbours = {
  'transformers.js': { require: repository, id: '@huggingface/transformers' },
  'onnxruntime-node': { require: own, id: 'onnxruntime-node' },
};

/** Installs what is not among the dependencies of the repository: hundreds of megabytes, when first needed. */
export function prepareNeighbours() {
  prepare([
    {
      name: 'neighbours',
      doing: `installing ${path.join(folder, 'package-lock.json')}`,
      inputs: [path.join(folder, 'package-lock.json')],
      stamp: path.join(modules, '.knowledgepulse-neighbours'),
      done: () => existsSync(path.join(root, modules, 'onnxruntime-node')),
      run: () => npm(['ci', '--ignore-scripts', '--loglevel=error'], { cwd: path.join(root, folder) }),
    },
  ]);
}

/**
 * Loads a neighbour and its model, and returns a function that gives the embedding of {@link SENTENCE}.
 *
 * @param {string} name
 */
export async function loadNeighbour(name) {
  const { require, id } = neighbours[name];
  return name === 'transformers.js' ? embedByPipeline(require(id)) : embedBySession(require(id));
}

export const SENTENCE = 'This is an example sentence';

/** Its tokens, with `[CLS]` and `[SEP]`. */
const TOKENS = [101, 2023, 2003, 2019, 2742, 6251, 102];

/** @param {typeof import('@huggingface/transformers')} transformers */
async function embedByPipeline(transformers) {
  const extract = await loadPipeline(transformers, modelDirectory);
  return async () => {
    const { data } = await extract(SENTENCE, { pooling: 'mean', normalize: true });
    return Array.from(data);
  };
}

/** @param {OnnxRuntime} runtime */
async function embedBySession({ InferenceSession, Tensor }) {
  const session = await InferenceSession.create(path.join(modelDirectory, 'model.onnx'));
  const tensor = (/** @type {number[]} */ values) =>
    new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
  /** @type {Record<string, object>} */
  const inputs = {
    input_ids: tensor(TOKENS),
    attention_mask: tensor(TOKENS.map(() => 1)),
    token_type_ids: tensor(TOKENS.map(() => 0)),
  };
  return async () => {
    const outputs = await session.run(
      Object.fromEntries(session.inputNames.map((inputName) => [inputName, inputs[inputName]])),
    );
    // A row for each token, whose mean has the direction of their sum.
    const { data, dims } = outputs[session.outputNames[0]];
    const sum = new Float64Array(dims[dims.length - 1]);
    for (const [at, component] of data.entries()) sum[at % sum.length] += component;
    const length = Math.hypot(...sum);
    return Array.from(sum, (component) => component / length);
  };
}
