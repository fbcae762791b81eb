'use strict';

// Why a file of an installation cannot be used, in classes that need different remedies.

const fs = require('node:fs');
const path = require('node:path');

/**
 * What is wrong with a file: it is `missing`; it is `unreadable`, because the system refuses it for want of a permission
 * or because a disk fails; or it is `damaged`.
 *
 * @typedef {{ kind: 'missing' | 'unreadable' | 'damaged', reason: string }} Obstacle
 */

/**
 * What keeps an addon from being loaded: besides, it is `foreign`, made for another system, or it was `refused` by this one.
 *
 * @typedef {{ kind: Obstacle['kind'] | 'foreign' | 'refused', reason: string }} Fault
 */

/**
 * Of the package or directory of this name, which was to have a library, or the addon in WebAssembly.
 *
 * @typedef {Fault & { name: string, isLibrary?: boolean, error: unknown }} LoadFailure
 */

/**
 * What keeps a file from being read; undefined if nothing does.
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
    const target = linkTarget(file);
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
 * Where a symbolic link leads; undefined for everything else.
 *
 * @param {string} file
 */
function linkTarget(file) {
  try {
    return fs.readlinkSync(file);
  } catch {
    return undefined;
  }
}

/**
 * The directory of an installed package that cannot be resolved: its files are missing, or it may not be read, or it is
 * a link that leads nowhere. Undefined if it is not installed.
 *
 * @param {string} name
 * @returns {string | undefined}
 */
function unresolvedPackage(name) {
  // Not there in a compiled program, nor under Plug'n'Play.
  const bases = require.resolve.paths?.(name) ?? [];
  return bases.map((base) => path.join(base, name)).find(isTaken);
}

/**
 * Whether a path is taken, as far as that can be told: in a directory that may not be searched, it may be.
 *
 * @param {string} directory
 */
function isTaken(directory) {
  try {
    fs.lstatSync(directory);
    return true;
  } catch (error) {
    // A directory whose entry is not visible belongs to another user, and not to this installation.
    return !isAbsence(error) && fs.existsSync(path.dirname(directory));
  }
}

module.exports = { obstacleTo, unresolvedPackage };
