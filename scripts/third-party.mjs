// Writes npm/THIRD-PARTY-LICENSES: the licences of everything that is linked into the addon, on any platform, and so into the
// program of the wheels. It travels in the platform packages and the wheels.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { inSections, textsIn } from './notices.mjs';
import { readManifest, root } from './platform.mjs';

/**
 * The part of the output of `cargo metadata` that is read.
 *
 * @typedef {object} Metadata
 * @property {Crate[]} packages
 * @property {{ root: string, nodes: Node[] }} resolve
 */

/**
 * @typedef {object} Crate
 * @property {string} id
 * @property {string} name
 * @property {string} version
 * @property {string} license
 * @property {string[]} authors
 * @property {string | null} source null for crates of this repository
 * @property {string} manifest_path
 * @property {Array<{ kind: string[] }>} targets
 */

/** @typedef {{ id: string, deps: Array<{ pkg: string, dep_kinds: Array<{ kind: string | null }> }> }} Node */

const HEADER = `What is linked into the addon of @knowledgepulse/native, or the program kp-score, and its licences.

Where there is a choice of licences, the terms are those that are reproduced here. The Rust standard library is
part of both; its terms are "MIT OR Apache-2.0", Copyright (c) The Rust Project Contributors.
`;

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

/** The target of the package for platforms without one of their own. */
const WEBASSEMBLY = 'wasm32-wasip1';

/**
 * Returns the crates that the addon links on some platform, without crates that only build or test it or run in the
 * compiler.
 */
function linkedCrates() {
  const { napi } = readManifest();
  const linked = new Map([...napi.targets, WEBASSEMBLY].flatMap(linkedOn).map((crate) => [crate.id, crate]));
  return [...linked.values()].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

/** @param {Crate} crate */
function sortKey({ name, version }) {
  return `${name} ${version}`;
}

/**
 * @param {string} target
 * @returns {Crate[]}
 */
function linkedOn(target) {
  const args = ['metadata', '--format-version=1', '--locked', '--filter-platform', target];
  const output = execFileSync('cargo', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
  /** @type {Metadata} */
  const { packages, resolve } = JSON.parse(output);
  const crates = new Map(packages.map((crate) => [crate.id, crate]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  /** @type {Set<string>} */
  const linked = new Set();
  const crateOf = (/** @type {string} */ id) => /** @type {Crate} */ (crates.get(id));
  const visit = (/** @type {string} */ id) => {
    const isMacro = crateOf(id).targets.some((target) => target.kind.includes('proc-macro'));
    if (linked.has(id) || isMacro) return;
    linked.add(id);
    for (const { pkg, dep_kinds } of nodes.get(id)?.deps ?? []) {
      if (dep_kinds.some(({ kind }) => kind === null)) visit(pkg);
    }
  };
  visit(resolve.root);
  return [...linked].map(crateOf).filter(({ source }) => source !== null);
}

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

/** @returns {import('./notices.mjs').Notice[]} */
function notices() {
  const ofCrates = linkedCrates().map((crate) => ({
    title: `${crate.name} ${crate.version} (${crate.license})`,
    text: textsOf(crate).join('\n\n'),
  }));
  const ofRules = {
    title: 'The rules of Betterleaks for the keys of providers (MIT)',
    text: readFileSync(path.join(root, 'crates/clean/rules/LICENSE'), 'utf8').trim(),
  };
  return [...ofCrates, ofRules];
}

writeFileSync(path.join(root, 'npm', 'THIRD-PARTY-LICENSES'), inSections(HEADER, notices()));
