'use strict';

const path = require('node:path');

const { run } = require('./support/run-script.js');

test('20,000 hostile calls leave the process intact', async () => {
  const program = path.join(__dirname, 'fuzz', 'hostile.mjs');
  const { code, stdout, stderr } = await run(process.execPath, [program, '--calls', '20000']);
  // The output has the seed.
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/\nall well\n$/),
    stderr: '',
  });
});
