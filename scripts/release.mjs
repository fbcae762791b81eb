// What a release is checked by, and its text.
//
//   node scripts/release.mjs check TAG REPOSITORY     the tag, owner/name of the repository and the changelog fit the package
//   node scripts/release.mjs notes TAG                prints what CHANGELOG.md says of the version

import { readFileSync } from 'node:fs';
import path from 'node:path';

import { readManifest, root } from './platform.mjs';
import { runScript } from './setup.mjs';

/**
 * Returns what a changelog says of a version.
 *
 * @param {string} version
 */
function notesOf(version) {
  const sections = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  const notes = section?.slice(section.indexOf('\n')).trim();
  if (!notes) throw new Error(`CHANGELOG.md says nothing below "## ${version}"`);
  return notes;
}

/**
 * @param {string} tag
 * @param {string} repository
 */
function check(tag, repository) {
  const { version, repository: own } = readManifest();
  if (tag !== `v${version}`) throw new Error(`the tag is ${tag}, and package.json has version ${version}`);
  // npm takes a statement of provenance from this repository alone.
  if (own.url !== `git+https://github.com/${repository}.git`) {
    throw new Error(`the workflow runs in ${repository}, and package.json has the repository ${own.url}`);
  }
  notesOf(version);
}

await runScript(() => {
  const [command, first, second] = process.argv.slice(2);
  if (command === 'check' && second) return check(first, second);
  if (command === 'notes' && first) return console.log(notesOf(first.replace(/^v/, '')));
  throw new Error('usage: node scripts/release.mjs check TAG REPOSITORY | notes TAG');
});
