// Package managers and runtimes, pinned in tools/package.json: too large for the dependencies of the repository, so
// they are installed when these tests run first.

import { existsSync } from 'node:fs';
import path from 'node:path';

import { bun, root } from '../../scripts/platform.mjs';
import { npm, prepare, run } from '../../scripts/setup.mjs';

const folder = path.join('__test__', 'install', 'tools');
/** The folder whose package.json names the tools. */
export const TOOLS = path.join(root, folder);
const modules = path.join(TOOLS, 'node_modules');
/** @param {string} file */
const executable = (file) => (process.platform === 'win32' ? `${file}.exe` : file);

export function prepareTools() {
  prepare([
    {
      name: 'package managers and runtimes',
      doing: `installing ${path.join(folder, 'package-lock.json')}`,
      inputs: [path.join(folder, 'package-lock.json')],
      stamp: path.join(folder, 'node_modules', '.knowledgepulse-tools'),
      done: () => existsSync(DENO),
      run() {
        npm(['ci', '--ignore-scripts', '--loglevel=error'], { cwd: TOOLS });
        // As for Bun: the script only puts the program in place.
        run(process.execPath, [path.join(modules, 'deno', 'install.cjs')]);
      },
    },
  ]);
}

export const BUN = bun;
export const DENO = path.join(modules, 'deno', executable('deno'));
export const NPM = [process.execPath, path.join(modules, 'npm', 'bin', 'npm-cli.js')];
export const PNPM = [process.execPath, path.join(modules, 'pnpm', 'bin', 'pnpm.mjs')];
export const YARN = path.join(modules, '@yarnpkg', 'cli-dist', 'bin', 'yarn.js');

/** The Node.js versions that are promised, as far as npm has them for this platform; else the one that runs this. */
function nodes() {
  const found = [20, 22, 24, 26]
    .map((major) => ({ major, program: path.join(modules, `node-${major}`, 'bin', 'node') }))
    .filter(({ program }) => existsSync(program));
  const own = { major: process.versions.node.split('.', 1)[0], program: process.execPath };
  const versions = found.length > 0 ? found : [own];
  return versions.map(({ major, program }) => ({ kind: 'Node', name: `Node ${major}`, command: [program] }));
}

/** What a script runs on. */
export const runtimes = () => [
  ...nodes(),
  { kind: 'Bun', name: 'Bun', command: [BUN] },
  { kind: 'Deno', name: 'Deno', command: [DENO, 'run', '--allow-all', '--cached-only'] },
];
