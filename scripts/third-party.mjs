// Writes npm/THIRD-PARTY-LICENSES: the licences of everything that is linked into the addon, on any platform, and so into the
// program of the wheels. It travels in the platform packages and the wheels.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { inSections, textsIn } from './notices.mjs';
import { readManifest, root } from './platform.mjs';

/**
 * A crate as `cargo metadata` has it; the source is null for crates of this repository.
 *
 * @typedef {{ name: string, version: string, license: string, authors: string[], source: string | null, manifest_path: string }} Crate
 */

const HEADER = `What is linked into the addon of @knowledgepulse/native, or the program kp-score, and its licences.

Where there is a choice of licences, the terms are those that are reproduced here. The Rust standard library is
part of both; its terms are "MIT OR Apache-2.0", Copyright (c) The Rust Project Contributors.
`;

/** The rules of Betterleaks come with its licence. */
const RULES = readFileSync(path.join(root, 'crates/clean/rules/LICENSE'), 'utf8').trim();
/** The MIT licence without the line of its holder. */
const MIT = RULES.slice(RULES.indexOf('Permission is'));

/** The target of the package for platforms without one of their own. */
const WEBASSEMBLY = 'wasm32-wasip1';

/**
 * Returns the crates that the addon or the program links on some platform, without crates that only build or test it or run in the
 * compiler.
 */
function linkedCrates() {
  const targets = [...readManifest().napi.targets, WEBASSEMBLY].flatMap((target) => ['--target', target]);
  const linking = [
    '-p',
    'knowledgepulse-native',
    '-p',
    'knowledgepulse-command',
    '--edges',
    'normal,no-proc-macro',
  ];
  const tree = cargo('tree', ...linking, '--prefix', 'none', '--format', '{p}', ...targets).split('\n');
  const linked = new Set(tree.map((line) => line.split(' ', 2).join(' ')));
  /** @type {{ packages: Crate[] }} */
  const { packages } = JSON.parse(cargo('metadata', '--format-version=1'));
  const found = packages.filter(
    ({ name, version, source }) => source !== null && linked.has(`${name} v${version}`),
  );
  return found.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

/** @param {string[]} args */
const cargo = (...args) =>
  execFileSync('cargo', [...args, '--locked'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });

/** @param {Crate} crate */
const sortKey = ({ name, version }) => `${name} ${version}`;

/**
 * Returns the texts that come with a crate: of a choice with MIT, which is shortest, that one.
 *
 * @param {Crate} crate
 */
function textsOf({ name, license, authors, manifest_path }) {
  const directory = path.dirname(manifest_path);
  const texts = textsIn(directory, /^(licen[cs]e|copying|unlicense|notice)/i, (files) => {
    const ofMit = files.filter((name) => /mit/i.test(name));
    const isChoice = /\bor\b|\//i.test(license);
    return isChoice && ofMit.length > 0
      ? [...ofMit, ...files.filter((name) => /^notice/i.test(name))]
      : files;
  });
  if (texts.length > 0) return texts;
  // Some crates name their licence but carry no copy of it.
  if (!/\bMIT\b/.test(license)) throw new Error(`${name} (${license}) has no text of its licence`);
  return [`Copyright (c) ${authors.join(', ')}\n\n${MIT}`];
}

const text = inSections(HEADER, [
  ...linkedCrates().map((crate) => ({
    title: `${crate.name} ${crate.version} (${crate.license})`,
    text: textsOf(crate).join('\n\n'),
  })),
  {
    title: 'The rules of Betterleaks for the keys of providers, and given names of Faker (MIT)',
    text: RULES,
  },
]);
const file = path.join(root, 'npm', 'THIRD-PARTY-LICENSES');
// CI builds packages meanwhile, and must not read half of it.
if (readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
