'use strict';

// The lockfiles of npm: complete on every platform, so that `npm ci` installs from them anywhere.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');
const { run } = require('./support/run-script.js');
const { scratchDirectory } = require('./support/scratch.js');

/** The folders that have a lockfile. */
const FOLDERS = ['.', '__test__/install/tools', '__test__/coexistence'];

const scratch = scratchDirectory('lockfiles');

/** Whether the package at `from` finds a dependency, in its own folder or in one above. */
function finds(packages, from, name) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    if (Object.hasOwn(packages, path.posix.join(at, 'node_modules', name))) return true;
    if (at === '') return false;
  }
}

describe.each(FOLDERS)('package-lock.json in %s', (folder) => {
  const lockfile = path.join(root, folder, 'package-lock.json');
  const { packages } = JSON.parse(fs.readFileSync(lockfile, 'utf8'));

  test('a lockfile has an entry for each optional dependency of each package', () => {
    const missing = Object.entries(packages).flatMap(([from, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !finds(packages, from, name)),
    );
    expect(missing).toEqual([]);
  });

  test('a lockfile has a checksum and no address for each package that is fetched', () => {
    const fetched = Object.entries(packages).filter(
      ([at, { inBundle, link }]) => at.includes('node_modules/') && !inBundle && !link,
    );
    const wrong = fetched.filter(([, { integrity, resolved }]) => !integrity || resolved !== undefined);
    expect(wrong).toEqual([]);
  });

  test('npm ci accepts a lockfile without a network', async () => {
    const directory = fs.mkdtempSync(path.join(scratch, 'project-'));
    const { workspaces = [] } = packages[''];
    for (const name of ['package-lock.json', ...['.', ...workspaces].map((at) => `${at}/package.json`)]) {
      fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
      fs.copyFileSync(path.join(root, folder, name), path.join(directory, name));
    }
    // Within `npm test` this is the npm that runs it; a bare name would need a shell on Windows.
    const cli = process.env.npm_execpath;
    const npm = cli ? [process.execPath, cli] : ['npm'];
    const [command, ...args] = [...npm, 'ci', '--dry-run', '--offline', '--ignore-scripts'];
    const { code, stderr } = await run(command, args, {}, directory);
    expect({ code, errors: stderr.match(/^npm error.*/gm) }).toEqual({ code: 0, errors: null });
  });
});
