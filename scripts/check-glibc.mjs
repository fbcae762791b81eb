// Checks that libraries need no newer glibc and libstdc++ than the oldest supported Linux has (RHEL 8, Debian 10).
//
//   node scripts/check-glibc.mjs FILE...

import { execFileSync } from 'node:child_process';
import path from 'node:path';

import { isProgram } from './platform.mjs';
import { runScript } from './setup.mjs';

/**
 * The newest version of each library's symbols that may be needed.
 *
 * @type {Record<'GLIBC' | 'GLIBCXX' | 'CXXABI', string>}
 */
export const FLOOR = { GLIBC: '2.28', GLIBCXX: '3.4.25', CXXABI: '1.3.11' };

/**
 * Throws if a library needs newer symbols; returns the newest that it needs, by the library they are from.
 *
 * @param {string} file
 */
export function checkGlibc(file) {
  const symbols = execFileSync('objdump', ['--dynamic-syms', file], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  /** @type {Partial<typeof FLOOR>} */
  const newest = {};
  for (const [, name, version] of symbols.matchAll(/\b(GLIBC|GLIBCXX|CXXABI)_(\d[\d.]*)/g)) {
    const library = /** @type {keyof typeof FLOOR} */ (name);
    const known = newest[library];
    if (known === undefined || isNewer(version, known)) newest[library] = version;
  }
  if (!newest.GLIBC) throw new Error(`${file} needs no glibc at all: it is not for glibc, or objdump failed`);
  for (const [library, version] of Object.entries(newest)) {
    const floor = FLOOR[/** @type {keyof typeof FLOOR} */ (library)];
    if (isNewer(version, floor)) {
      throw new Error(`${file} needs ${library}_${version}; the oldest Linux has ${floor}`);
    }
  }
  return newest;
}

/**
 * @param {string} version
 * @param {string} other
 */
function isNewer(version, other) {
  return version.localeCompare(other, 'en', { numeric: true }) > 0;
}

if (isProgram(import.meta)) {
  await runScript(() => {
    for (const file of process.argv.slice(2)) {
      const needs = Object.entries(checkGlibc(file)).map((entry) => entry.join('_'));
      console.log(`${path.basename(file)}: ${needs.join(', ')}`);
    }
  });
}
