// Publishes the tarballs of a release, the main package last, because it depends on the others. Skips versions that the
// registry already has, so that a release that broke off can be run again.
//
//   node scripts/publish.mjs TARBALL_DIRECTORY [--dry-run]

import { existsSync } from 'node:fs';
import path from 'node:path';

import { packages } from './pack.mjs';
import { readManifest } from './platform.mjs';
import { npm, runScript } from './setup.mjs';

/**
 * @param {string} directory
 * @param {boolean} dryRun
 */
function publish(directory, dryRun) {
  const { version } = readManifest();
  const tarballs = [...packages().keys()].map((name) => {
    // As `npm pack` names it.
    const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
    return { name, file: path.resolve(directory, file) };
  });
  const missing = tarballs.filter(({ file }) => !existsSync(file));
  if (missing.length > 0) throw new Error(`no tarballs of ${missing.map(({ name }) => name).join(', ')}`);
  // A prerelease must not become the default of `npm install`.
  const tag = version.includes('-') ? 'next' : 'latest';
  for (const { name, file } of tarballs) {
    if (isPublished(`${name}@${version}`)) {
      console.log(`${name}@${version} is published already`);
      continue;
    }
    const options = dryRun ? ['--dry-run'] : ['--provenance'];
    npm(['publish', file, '--access', 'public', '--tag', tag, ...options]);
  }
}

/** @param {string} specifier */
function isPublished(specifier) {
  try {
    return npm(['view', specifier, 'version', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] }).trim() !== '';
  } catch (cause) {
    const error = /** @type {Error & { stdout?: string, stderr?: string }} */ (cause);
    if (`${error.stdout}${error.stderr}`.includes('E404')) return false;
    throw error;
  }
}

await runScript(() => {
  const [directory, option] = process.argv.slice(2);
  if (!directory || (option && option !== '--dry-run')) {
    throw new Error('usage: node scripts/publish.mjs TARBALL_DIRECTORY [--dry-run]');
  }
  publish(directory, option === '--dry-run');
});
