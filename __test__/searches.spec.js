'use strict';

// The programs that search for faults, each for a moment. `npm run test:all` runs them at length.

const path = require('node:path');

const { run } = require('./support/run-script.js');

test.each([
  ['20,000 hostile calls leave the process intact', ['fuzz/hostile.mjs', '--calls', '20000']],
  ['3,000 evaluations from eight workers and the main thread at once', ['load/run.mjs', '--calls', '3000']],
])('%s', async (_, [program, ...args]) => {
  const { code, stdout, stderr } = await run(process.execPath, [path.join(__dirname, program), ...args]);
  // The output has the seed.
  const well = expect.stringMatching(/\nall well\n$/);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: well, stderr: '' });
});
