// `npm run test:company`: other packages with an ONNX Runtime of their own, in one process with ours.
//
//   npm run test:company -- --only 'transformers.js 4'     some of the cases, by a regular expression

import { prepareNeighbours } from '../__test__/company/neighbours.mjs';
import { runCases } from './run-cases.mjs';
import { runScript, setup } from './setup.mjs';

await runScript(() => {
  setup();
  prepareNeighbours();
  runCases('company/main.mjs');
});
