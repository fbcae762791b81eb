// Packs the packages that this machine can build: the main one, its platform's and the models.
//
//   node scripts/pack.mjs OUTPUT_DIR
//
// The last line is a JSON object of package names and the paths of their tarballs.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { hostPlatform, root } from './platform.mjs';
import { runScript } from './setup.mjs';

const MODELS = ['all-minilm-l6-v2', 'all-minilm-l6-v2-q8'];

/** Packs into `outputDirectory` and returns the paths of the tarballs by package name. */
export function pack(outputDirectory) {
  mkdirSync(outputDirectory, { recursive: true });
  const staged = stageMain();
  try {
    const directories = [staged, ...[hostPlatform(), ...MODELS].map((name) => path.join(root, 'npm', name))];
    return Object.fromEntries(directories.map((directory) => packOne(directory, outputDirectory)));
  } finally {
    rmSync(staged, { recursive: true });
  }
}

/** The main package with the optional dependencies that it is published with. */
function stageMain() {
  const staged = mkdtempSync(path.join(tmpdir(), 'knowledgepulse-pack-'));
  const manifest = readManifest(root);
  for (const name of ['README.md', 'LICENSE', ...manifest.files]) {
    const source = name.replace('/*.js', '');
    cpSync(path.join(root, source), path.join(staged, source), { recursive: true });
  }
  const optional = readdirSync(path.join(root, 'npm'))
    .map((name) => readManifest(path.join(root, 'npm', name)))
    .filter(({ name }) => !name.endsWith('-q8'));
  manifest.optionalDependencies = Object.fromEntries(optional.map(({ name, version }) => [name, version]));
  writeFileSync(path.join(staged, 'package.json'), JSON.stringify(manifest, null, 2));
  return staged;
}

function packOne(directory, outputDirectory) {
  const json = execFileSync(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', outputDirectory],
    { cwd: directory, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const [{ name, filename }] = Object.values(JSON.parse(json));
  return [name, path.join(outputDirectory, filename)];
}

function readManifest(directory) {
  return JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runScript(() => {
    if (!process.argv[2]) throw new Error('node scripts/pack.mjs OUTPUT_DIR');
    console.log(JSON.stringify(pack(path.resolve(process.argv[2]))));
  });
}
