// Publishes the tarballs of a release, those last that depend on others. Skips versions that the registry already has, so that a
// release that broke off can be run again, and models are published when their version is new.
//
//   node scripts/publish.mjs TARBALL_DIRECTORY [--dry-run]
//
// npm takes a package from a trusted workflow once the package exists. This reserves the names that the registry lacks, each with an
// empty version 0.0.0, and is run once, by a person who is logged in to npm:
//
//   node scripts/publish.mjs --placeholders [--dry-run]

import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { publishedManifests, tarballName } from './pack.mjs';
import { temporaryDirectory } from './platform.mjs';
import { npm, runScript } from './setup.mjs';

const PLACEHOLDER = '0.0.0';

/**
 * @param {string} directory
 * @param {string[]} options
 */
function publish(directory, options) {
  const tarballs = publishedManifests().map((manifest) => ({
    name: manifest.name,
    version: manifest.version,
    file: path.resolve(directory, tarballName(manifest)),
  }));
  const missing = tarballs.filter(({ file }) => !existsSync(file));
  if (missing.length > 0) throw new Error(`no tarballs of ${missing.map(({ name }) => name).join(', ')}`);
  for (const { name, version, file } of tarballs) {
    if (isPublished(`${name}@${version}`)) {
      console.log(`${name}@${version} is published already`);
      continue;
    }
    // A prerelease must not become the default of `npm install`.
    const tag = version.includes('-') ? 'next' : 'latest';
    npm(['publish', file, '--access', 'public', '--tag', tag, ...options]);
  }
}

/** @param {string[]} options */
function publishPlaceholders(options) {
  for (const { name, license, repository } of publishedManifests()) {
    if (isPublished(name)) {
      console.log(`${name} exists already`);
      continue;
    }
    const directory = temporaryDirectory('placeholder');
    const description = 'Reserved for a release, which its workflow publishes';
    const manifest = { name, version: PLACEHOLDER, description, license, repository };
    writeFileSync(path.join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    writeFileSync(path.join(directory, 'README.md'), `# ${name}\n\n${description}.\n`);
    npm(['publish', directory, '--access', 'public', '--tag', 'placeholder', ...options]);
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
  const { values, positionals } = parseArgs({
    options: { 'dry-run': { type: 'boolean' }, placeholders: { type: 'boolean' } },
    allowPositionals: true,
  });
  const dryRun = values['dry-run'] ? ['--dry-run'] : [];
  const [directory] = positionals;
  if ((directory === undefined) === !values.placeholders) {
    throw new Error('usage: node scripts/publish.mjs TARBALL_DIRECTORY|--placeholders [--dry-run]');
  }
  if (values.placeholders) publishPlaceholders(dryRun);
  else publish(directory, values['dry-run'] ? dryRun : ['--provenance']);
});
