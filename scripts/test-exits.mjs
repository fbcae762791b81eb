// `npm run test:exits [-- REPETITIONS]`: every way to exit, thirty times each, on Node.js and on Bun. `npm test` does it three
// times.

import { execFileSync } from 'node:child_process';

import { root } from './platform.mjs';
import { runScript, setup } from './setup.mjs';
import { bin } from './test.mjs';

const repetitions = Number(process.argv[2] ?? 30);
const env = { ...process.env, KNOWLEDGEPULSE_TEST_REPETITIONS: String(repetitions) };
const spec = './__test__/exits.spec.js';

await runScript(() => {
  setup();
  const options = { cwd: root, stdio: 'inherit', env };
  execFileSync(process.execPath, ['node_modules/jest/bin/jest.js', spec], options);
  const timeout = String(repetitions * 40_000);
  execFileSync(bin('bun'), ['test', '--timeout', timeout, spec], {
    ...options,
    shell: process.platform === 'win32',
  });
});
