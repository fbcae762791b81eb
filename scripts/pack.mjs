// Packs the published tarballs: the main package, this machine's platform package and the models; or the packages that are
// named.
//
//   node scripts/pack.mjs OUTPUT_DIRECTORY [NAME...]
//
// The last line that it prints is a JSON object: the tarballs by the names of the packages.

import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { hostPlatform, isProgram, readManifest, root, temporaryDirectory } from './platform.mjs';
import { npm, runScript, setupSteps } from './setup.mjs';

const main = readManifest();
const DEFAULT_MODEL = '@knowledgepulse/all-minilm-l6-v2';
const OPTIONAL_MODEL = '@knowledgepulse/all-minilm-l6-v2-q8';
/** For all other platforms; no package manager can tell which these are. */
const WEBASSEMBLY = `${main.name}-wasm32`;

/** Returns the directories of all packages by their names, the main one last: it depends on the others. */
export function packages() {
  const folders = readdirSync(path.join(root, 'npm')).map((name) => path.join(root, 'npm', name));
  const manifests = folders.filter((folder) => existsSync(path.join(folder, 'package.json')));
  return new Map([...manifests, root].map((directory) => [readManifest(directory).name, directory]));
}

/** Returns the main package, this machine's platform package and the models. */
export function hostPackages() {
  const others = [...platformPackages(), WEBASSEMBLY].filter(
    (name) => name !== `${main.name}-${hostPlatform()}`,
  );
  return [...packages().keys()].filter((name) => !others.includes(name));
}

function platformPackages() {
  return [...packages().keys()].filter((name) => name.startsWith(`${main.name}-`) && name !== WEBASSEMBLY);
}

/**
 * Returns the manifest of the main package as it is published. In a checkout its dependencies are built, not installed: with
 * their names in the committed manifest, every `npm install` would look for versions that are not published yet, and the
 * loader would prefer an installed package to the built one.
 */
export function publishedManifest() {
  const { devDependencies, napi, scripts, ...manifest } = main;
  const dependencies = [...platformPackages(), DEFAULT_MODEL];
  // Not installed unless asked for; pnpm and Yarn let a package load only what it declares.
  const optional = [OPTIONAL_MODEL, WEBASSEMBLY];
  return {
    ...manifest,
    optionalDependencies: Object.fromEntries(dependencies.map((name) => [name, main.version])),
    peerDependencies: {
      ...manifest.peerDependencies,
      ...Object.fromEntries(optional.map((name) => [name, main.version])),
    },
    peerDependenciesMeta: {
      ...manifest.peerDependenciesMeta,
      ...Object.fromEntries(optional.map((name) => [name, { optional: true }])),
    },
  };
}

/**
 * Packs the packages of these names into a directory; returns the tarballs by name.
 *
 * @param {string} outputDirectory
 * @param {string[]} [names]
 * @returns {Record<string, string>}
 */
export function pack(outputDirectory, names = hostPackages()) {
  mkdirSync(outputDirectory, { recursive: true });
  const directories = packages();
  const tarballs = names.map((name) => {
    const directory = directories.get(name);
    if (!directory) throw new Error(`there is no package ${name}`);
    return [name, directory === root ? packMain(outputDirectory) : packDirectory(directory, outputDirectory)];
  });
  return Object.fromEntries(tarballs);
}

/** @param {string} outputDirectory */
function packMain(outputDirectory) {
  // Bundled here, so that no tarball can lack it or have an old one.
  setupSteps(['report']);
  const staging = temporaryDirectory('pack');
  for (const { path: file } of npmPack(root, ['--dry-run']).files) {
    mkdirSync(path.join(staging, path.dirname(file)), { recursive: true });
    copyFileSync(path.join(root, file), path.join(staging, file));
  }
  writeFileSync(path.join(staging, 'package.json'), `${JSON.stringify(publishedManifest(), null, 2)}\n`);
  return packDirectory(staging, outputDirectory);
}

/**
 * @param {string} directory
 * @param {string} outputDirectory
 */
function packDirectory(directory, outputDirectory) {
  // npm leaves out missing files silently.
  const named = readManifest(directory).files.filter((file) => !file.includes('*'));
  const missing = named.filter((file) => !existsSync(path.join(directory, file)));
  if (missing.length > 0) throw new Error(`${directory} lacks ${missing.join(', ')}; run npm run setup`);
  const { filename } = npmPack(directory, ['--pack-destination', path.resolve(outputDirectory)]);
  return path.resolve(outputDirectory, filename);
}

/**
 * @param {string} directory
 * @param {string[]} options
 * @returns {{ filename: string, files: Array<{ path: string }> }}
 */
function npmPack(directory, options) {
  const output = npm(['pack', '--json', '--loglevel=error', ...options], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(output)[0];
}

if (isProgram(import.meta)) {
  await runScript(() => {
    const [outputDirectory, ...names] = process.argv.slice(2);
    if (!outputDirectory) throw new Error('usage: node scripts/pack.mjs OUTPUT_DIRECTORY [NAME...]');
    console.log(JSON.stringify(pack(outputDirectory, names.length > 0 ? names : undefined)));
  });
}
