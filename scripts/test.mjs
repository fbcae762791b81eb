// `npm test`: sets up what is missing, then runs every test: the Rust core, the model builder, the package (its
// types too) on Node.js and on Bun, its neighbours, and the packages as users install them.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { root, venvPython } from './platform.mjs';
import { runScript, setup } from './setup.mjs';

/** A program of the dev dependencies. */
export const bin = (name) =>
  path.join(root, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name);

const suites = [
  ['the Rust core', 'cargo', ['test', '--locked', '--quiet']],
  ['the model builder', venvPython, ['-m', 'unittest', 'discover', '--start-directory', 'model']],
  ['the package on Node.js', process.execPath, ['node_modules/jest/bin/jest.js']],
  ['the package on Bun', bin('bun'), ['test', '--timeout', '120000', './__test__']],
  ['its neighbours in one process', process.execPath, ['scripts/test-company.mjs', '--installed']],
  ['the packages, installed', process.execPath, ['scripts/test-install.mjs']],
];

if (process.argv[1] === fileURLToPath(import.meta.url)) await runScript(test);

function test() {
  setup();
  for (const [what, command, args] of suites) {
    console.log(`\n── ${what}`);
    execFileSync(command, args, { cwd: root, stdio: 'inherit', shell: command.endsWith('.cmd') });
  }
}
