// `npm run test:exits [-- REPETITIONS]`: every way to exit, thirty times each, on Node.js and on Bun. `npm test` does it three
// times.

import jest from '../jest.config.js';
import { runScript, setup } from './setup.mjs';
import { onBun, onNode, runSuites } from './suites.mjs';

const repetitions = Number(process.argv[2] ?? 30);
const spec = './__test__/exits.spec.js';

await runScript(async () => {
  await setup();
  const env = { KNOWLEDGEPULSE_TEST_REPETITIONS: String(repetitions) };
  const suites = [onNode([spec]), onBun([spec], Math.max(Number(jest.testTimeout), repetitions * 40_000))];
  await runSuites(suites.map((suite) => ({ ...suite, env })));
});
