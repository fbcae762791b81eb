'use strict';

// The C library of the system, of which Linux has a choice.

const fs = require('node:fs');
const path = require('node:path');

/**
 * The C library that this process runs on and its version; null where there is no choice, or where it cannot be told.
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
  const loader = muslLoader();
  if (loader === undefined) return { libc: null, libcVersion: null };
  return { libc: 'musl', libcVersion: muslVersion(loader) };
}

/**
 * The loader of musl, run by itself, tells its version.
 *
 * @param {string} loader
 */
function muslVersion(loader) {
  try {
    // Not before it is needed: it takes 2 ms of the 17 in which the package is imported.
    const { spawnSync } = require('node:child_process');
    const { stderr } = spawnSync(loader, { encoding: 'utf8' });
    return /^Version (\S+)/m.exec(stderr)?.[1] ?? null;
  } catch {
    // The permission model of Node.js lets no process be started.
    return null;
  }
}

function muslLoader() {
  try {
    const name = fs.readdirSync('/lib').find((name) => name.startsWith('ld-musl-'));
    return name && path.join('/lib', name);
  } catch {
    // Not every system has this directory, and not every user may read it.
    return undefined;
  }
}

module.exports = { systemLibc };
