// Builds the package of a platform for a release: the addon, and ONNX Runtime where it carries that.
//
//   node scripts/build-platform.mjs PLATFORM
//
// Linux is cross-compiled from Linux with zig, for its old glibc and for musl; macOS and Windows need their own.

import { homedir } from 'node:os';
import path from 'node:path';

import { parseTriple } from '@napi-rs/cli';

import { checkGlibc, FLOOR } from './check-glibc.mjs';
import { addonName, isProgram, platformDirectory, readManifest, root, venvBin } from './platform.mjs';
import { buildAddon, pipInstall, runScript } from './setup.mjs';
import { carriesRuntime, runtimeFiles, stageRuntime } from './stage-runtime.mjs';

/** @param {string} platform */
function buildPlatform(platform) {
  buildReleaseAddon(platform);
  if (carriesRuntime(platform)) stageRuntime(platform);
  if (isGlibc(platform)) {
    const libraries = [addonName(platform), ...runtimeFiles(platform).filter((file) => file.endsWith('.so'))];
    for (const file of libraries) checkGlibc(path.join(platformDirectory(platform), file));
  }
}

/**
 * Builds the addon of a platform, with the same bytes in whatever folder the checkout is.
 *
 * @param {string} platform
 */
export function buildReleaseAddon(platform) {
  const target = targetOf(platform);
  const env = compilerEnvironment(platform);
  if (!platform.startsWith('linux-')) return buildAddon(platform, ['--target', target], env);
  const versioned = isGlibc(platform) ? `${target}.${FLOOR.GLIBC}` : target;
  buildAddon(platform, ['--cross-compile', '--target', versioned], env);
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
