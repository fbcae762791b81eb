'use strict';

const { execFileSync } = require('node:child_process');
const path = require('node:path');

const { needing } = require('./needs.js');
const { root } = require('./paths.js');

/** The Python that the set-up makes for the model and the tests of readers. */
const python = path.join(
  ...[root, 'model', '.venv'],
  ...(process.platform === 'win32' ? ['Scripts', 'python'] : ['bin', 'python']),
);

/** As `test`, skipped where Python does not have these packages of scripts/readers.txt. */
function testWithPackages(...packages) {
  try {
    // Without importing them, which takes seconds.
    const script =
      'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))';
    execFileSync(python, ['-c', script, ...packages], { stdio: 'pipe' });
    return test;
  } catch {
    return needing(false, `the Python packages ${packages.join(', ')} of scripts/readers.txt`, test);
  }
}

module.exports = { python, testWithPackages };
