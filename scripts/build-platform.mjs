// Builds the package of a platform for a release: the addon, and ONNX Runtime where it carries that.
//
//   node scripts/build-platform.mjs PLATFORM
//
// Linux is cross-compiled from Linux with zig, for its old glibc and for musl; macOS and Windows need their own.

import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

import { parseTriple } from '@napi-rs/cli';

import {
  addonName,
  assertWithoutFaults,
  isProgram,
  platformDirectory,
  readManifest,
  root,
  venvBin,
} from './platform.mjs';
import { buildAddon, pipInstall, runScript } from './setup.mjs';
import { carriesRuntime, runtimeFiles, stageRuntime } from './stage-runtime.mjs';

/** The glibc of the oldest supported Linux, RHEL 8 and Debian 10. */
export const OLDEST_GLIBC = '2.28';

/** What an addon may weigh, in bytes: with the fp32 model it is a third of the SDK with its embedder. */
const BUDGET = 9.3e6;

/** @param {string} platform */
function buildPlatform(platform) {
  buildReleaseAddon(platform);
  const addon = path.join(platformDirectory(platform), addonName(platform));
  const { size } = statSync(addon);
  assertWithoutFaults(addon);
  if (size > BUDGET) throw new Error(`${addon} has ${size} bytes, more than ${BUDGET}`);
  if (carriesRuntime(platform)) stageRuntime(platform);
  if (!isGlibc(platform)) return;
  const libraries = [addonName(platform), ...runtimeFiles(platform).filter((file) => file.endsWith('.so'))];
  for (const file of libraries) checkGlibc(path.join(platformDirectory(platform), file));
}

/**
 * Throws if a library needs a newer glibc than {@link OLDEST_GLIBC}.
 *
 * @param {string} file
 */
function checkGlibc(file) {
  const options = /** @type {const} */ ({ encoding: 'utf8', maxBuffer: 1 << 28 });
  const symbols = execFileSync('objdump', ['--dynamic-syms', file], options);
  const versions = [...symbols.matchAll(/\bGLIBC_(\d[\d.]*)/g)].map(([, version]) => version);
  if (versions.length === 0) throw new Error(`${file} needs no glibc at all: it is not for glibc`);
  const newer = versions.find((version) => version.localeCompare(OLDEST_GLIBC, 'en', { numeric: true }) > 0);
  if (newer) throw new Error(`${file} needs glibc ${newer}; the oldest Linux has ${OLDEST_GLIBC}`);
}

/**
 * Builds the addon of a platform, with the same bytes in whatever folder the checkout is.
 *
 * @param {string} platform
 */
export function buildReleaseAddon(platform) {
  const target = targetOf(platform);
  const env = compilerEnvironment(platform);
  if (!platform.startsWith('linux-'))
    return buildAddon(platform, { napi: ['--release', '--target', target], env });
  const versioned = isGlibc(platform) ? `${target}.${OLDEST_GLIBC}` : target;
  buildAddon(platform, { napi: ['--release', '--cross-compile', '--target', versioned], env });
}

/** @param {string} platform */
export function targetOf(platform) {
  const target = readManifest().napi.targets.find(
    (triple) => parseTriple(triple).platformArchABI === platform,
  );
  if (!target) throw new Error(`package.json has no napi target for ${platform}`);
  return target;
}

/**
 * Returns the variables with which a release is compiled for a platform. For Linux it installs zig, which the linker needs.
 *
 * @param {string} platform
 * @returns {NodeJS.ProcessEnv}
 */
export function compilerEnvironment(platform) {
  const env = { ...process.env, ...withoutFolders(targetOf(platform)) };
  if (!platform.startsWith('linux-')) return env;
  pipInstall('scripts/zig.txt');
  return { ...env, PATH: `${venvBin}${path.delimiter}${process.env.PATH}` };
}

/** @param {string} platform */
export function isGlibc(platform) {
  return platform.endsWith('-gnu');
}

/**
 * Returns the variable by which the compiler leaves out where the checkout and cargo's registry are: otherwise the messages
 * of panics would have the names of these folders.
 *
 * @param {string} target
 */
function withoutFolders(target) {
  const folders = { [root]: 'knowledgepulse-native', [cargoHome()]: 'cargo' };
  const flags = Object.entries(folders).map(([folder, name]) => {
    if (/\s/.test(folder)) throw new Error(`a release cannot be built in a folder with a space: ${folder}`);
    return `--remap-path-prefix=${folder}=${name}`;
  });
  // napi sets RUSTFLAGS for musl, and cargo then heeds no other variable. The flags of `.cargo/config.toml` are joined only
  // to the flags of the target's variable.
  const ofTarget = `CARGO_TARGET_${target.toUpperCase().replaceAll('-', '_')}_RUSTFLAGS`;
  return { [target.endsWith('-musl') ? 'RUSTFLAGS' : ofTarget]: flags.join(' ') };
}

/** Returns where cargo keeps the sources of crates. */
export function cargoHome() {
  return path.resolve(process.env.CARGO_HOME || path.join(homedir(), '.cargo'));
}

if (isProgram(import.meta)) {
  await runScript(() => {
    const [platform] = process.argv.slice(2);
    if (!platform) throw new Error('usage: node scripts/build-platform.mjs PLATFORM');
    buildPlatform(platform);
  });
}
