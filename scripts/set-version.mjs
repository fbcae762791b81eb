// Gives all packages but the models, and the crates, a version. Models have versions of their own, so that a release does not
// make everyone load them again.
//
//   node scripts/set-version.mjs VERSION
//   node scripts/set-version.mjs VERSION --models

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { directories, isModel } from './pack.mjs';
import { readManifest, root } from './platform.mjs';
import { npm, run, runScript } from './setup.mjs';

const MODELS = '--models';

await runScript(() => {
  const [version, option] = process.argv.slice(2);
  if (!version || (option && option !== MODELS)) {
    throw new Error(`usage: node scripts/set-version.mjs VERSION [${MODELS}]`);
  }
  if (option) {
    write(version, isModel);
    // The wheels read their own version where they are built.
    replaceIn('python/kp-score/pyproject.toml', /kp-score-model==[^"]*/, `kp-score-model==${version}`);
    return;
  }
  // npm checks the version, and writes the lockfile too.
  npm(['version', version, '--no-git-tag-version', '--allow-same-version']);
  write(version, (name) => !isModel(name));
  replaceIn('Cargo.toml', /^version = ".*"$/m, `version = "${version}"`);
  run('cargo', ['update', '--workspace', '--offline', '--quiet']);
});

/**
 * @param {string} version
 * @param {(name: string) => boolean} isMeant
 */
function write(version, isMeant) {
  for (const [name, directory] of directories()) {
    if (!isMeant(name)) continue;
    const text = `${JSON.stringify({ ...readManifest(directory), version }, null, 2)}\n`;
    writeFileSync(path.join(directory, 'package.json'), text);
  }
}

/**
 * @param {string} file
 * @param {RegExp} pattern
 * @param {string} text
 */
function replaceIn(file, pattern, text) {
  const name = path.join(root, file);
  const before = readFileSync(name, 'utf8');
  if (!pattern.test(before)) throw new Error(`${file} has no ${pattern}`);
  writeFileSync(name, before.replace(pattern, text));
}
