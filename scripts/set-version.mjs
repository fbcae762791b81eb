// Gives all packages and the crate a version.
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
  const crate = path.join(root, 'Cargo.toml');
  writeFileSync(crate, readFileSync(crate, 'utf8').replace(/^version = ".*"$/m, `version = "${version}"`));
  run('cargo', ['update', '--workspace', '--offline', '--quiet']);
});
