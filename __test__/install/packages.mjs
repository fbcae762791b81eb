// The packages under test.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { commandPackages, hostPackages, pack, publishedManifests, tarballName } from '../../scripts/pack.mjs';
import { builtProgram, hostPlatform } from '../../scripts/platform.mjs';

export const MAIN = '@knowledgepulse/native';
export const PLATFORM = `${MAIN}-${hostPlatform()}`;
export const FP32 = '@knowledgepulse/all-minilm-l6-v2';
export const Q8 = '@knowledgepulse/all-minilm-l6-v2-q8';

/**
 * Packs every package into `directory`. Those that this machine cannot build are their manifests alone: package managers
 * decide by these whom they are for.
 *
 * @param {string} directory
 */
export function packAll(directory) {
  const program = existsSync(builtProgram()) ? commandPackages() : [];
  const packed = pack(directory, [...hostPackages(), ...program]);
  for (const manifest of publishedManifests().filter(({ name }) => !(name in packed))) {
    const folder = path.join(directory, manifest.name.replace('/', '-'));
    mkdirSync(path.join(folder, 'package'), { recursive: true });
    writeFileSync(path.join(folder, 'package', 'package.json'), JSON.stringify(manifest));
    execFileSync('tar', ['-czf', path.join(directory, tarballName(manifest)), '-C', folder, 'package']);
  }
}
