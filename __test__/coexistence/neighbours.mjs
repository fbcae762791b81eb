// Packages that bring an ONNX Runtime, one older and one newer than ours, and how each embeds a sentence with the model that we use.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { npm, prepare } from '../../scripts/setup.mjs';
import { loadPipeline } from '../oracle/pipeline.mjs';
import { modelDirectory, root } from '../support/paths.js';

const folder = path.join(root, '__test__', 'coexistence');
const ID = '@huggingface/transformers';

/** Where each is installed. The lockfiles decide the versions: transformers.js 3 brings ONNX Runtime 1.21, and 4 brings 1.30. */
const places = { 'transformers.js 3': root, 'transformers.js 4': folder };

const isIn = (/** @type {string} */ place) => existsSync(path.join(place, 'node_modules', ID));

/** The names of the neighbours, with whether they are installed. */
export const neighbours = Object.entries(places).map(([name, place]) => ({ name, isThere: isIn(place) }));

/** Installs what is not among the dependencies of the repository: hundreds of megabytes, when first needed. */
export function prepareNeighbours() {
  prepare([
    {
      name: 'neighbours',
      doing: 'installing __test__/coexistence/package-lock.json',
      inputs: ['__test__/coexistence/package-lock.json'],
      stamp: '__test__/coexistence/node_modules/.knowledgepulse-neighbours',
      done: () => isIn(folder),
      run: () => npm(['ci', '--ignore-scripts', '--loglevel=error'], { cwd: folder }),
    },
  ]);
}

const SENTENCE = 'This is an example sentence';

/**
 * Loads a neighbour and its model, and returns a function that gives the embedding of {@link SENTENCE}.
 *
 * @param {keyof typeof places} name
 */
export async function loadNeighbour(name) {
  const transformers = createRequire(path.join(places[name], 'package.json'))(ID);
  const extract = await loadPipeline(transformers, modelDirectory);
  return async () => Array.from((await extract(SENTENCE, { pooling: 'mean', normalize: true })).data);
}
