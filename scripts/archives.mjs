// Writes the program of each platform from the tarballs of a release as an archive that needs no package manager, and SHA256SUMS.
//
//   node scripts/archives.mjs TARBALL_DIRECTORY OUTPUT_DIRECTORY

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { targetOf } from './build-platform.mjs';
import { PROGRAM, publishedManifests, tarballName } from './pack.mjs';
import { temporaryDirectory } from './platform.mjs';
import { runScript } from './setup.mjs';

/**
 * Writes `kp-score-TARGET.tar.gz` for each platform, with the program and its licences, and their checksums. The programs are
 * those of the packages `@knowledgepulse/kp-score-PLATFORM`.
 *
 * @param {string} tarballs
 * @param {string} folder
 */
function writePrograms(tarballs, folder) {
  mkdirSync(folder, { recursive: true });
  const sums = publishedManifests()
    .filter(({ name }) => name.startsWith(PROGRAM))
    .map((manifest) => {
      const unpacked = temporaryDirectory('program');
      const tarball = path.join(tarballs, tarballName(manifest));
      execFileSync('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1']);
      const program = manifest.name.includes('-win32-') ? 'kp-score.exe' : 'kp-score';
      const name = `kp-score-${targetOf(manifest.name.slice(PROGRAM.length))}.tar.gz`;
      const archive = path.resolve(folder, name);
      const licences = ['-C', unpacked, 'LICENSE', 'THIRD-PARTY-LICENSES'];
      execFileSync('tar', ['-czf', archive, '-C', path.join(unpacked, 'bin'), program, ...licences]);
      return `${createHash('sha256').update(readFileSync(archive)).digest('hex')}  ${name}\n`;
    });
  writeFileSync(path.join(folder, 'SHA256SUMS'), sums.join(''));
}

await runScript(() => {
  const [tarballs, folder] = process.argv.slice(2);
  if (!folder) throw new Error('usage: node scripts/archives.mjs TARBALL_DIRECTORY OUTPUT_DIRECTORY');
  writePrograms(tarballs, folder);
});
