// Builds the addon of a platform as a release does, from two copies of what git has staged in two folders, with two folders of
// cargo's registry, and checks that both have the same bytes: then anybody can build the published addon, and compare.
//
//   node scripts/reproducible.mjs [PLATFORM]

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';

import { cargoHome } from './build-platform.mjs';
import { addonName, hostPlatform, root, temporaryDirectory } from './platform.mjs';
import { runScript, setupSteps } from './setup.mjs';

/** The folders differ in length too. */
const FOLDERS = ['first', 'a second, longer one'];

/** @param {string} platform */
function check(platform) {
  setupSteps(['dependencies', 'python tools']);
  const directory = temporaryDirectory('reproducible');
  const sums = FOLDERS.map((name) => build(platform, path.join(directory, name.replaceAll(/\W+/g, '-'))));
  if (sums[0] !== sums[1])
    throw new Error(`${addonName(platform)} depends on the folder: ${sums.join(' and ')}`);
  console.log(`${addonName(platform)}: SHA-256 ${sums[0]}, twice`);
}

/**
 * Builds in a copy of what is staged; returns the checksum of the addon.
 *
 * @param {string} platform
 * @param {string} directory
 */
function build(platform, directory) {
  const copy = path.join(directory, 'checkout');
  execFileSync('git', ['checkout-index', '--all', `--prefix=${copy}/`], { cwd: root });
  for (const shared of ['node_modules', 'model/.venv'])
    symlinkSync(path.join(root, shared), path.join(copy, shared));
  const home = path.join(directory, 'cargo');
  mkdirSync(home);
  for (const name of ['registry', 'config.toml']) {
    if (existsSync(path.join(cargoHome(), name)))
      symlinkSync(path.join(cargoHome(), name), path.join(home, name));
  }
  const { CARGO_TARGET_DIR, ...env } = process.env;
  const program = `import { buildReleaseAddon } from './scripts/build-platform.mjs'; buildReleaseAddon('${platform}');`;
  execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: copy,
    env: { ...env, CARGO_HOME: home },
    stdio: 'inherit',
  });
  const addon = readFileSync(path.join(copy, 'npm', platform, addonName(platform)));
  return createHash('sha256').update(addon).digest('hex');
}

await runScript(() => check(process.argv[2] ?? hostPlatform()));
