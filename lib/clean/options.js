'use strict';

// The options of cleaning.

const { invalidOption, readCallOptions, readOption, requireOptions } = require('../calls/options.js');

/** @import { AbortSignalLike, PrivacyLevel } from '../../index.js' */

/**
 * What the addon is told, and the signal.
 *
 * @typedef {{ identifiers: boolean, strict: boolean, signal?: AbortSignalLike }} Settings
 */

/** The first is the one that is taken if none is named. */
const LEVELS = /** @type {const} */ (['aggregated', 'federated', 'private']);

/**
 * The settings of a call that cannot be aborted. As for the SDK's, a string is the level.
 *
 * @param {unknown} given
 * @returns {Settings}
 */
function readSettings(given) {
  if (given === undefined || typeof given === 'string') return settings(given, 'level', undefined);
  const options = requireOptions(given, ['level', 'strict']);
  const level = readOption(options, 'level');
  const strict = readOption(options, 'strict');
  if (strict !== undefined && typeof strict !== 'boolean') {
    throw invalidOption(TypeError, 'options.strict must be a boolean');
  }
  return settings(level, 'options.level', strict);
}

/**
 * The settings of a call that can be aborted.
 *
 * @param {unknown} given
 * @returns {Settings}
 */
function readCallSettings(given) {
  if (typeof given === 'string') return readSettings(given);
  const { signal, level, strict } = readCallOptions(given, { level: 'string', strict: 'boolean' });
  return { ...settings(level, 'options.level', strict), signal };
}

/**
 * @param {unknown} level
 * @param {string} path
 * @param {boolean | undefined} strict
 * @returns {Settings}
 */
function settings(level = LEVELS[0], path, strict = false) {
  if (typeof level !== 'string') throw invalidOption(TypeError, `${path} must be a string`);
  if (!LEVELS.some((each) => each === level)) {
    const message = `${path} must be 'aggregated', 'federated' or 'private', got ${JSON.stringify(level)}`;
    throw invalidOption(RangeError, message);
  }
  return { identifiers: level !== 'private', strict };
}

module.exports = { LEVELS, readCallSettings, readSettings };
