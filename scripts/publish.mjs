// Publishes the tarballs of a release, those last that depend on others. Skips versions that the registry already has, so that a
// release that broke off can be run again, and models are published when their version is new.
//
//   node scripts/publish.mjs TARBALL_DIRECTORY [--dry-run]
//
// npm takes a package from a trusted workflow once the package exists. Two commands prepare that, run by a person who is logged in to
// npm. The first reserves the names that the registry lacks, each with an empty version 0.0.0, and names the workflow as the trusted
// publisher of every package that has none; it may be run again. The second says which packages lack it:
//
//   node scripts/publish.mjs --placeholders [--dry-run]
//   node scripts/publish.mjs --check-trust

import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { publishedManifests, tarballName } from './pack.mjs';
import { temporaryDirectory } from './platform.mjs';
import { npm, runScript } from './setup.mjs';

const PLACEHOLDER = '0.0.0';

/** The workflow and the environment that npm trusts: those of the job `npm` in .github/workflows. */
const WORKFLOW = 'release.yml';
const ENVIRONMENT = 'npm';

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
  // A rehearsal has published no names to ask about.
  const lacking = options.includes('--dry-run') ? manifests : manifests.filter((each) => !isTrusted(each));
  for (const manifest of lacking) {
    const claims = ['--repo', repositoryOf(manifest), '--file', WORKFLOW, '--env', ENVIRONMENT];
    npm(['trust', 'github', manifest.name, ...claims, '--allow-publish', '--yes', ...options]);
  }
}

/** Fails with the names of the packages that do not trust the workflow. */
function checkTrust() {
  const lacking = publishedManifests().filter((manifest) => !isTrusted(manifest));
  if (lacking.length > 0) {
    const names = lacking.map(({ name }) => name).join(', ');
    throw new Error(`these do not trust ${WORKFLOW}: ${names}; run node scripts/publish.mjs --placeholders`);
  }
  console.log(`all packages trust ${WORKFLOW}`);
}

/** @param {Manifest} manifest */
function isTrusted(manifest) {
  const listed = npm(['trust', 'list', manifest.name, '--json'], { stdio: ['inherit', 'pipe', 'inherit'] });
  const claims = { repository: repositoryOf(manifest), file: WORKFLOW, environment: ENVIRONMENT };
  return Object.entries(claims).every(([name, value]) => listed.includes(`"${name}": "${value}"`));
}

/**
 * Returns the owner and the name of a package's repository.
 *
 * @param {Manifest} manifest
 */
function repositoryOf({ repository }) {
  return new URL(repository.url.replace(/^git\+/, '')).pathname.slice(1).replace(/\.git$/, '');
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
    options: {
      'check-trust': { type: 'boolean' },
      'dry-run': { type: 'boolean' },
      placeholders: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const dryRun = values['dry-run'] ? ['--dry-run'] : [];
  const [directory] = positionals;
  if ([directory, values.placeholders, values['check-trust']].filter(Boolean).length !== 1) {
    throw new Error(
      'usage: node scripts/publish.mjs TARBALL_DIRECTORY|--placeholders|--check-trust [--dry-run]',
    );
  }
  if (values['check-trust']) checkTrust();
  else if (values.placeholders) await publishPlaceholders(dryRun);
  else await publish(directory, dryRun);
});
