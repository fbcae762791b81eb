// `npm test`: sets up what is missing, then runs every test: the Rust core, the model builder, the package on
// Node.js and on Bun, its types, its neighbours, and the packages as users install them.

import { execFileSync } from 'node:child_process';
import path from 'node:path';

import { root } from './platform.mjs';
import { runScript, setup, venvPython } from './setup.mjs';

const bin = (name) =>
  path.join(root, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name);

const suites = [
  ['the Rust core', 'cargo', ['test', '--locked', '--quiet']],
  ['the model builder', venvPython, ['-m', 'unittest', 'discover', '--start-directory', 'model']],
  ['the types', bin('tsc'), ['--project', '__test__/types']],
  ['the package on Node.js', process.execPath, ['node_modules/jest/bin/jest.js']],
  ['the package on Bun', bin('bun'), ['test', '--timeout', '120000', './__test__']],
  ['its neighbours in one process', process.execPath, ['scripts/test-company.mjs']],
  ['the packages, installed', process.execPath, ['scripts/test-install.mjs']],
];

await runScript(() => {
  setup();
  for (const [what, command, args] of suites) {
    console.log(`\n── ${what}`);
    execFileSync(command, args, { cwd: root, stdio: 'inherit', shell: command.endsWith('.cmd') });
  }
});
