// The name and contents of this machine's platform package.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The fields of a `package.json` that the scripts read.
 *
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {string} license
 * @property {string[]} files
 * @property {{ url: string }} repository
 * @property {{ targets: string[] }} napi only in that of the main package
 * @property {string} [description]
 * @property {string} [main]
 * @property {Record<string, string>} [scripts]
 * @property {Record<string, string>} [devDependencies]
 * @property {string[]} [workspaces]
 * @property {Record<string, string>} [optionalDependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, { optional?: boolean }>} [peerDependenciesMeta]
 */

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

const venv = path.join(root, 'model', '.venv');
/** Where the programs of the Python packages are that the set-up installs. */
export const venvBin = path.join(venv, process.platform === 'win32' ? 'Scripts' : 'bin');
export const venvPython = path.join(venvBin, process.platform === 'win32' ? 'python.exe' : 'python');

/** The program of Bun, which the npm package of that name brings: it has this name on every platform. */
export const bun = path.join(root, 'node_modules', 'bun', 'bin', 'bun.exe');

/** @type {Partial<Record<NodeJS.Platform, string>>} */
const SUFFIXES = { darwin: '', linux: '-gnu', win32: '-msvc' };

/** Returns the name of this machine's platform package, as in `linux-x64-gnu`. */
export function hostPlatform() {
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  const isMusl = process.platform === 'linux' && header.glibcVersionRuntime === undefined;
  const suffix = isMusl ? '-musl' : SUFFIXES[process.platform];
  if (suffix === undefined) throw new Error(`unsupported platform ${process.platform}`);
  return `${process.platform}-${process.arch}${suffix}`;
}

/** Returns this machine's target of the Rust compiler. */
export function hostTriple() {
  return execFileSync('rustc', ['--print', 'host-tuple'], { encoding: 'utf8' }).trim();
}

export function platformDirectory(platform = hostPlatform()) {
  return path.join(root, 'npm', platform);
}

export function addonName(platform = hostPlatform()) {
  return `knowledgepulse.${platform}.node`;
}

/** Returns the file of kp-score for a platform, which `scripts/wheels.mjs` builds. */
export function builtProgram(platform = hostPlatform()) {
  const name = platform.startsWith('win32-') ? 'kp-score.exe' : 'kp-score';
  return path.join(root, 'target', 'programs', platform, name);
}

/**
 * Returns whether a module is the program of this process.
 *
 * @param {ImportMeta} module
 */
export const isProgram = ({ url }) => process.argv[1] === fileURLToPath(url);

/**
 * Makes a temporary directory, which is removed when the process ends.
 *
 * @param {string} name
 */
export function temporaryDirectory(name) {
  if (temporary.length === 0) {
    process.once('exit', () => {
      for (const directory of temporary) rmSync(directory, { recursive: true, force: true });
    });
  }
  const directory = mkdtempSync(path.join(tmpdir(), `knowledgepulse-${name}-`));
  temporary.push(directory);
  return directory;
}

/** @type {string[]} */
const temporary = [];

/**
 * Throws if what is published could panic on purpose, as a checkout's addon can (see crates/error/src/fault.rs).
 *
 * @param {string} file
 */
export function assertWithoutFaults(file) {
  if (readFileSync(file).includes('KNOWLEDGEPULSE_FAULT')) throw new Error(`${file} was built for tests`);
}

/**
 * Throws unless a published file has the size that docs/installing.md tells in megabytes after these words, or a twentieth more
 * or less, and no faults.
 *
 * @param {string} file
 * @param {string} words
 */
export function assertPublishable(file, words) {
  assertWithoutFaults(file);
  const page = readFileSync(path.join(root, 'docs', 'installing.md'), 'utf8');
  const told = Number.parseFloat(page.split(words)[1]);
  const megabytes = statSync(file).size / 1e6;
  if (Math.abs(megabytes / told - 1) <= 0.05) return;
  throw new Error(`${file} has ${megabytes.toFixed(1)} MB; docs/installing.md tells ${told} MB`);
}

/** @returns {Manifest} */
export function readManifest(directory = root) {
  return JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8'));
}
