// Builds the package of a platform for a release: the addon, and ONNX Runtime where it carries that.
//
//   node scripts/build-platform.mjs PLATFORM
//
// Linux is cross-compiled from Linux with zig, for its old glibc and for musl; macOS and Windows need their own.

import path from 'node:path';

import { parseTriple } from '@napi-rs/cli';

import { checkGlibc, FLOOR } from './check-glibc.mjs';
import { addonName, platformDirectory, readManifest, root, venvBin, venvPython } from './platform.mjs';
import { buildAddon, run, runScript } from './setup.mjs';
import { carriesRuntime, runtimeFiles, stageRuntime } from './stage-runtime.mjs';

/** @param {string} platform */
function buildPlatform(platform) {
  const target = readManifest().napi.targets.find(
    (triple) => parseTriple(triple).platformArchABI === platform,
  );
  if (!target) throw new Error(`package.json has no napi target for ${platform}`);
  const isGlibc = platform.endsWith('-gnu');
  if (platform.startsWith('linux-')) {
    const zig = path.join(root, 'scripts', 'zig.txt');
    run(venvPython, ['-m', 'pip', 'install', '--quiet', '--require-hashes', '--requirement', zig]);
    const env = { ...process.env, PATH: `${venvBin}${path.delimiter}${process.env.PATH}` };
    const versioned = isGlibc ? `${target}.${FLOOR.GLIBC}` : target;
    buildAddon(platform, ['--cross-compile', '--target', versioned], env);
  } else {
    buildAddon(platform, ['--target', target]);
  }
  if (carriesRuntime(platform)) stageRuntime(platform);
  if (isGlibc) {
    const libraries = [addonName(platform), ...runtimeFiles(platform).filter((file) => file.endsWith('.so'))];
    for (const file of libraries) checkGlibc(path.join(platformDirectory(platform), file));
  }
}

await runScript(() => {
  const [platform] = process.argv.slice(2);
  if (!platform) throw new Error('usage: node scripts/build-platform.mjs PLATFORM');
  buildPlatform(platform);
});
