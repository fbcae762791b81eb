'use strict';

// Detects the C library of Linux: glibc or musl.

const fs = require('node:fs');

const { attempt } = require('../calls/errors.js');

/**
 * Returns the C library of this process and its version; null on other systems, or where unknown.
 *
 * @returns {{ libc: 'glibc' | 'musl' | null, libcVersion: string | null }}
 */
function systemLibc() {
  if (process.platform !== 'linux') return { libc: null, libcVersion: null };
  const report = /** @type {{ header: { glibcVersionRuntime?: string } } | undefined} */ (
    process.report?.getReport()
  );
  const glibc = report?.header.glibcVersionRuntime;
  if (glibc !== undefined) return { libc: 'glibc', libcVersion: glibc };
  // Not every system has this directory, and not every user may read it.
  const loader = attempt(() => fs.readdirSync('/lib').find((name) => name.startsWith('ld-musl-')), undefined);
  if (loader === undefined) return { libc: null, libcVersion: null };
  // The permission model of Node.js forbids processes.
  return { libc: 'musl', libcVersion: attempt(() => muslVersion(`/lib/${loader}`), null) };
}

/**
 * Returns the version that the loader of musl prints when it is run alone.
 *
 * @param {string} loader
 */
function muslVersion(loader) {
  // Loaded late, because it takes 2 of the 17 ms of an import of the package.
  const { spawnSync } = require('node:child_process');
  const { stderr } = spawnSync(loader, { encoding: 'utf8' });
  return /^Version (\S+)/m.exec(stderr)?.[1] ?? null;
}

module.exports = { systemLibc };
