'use strict';

const path = require('node:path');

const { run } = require('./support/run-script.js');

test('3,000 evaluations from eight workers and the main thread at once', async () => {
  const program = path.join(__dirname, 'load', 'run.mjs');
  const { code, stdout, stderr } = await run(process.execPath, [program, '--calls', '3000', '--untimed']);
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/\nall well\n$/),
    stderr: '',
  });
});
