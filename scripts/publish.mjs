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

/** @typedef {import('./pack.mjs').Manifest} Manifest */

/**
 * @param {string} directory
 * @param {string[]} options
 */
async function publish(directory, options) {
  const manifests = publishedManifests();
  /** @param {Manifest} manifest */
  const fileOf = (manifest) => path.resolve(directory, tarballName(manifest));
  const missing = manifests.filter((manifest) => !existsSync(fileOf(manifest)));
  if (missing.length > 0) throw new Error(`no tarballs of ${missing.map(({ name }) => name).join(', ')}`);
  const published = await publishedVersions(manifests);
  for (const manifest of manifests) {
    const { name, version } = manifest;
    if (published.get(name)?.includes(version)) {
      console.log(`${name}@${version} is published already`);
      continue;
    }
    // A prerelease must not become the default of `npm install`.
    const tag = version.includes('-') ? 'next' : 'latest';
    npm(['publish', fileOf(manifest), '--access', 'public', '--tag', tag, ...options]);
  }
}

/** @param {string[]} options */
async function publishPlaceholders(options) {
  const manifests = publishedManifests();
  const published = await publishedVersions(manifests);
  for (const { name, license, repository } of manifests) {
    if (published.get(name)?.length) {
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

/**
 * Returns the versions of packages that the registry has.
 *
 * @param {Manifest[]} manifests
 * @returns {Promise<Map<string, string[]>>}
 */
async function publishedVersions(manifests) {
  const registry = process.env.npm_config_registry ?? 'https://registry.npmjs.org/';
  /** @param {Manifest} manifest @returns {Promise<[string, string[]]>} */
  const lookUp = async ({ name }) => {
    const url = new URL(name.replace('/', '%2f'), registry);
    const response = await fetch(url);
    if (response.status === 404) return [name, []];
    if (!response.ok) throw new Error(`${url} answers ${response.status} ${response.statusText}`);
    const { versions } = /** @type {{ versions: object }} */ (await response.json());
    return [name, Object.keys(versions)];
  };
  return new Map(await Promise.all(manifests.map(lookUp)));
}

await runScript(async () => {
  const { values, positionals } = parseArgs({
    options: { 'dry-run': { type: 'boolean' }, placeholders: { type: 'boolean' } },
    allowPositionals: true,
  });
  const dryRun = values['dry-run'] ? ['--dry-run'] : [];
  const [directory] = positionals;
  if ((directory === undefined) === !values.placeholders) {
    throw new Error('usage: node scripts/publish.mjs TARBALL_DIRECTORY|--placeholders [--dry-run]');
  }
  if (values.placeholders) await publishPlaceholders(dryRun);
  else await publish(directory, values['dry-run'] ? dryRun : ['--provenance']);
});
