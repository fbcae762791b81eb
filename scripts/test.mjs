// `npm test`: sets up what is missing, then runs every test: the Rust core, the model builder, the package (its
// types too) on Node.js and on Bun, its neighbours, and the packages as users install them.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { root, venvPython } from './platform.mjs';
import { setupPostgres } from './postgres.mjs';
import { runScript, setup } from './setup.mjs';

/** @typedef {[what: string, command: string, args: string[]]} Suite */

/** @param {string} name */
const bin = (name) =>
  path.join(root, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name);

/**
 * The specs on Node.js: all, or those that are named.
 *
 * @param {string[]} specs
 * @returns {Suite}
 */
export const onNode = (...specs) => [
  'the package on Node.js',
  process.execPath,
  ['node_modules/jest/bin/jest.js', ...specs],
];

/**
 * The specs in `where` on Bun, each test of which may take so long.
 *
 * @param {string} where
 * @param {number} milliseconds
 * @returns {Suite}
 */
export const onBun = (where, milliseconds) => [
  'the package on Bun',
  bin('bun'),
  ['test', '--timeout', String(milliseconds), where],
];

/**
 * Runs suites: what each is, its command and its arguments.
 *
 * @param {Suite[]} suites
 * @param {NodeJS.ProcessEnv} [env]
 */
export function runSuites(suites, env = process.env) {
  for (const [what, command, args] of suites) {
    console.log(`\n── ${what}`);
    execFileSync(command, args, { cwd: root, stdio: 'inherit', env, shell: command.endsWith('.cmd') });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runScript(() => {
    setup();
    setupPostgres();
    runSuites([
      ['the Rust core', 'cargo', ['test', '--locked', '--quiet']],
      ['the model builder', venvPython, ['-m', 'unittest', 'discover', '--start-directory', 'model']],
      onNode(),
      onBun('./__test__', 120_000),
      ['its neighbours in one process', process.execPath, ['scripts/test-coexistence.mjs', '--installed']],
      ['the packages, installed', process.execPath, ['scripts/test-install.mjs']],
    ]);
  });
}
