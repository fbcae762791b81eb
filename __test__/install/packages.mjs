// The packages under test.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { pack } from '../../scripts/pack.mjs';
import { hostPlatform, root } from '../../scripts/platform.mjs';

export const MAIN = '@knowledgepulse/native';
export const PLATFORM = `${MAIN}-${hostPlatform()}`;
export const FP32 = '@knowledgepulse/all-minilm-l6-v2';
export const Q8 = '@knowledgepulse/all-minilm-l6-v2-q8';

/**
 * Packs every package into `directory`. Those of platforms that this machine cannot build are their manifests alone:
 * package managers decide by these whom they are for.
 *
 * @returns {{ manifest: object, tarball: string }[]}
 */
export function packAll(directory) {
  const tarballs = pack(directory);
  const packed = Object.values(tarballs).map((tarball) => ({ manifest: manifestIn(tarball), tarball }));
  const others = readdirSync(path.join(root, 'npm'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => readFileSync(path.join(root, 'npm', name, 'package.json'), 'utf8'))
    .map((json) => JSON.parse(json))
    .filter(({ name }) => !(name in tarballs))
    .map((manifest) => ({ manifest, tarball: packManifest(manifest, directory) }));
  return [...packed, ...others];
}

function manifestIn(tarball) {
  return JSON.parse(execFileSync('tar', ['-xzOf', tarball, 'package/package.json']));
}

function packManifest(manifest, directory) {
  const name = manifest.name.replace('/', '-').slice(1);
  const folder = path.join(directory, name);
  mkdirSync(path.join(folder, 'package'), { recursive: true });
  writeFileSync(path.join(folder, 'package', 'package.json'), JSON.stringify(manifest));
  execFileSync('tar', ['-czf', `${folder}.tgz`, '-C', folder, 'package']);
  return `${folder}.tgz`;
}
