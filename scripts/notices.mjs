// Collects the licences of the packages that are bundled into something.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { readManifest, root } from './platform.mjs';

/**
 * Returns the licences of the packages that these files are of, which are bundled into something.
 *
 * @param {string} bundle
 * @param {string[]} files
 */
export function notices(bundle, files) {
  const directories = files.map((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  const packages = [...new Set(directories.filter((directory) => directory !== undefined))].sort();
  return inSections(`What is bundled into ${bundle}, and its licences.\n`, packages.map(noticeOf));
}

/** @typedef {{ title: string, text: string }} Notice */

/**
 * @param {string} header
 * @param {Notice[]} all of which those with the same text become one
 */
export function inSections(header, all) {
  /** @type {Map<string, string[]>} */
  const titles = new Map();
  for (const { title, text } of all) titles.set(text, [...(titles.get(text) ?? []), title]);
  const sections = [...titles].map(([text, own]) => `${own.join('\n')}\n\n${text}\n`);
  return [header, ...sections].join(`\n${'─'.repeat(80)}\n\n`);
}

/**
 * @param {string} directory
 * @returns {Notice}
 */
function noticeOf(directory) {
  const { license, name, version } = readManifest(path.join(root, directory));
  const title = `${name} ${version} (${license})`;
  const texts = textsIn(path.join(root, directory), /^(licen[cs]e|notice)/i);
  if (texts.length === 0) throw new Error(`${title} has no text of its licence`);
  return { title, text: texts.join('\n\n') };
}

/**
 * Returns the texts of the files of a directory whose names match.
 *
 * @param {string} directory
 * @param {RegExp} pattern
 * @param {(names: string[]) => string[]} [choose]
 */
export function textsIn(directory, pattern, choose = (names) => names) {
  const names = readdirSync(directory).filter((name) => pattern.test(name));
  return choose(names)
    .sort()
    .map((name) => readFileSync(path.join(directory, name), 'utf8').replace(/\r\n/g, '\n').trim());
}
