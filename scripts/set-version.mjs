// Gives all packages and the crates a version.
//
//   node scripts/set-version.mjs VERSION

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { packages } from './pack.mjs';
import { readManifest, root } from './platform.mjs';
import { npm, run, runScript } from './setup.mjs';

await runScript(() => {
  const [version] = process.argv.slice(2);
  if (!version) throw new Error('usage: node scripts/set-version.mjs VERSION');
  // npm checks the version, and writes the lockfile too.
  npm(['version', version, '--no-git-tag-version', '--allow-same-version']);
  for (const directory of packages().values()) {
    const text = `${JSON.stringify({ ...readManifest(directory), version }, null, 2)}\n`;
    writeFileSync(path.join(directory, 'package.json'), text);
  }
  replaceIn('Cargo.toml', /^version = ".*"$/m, `version = "${version}"`);
  // The wheels read their own version where they are built.
  replaceIn('python/kp-score/pyproject.toml', /kp-score-model==[^"]*/, `kp-score-model==${version}`);
  run('cargo', ['update', '--workspace', '--offline', '--quiet']);
});

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
