// `npm run test:coexistence`: other packages with an ONNX Runtime of their own, in one process with ours.
//
//   npm run test:coexistence -- --only 'transformers.js 4'     some of the cases, by a regular expression
//   npm run test:coexistence -- --installed                    only those that need no download of hundreds of megabytes

import { prepareNeighbours } from '../__test__/coexistence/neighbours.mjs';
import { runCases } from './run-cases.mjs';
import { runScript, setup } from './setup.mjs';

await runScript(async () => {
  await setup();
  if (!process.argv.includes('--installed')) prepareNeighbours();
  runCases('coexistence/main.mjs');
});
