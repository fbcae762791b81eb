'use strict';

// The options of cleaning.

const { invalidOption, ofType, readCallOptions, readOptions } = require('../calls/options.js');

/** @import { PrivacyLevel } from '../../index.js' */

/**
 * What the addon is told, and the signal.
 *
 * @typedef {{ identifiers: boolean, strict: boolean, signal?: AbortSignal }} Settings
 */

/** The first is the one that is taken if none is named. */
const LEVELS = /** @type {const} */ (['aggregated', 'federated', 'private']);

const OPTIONS = { level: readLevel, strict: ofType('boolean') };

/**
 * Refuses further arguments: as a third one, options would have no effect, and the secrets that they ask for would stay.
 *
 * @param {IArguments} given the arguments of a call that takes two
 */
function refuseMore(given) {
  if (
    given.length <= 2 ||
    Array.prototype.every.call(given, (each, index) => index < 2 || each === undefined)
  )
    return;
  throw invalidOption(
    TypeError,
    `this call takes two arguments, got ${given.length}: pass the level as an option, { level, strict }`,
  );
}

/**
 * The settings of a call that cannot be aborted. As for the SDK's, a string is the level.
 *
 * @param {unknown} given
 * @returns {Settings}
 */
function readSettings(given) {
  if (given === undefined) return settingsOf({});
  if (typeof given === 'string') return settingsOf({ level: readLevel(given, 'level') });
  return settingsOf(readOptions(given, OPTIONS));
}

/**
 * The settings of a call that can be aborted.
 *
 * @param {unknown} given
 * @returns {Settings}
 */
function readCallSettings(given) {
  if (typeof given === 'string') return readSettings(given);
  const { signal, ...options } = readCallOptions(given, OPTIONS);
  return { ...settingsOf(options), signal };
}

/**
 * @param {unknown} value
 * @param {string} path
 */
function readLevel(value, path) {
  if (typeof value !== 'string') throw invalidOption(TypeError, `${path} must be a string`);
  if (!LEVELS.some((each) => each === value)) {
    const message = `${path} must be 'aggregated', 'federated' or 'private', got ${JSON.stringify(value)}`;
    throw invalidOption(RangeError, message);
  }
  return value;
}

/**
 * @param {{ level?: string, strict?: boolean }} options
 * @returns {Settings}
 */
function settingsOf({ level = LEVELS[0], strict = false }) {
  return { identifiers: level !== 'private', strict };
}

module.exports = { LEVELS, readCallSettings, readSettings, refuseMore };
