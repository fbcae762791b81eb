// Collects the licences of the packages that are bundled into something.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { root } from './platform.mjs';

/**
 * Returns the licences of the packages that these files are of, which are bundled into something.
 *
 * @param {string} bundle
 * @param {string[]} files
 */
export function notices(bundle, files) {
  const header = `What is bundled into ${bundle}, and its licences.\n`;
  const directories = files.map((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  const packages = [...new Set(directories.filter((directory) => directory !== undefined))].sort();
  return [header, ...packages.map(noticeOf)].join(`\n${'─'.repeat(80)}\n\n`);
}

/** @param {string} directory */
function noticeOf(directory) {
  const read = (/** @type {string} */ name) => readFileSync(path.join(root, directory, name), 'utf8');
  const { license, name, version } = JSON.parse(read('package.json'));
  const texts = readdirSync(path.join(root, directory)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
  if (texts.length === 0) throw new Error(`${name} ${version} (${license}) has no text of its licence`);
  const text = texts.sort().map((file) => read(file).replace(/\r\n/g, '\n').trim());
  return `${name} ${version} (${license})\n\n${text.join('\n\n')}\n`;
}
