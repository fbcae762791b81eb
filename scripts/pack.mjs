// Packs the published tarballs: the main package, this machine's platform package and the models; or the packages that are
// named. `scripts/wheels.mjs` builds the programs of kp-score.
//
//   node scripts/pack.mjs OUTPUT_DIRECTORY [NAME...]
//
// The last line that it prints is a JSON object: the tarballs by the names of the packages.

import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import {
  builtProgram,
  hostPlatform,
  isProgram,
  readManifest,
  root,
  temporaryDirectory,
} from './platform.mjs';
import { npm, runScript, setupSteps } from './setup.mjs';

/** @typedef {Omit<import('./platform.mjs').Manifest, 'napi'>} Manifest */

const main = readManifest();
const DEFAULT_MODEL = '@knowledgepulse/all-minilm-l6-v2';
const OPTIONAL_MODEL = `${DEFAULT_MODEL}-q8`;
const MODELS = [DEFAULT_MODEL, OPTIONAL_MODEL];
/** For all other platforms; no package manager can tell which these are. */
const WEBASSEMBLY = `${main.name}-wasm32`;
/** The command alone: a launcher, and a package with the program for each platform, whose name follows. */
const COMMAND = 'kp-score';
export const PROGRAM = '@knowledgepulse/kp-score-';

/** Returns the directories of the committed packages by their names. */
export function directories() {
  const folders = readdirSync(path.join(root, 'npm')).map((name) => path.join(root, 'npm', name));
  const manifests = folders.filter((folder) => existsSync(path.join(folder, 'package.json')));
  return new Map([...manifests, root].map((directory) => [readManifest(directory).name, directory]));
}

/** @param {string} name */
export const isModel = (name) => MODELS.includes(name);

/** Returns the platforms that have packages, as in `linux-x64-gnu`. */
function platforms() {
  const prefix = `${main.name}-`;
  const names = [...directories().keys()].filter((name) => name.startsWith(prefix) && name !== WEBASSEMBLY);
  return names.map((name) => name.slice(prefix.length));
}

/** Returns the main package, this machine's platform package and the models. */
export function hostPackages() {
  return [...MODELS, `${main.name}-${hostPlatform()}`, main.name];
}

/** Returns the launcher of the command and this machine's program. */
export const commandPackages = () => [`${PROGRAM}${hostPlatform()}`, COMMAND];

/**
 * Returns the manifests of all packages as they are published, those last that depend on others. In a checkout dependencies
 * are built, not installed: with their names in the committed manifests, every `npm install` would look for versions that are
 * not published yet, and the loader would prefer an installed package to the built one.
 *
 * @returns {Manifest[]}
 */
export function publishedManifests() {
  const { devDependencies, napi, scripts, workspaces, ...library } = main;
  const committed = directories();
  const command = readManifest(committed.get(COMMAND));
  const others = [...committed].filter(([name]) => name !== main.name && name !== COMMAND);
  const manifests = others.map(([, directory]) => readManifest(directory));
  const programs = platforms().map(programManifest);
  const version = new Map([...manifests, ...programs].map((manifest) => [manifest.name, manifest.version]));
  /** @param {string[]} names */
  const exactly = (names) => Object.fromEntries(names.map((name) => [name, version.get(name) ?? '']));
  /** @param {string[]} names */
  const onRequest = (names) => Object.fromEntries(names.map((name) => [name, { optional: true }]));
  // Not installed unless asked for; pnpm and Yarn let a package load only what it declares.
  const optional = [OPTIONAL_MODEL, WEBASSEMBLY];
  return [
    ...manifests,
    ...programs,
    {
      ...command,
      optionalDependencies: exactly(programs.map(({ name }) => name)),
      peerDependencies: exactly(MODELS),
      peerDependenciesMeta: onRequest(MODELS),
    },
    {
      ...library,
      optionalDependencies: exactly([
        ...platforms().map((platform) => `${main.name}-${platform}`),
        DEFAULT_MODEL,
      ]),
      peerDependencies: { ...main.peerDependencies, ...exactly(optional) },
      peerDependenciesMeta: { ...main.peerDependenciesMeta, ...onRequest(optional) },
    },
  ];
}

/**
 * Returns the manifest of the package with a platform's program. The platform's other package says what it runs on.
 *
 * @param {string} platform
 */
function programManifest(platform) {
  const { main: addon, ...manifest } = readManifest(path.join(root, 'npm', platform));
  return {
    ...manifest,
    name: PROGRAM + platform,
    description: `The program of kp-score for ${platform}`,
    license: main.license,
    repository: main.repository,
    files: [`bin/${path.basename(builtProgram(platform))}`, 'LICENSE', 'README.md', 'THIRD-PARTY-LICENSES'],
  };
}

/**
 * Returns the file that `npm pack` makes of a package.
 *
 * @param {Manifest} manifest
 */
export const tarballName = ({ name, version }) => `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;

/**
 * Packs the packages of these names into a directory; returns the tarballs by name.
 *
 * @param {string} outputDirectory
 * @param {string[]} [names]
 * @returns {Record<string, string>}
 */
export function pack(outputDirectory, names = hostPackages()) {
  mkdirSync(outputDirectory, { recursive: true });
  const manifests = new Map(publishedManifests().map((manifest) => [manifest.name, manifest]));
  const tarballs = names.map((name) => {
    const manifest = manifests.get(name);
    if (!manifest) throw new Error(`there is no package ${name}`);
    return [name, packPublished(manifest, outputDirectory)];
  });
  return Object.fromEntries(tarballs);
}

/**
 * @param {Manifest} manifest
 * @param {string} outputDirectory
 */
function packPublished(manifest, outputDirectory) {
  const { name } = manifest;
  // Bundled here, so that no tarball can lack it or have an old one.
  if (name === main.name) setupSteps(['report']);
  if (name.startsWith(PROGRAM)) {
    return packDirectory(stageProgram(manifest, name.slice(PROGRAM.length)), outputDirectory);
  }
  const directory = directories().get(name) ?? '';
  copyLicence(directory);
  if (JSON.stringify(manifest) === JSON.stringify(readManifest(directory))) {
    return packDirectory(directory, outputDirectory);
  }
  const staging = temporaryDirectory('pack');
  for (const { path: file } of npmPack(directory, ['--dry-run']).files) {
    mkdirSync(path.join(staging, path.dirname(file)), { recursive: true });
    copyFileSync(path.join(directory, file), path.join(staging, file));
  }
  writeManifest(staging, manifest);
  return packDirectory(staging, outputDirectory);
}

/**
 * Puts the licence of the repository into the folder of a package.
 *
 * @param {string} directory
 */
export function copyLicence(directory) {
  const licence = path.join(directory, 'LICENSE');
  // One that is there stays: another process may pack the same folder.
  if (!existsSync(licence)) copyFileSync(path.join(root, 'LICENSE'), licence);
}

/**
 * Makes the folder of the package with a platform's program, which `scripts/wheels.mjs` has built.
 *
 * @param {Manifest} manifest
 * @param {string} platform
 */
function stageProgram(manifest, platform) {
  const staging = temporaryDirectory('pack');
  const program = builtProgram(platform);
  if (!existsSync(program)) throw new Error(`no ${program}; run node scripts/wheels.mjs wheels ${platform}`);
  mkdirSync(path.join(staging, 'bin'));
  copyFileSync(program, path.join(staging, 'bin', path.basename(program)));
  copyLicence(staging);
  const licences = 'THIRD-PARTY-LICENSES';
  copyFileSync(path.join(root, 'npm', licences), path.join(staging, licences));
  writeFileSync(
    path.join(staging, 'README.md'),
    `# ${manifest.name}\n\nThe program of \`kp-score\`, which brings it.\n`,
  );
  writeManifest(staging, manifest);
  return staging;
}

/**
 * @param {string} directory
 * @param {Manifest} manifest
 */
function writeManifest(directory, manifest) {
  writeFileSync(path.join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
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
