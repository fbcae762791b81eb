'use strict';

// Classifies why a file of an installation cannot be used, by remedy.

const fs = require('node:fs');
const path = require('node:path');

const { attempt } = require('../calls/errors.js');

/**
 * A problem with a file: `missing`; `unreadable`, for lack of a permission or because a disk fails; or `damaged`.
 *
 * @typedef {{ kind: 'missing' | 'unreadable' | 'damaged', reason: string }} Obstacle
 */

/**
 * A reason why an addon is not loaded: an obstacle; `foreign`, built for another system; or `refused` by this one.
 *
 * @typedef {{ kind: Obstacle['kind'] | 'foreign' | 'refused', reason: string }} Fault
 */

/**
 * The fault of a package or directory that should have a library, or the addon in WebAssembly.
 *
 * @typedef {Fault & { name: string, isLibrary?: boolean, error: unknown }} LoadFailure
 */

/**
 * Returns why a file cannot be read; undefined if it can.
 *
 * @param {string} file
 * @returns {Obstacle | undefined}
 */
function obstacleTo(file) {
  try {
    const stats = fs.statSync(file);
    if (stats.isDirectory()) return { kind: 'damaged', reason: `${file} is a directory` };
    if (stats.size === 0) return { kind: 'damaged', reason: `${file} is empty` };
    fs.closeSync(fs.openSync(file, 'r'));
    return undefined;
  } catch (error) {
    if (!isAbsence(error))
      return {
        kind: 'unreadable',
        reason: `${file} cannot be read: ${/** @type {Error} */ (error).message}`,
      };
    const target = attempt(() => fs.readlinkSync(file), undefined);
    const reason = target === undefined ? 'does not exist' : `is a link to ${target}, which does not exist`;
    return { kind: 'missing', reason: `${file} ${reason}` };
  }
}

/** @param {unknown} error */
function isAbsence(error) {
  const { code } = /** @type {NodeJS.ErrnoException} */ (error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/**
 * Returns the directory of an installed package that cannot be resolved: files are missing, it is unreadable, or it is a broken link.
 * Undefined if it is not installed.
 *
 * @param {string} name
 * @returns {string | undefined}
 */
function unresolvedPackage(name) {
  // Absent in a compiled program and under Plug'n'Play.
  const bases = require.resolve.paths?.(name) ?? [];
  return bases.map((base) => path.join(base, name)).find(isTaken);
}

/**
 * Returns whether a path exists, or may exist because its directory is not searchable.
 *
 * @param {string} directory
 */
function isTaken(directory) {
  try {
    fs.lstatSync(directory);
    return true;
  } catch (error) {
    // An invisible entry belongs to another user, not to this installation.
    return !isAbsence(error) && fs.existsSync(path.dirname(directory));
  }
}

module.exports = { obstacleTo, unresolvedPackage };
