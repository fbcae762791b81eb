'use strict';

// The program that searches for faults in calls, for a moment. `npm run test:all` runs it at length.

const path = require('node:path');

const { run } = require('./support/run-script.js');

test('20,000 hostile calls leave the process intact', async () => {
  const program = path.join(__dirname, 'fuzz', 'hostile.mjs');
  const { code, stdout, stderr } = await run(process.execPath, [program, '--calls', '20000']);
  // The output has the seed.
  const well = expect.stringMatching(/\nall well\n$/);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: well, stderr: '' });
});
