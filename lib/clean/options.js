'use strict';

// The options of cleaning.

const { invalidOption, ofType, readCallOptions, readOptions } = require('../calls/options.js');

/** @import { PrivacyLevel } from '../../index.js' */

/**
 * The arguments for the addon, and the signal.
 *
 * @typedef {{ identifiers: boolean, strict: boolean, signal?: AbortSignal }} Settings
 */

/** The levels; the first is the default. */
const LEVELS = /** @type {const} */ (['aggregated', 'federated', 'private']);

const OPTIONS = { level: readLevel, strict: ofType('boolean') };

/**
 * Refuses a third argument: options there would have no effect, and secrets would stay.
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
 * Reads the settings of a synchronous call. A string is the level, as for the SDK.
 *
 * @param {unknown} given
 * @returns {Settings}
 */
function readSettings(given) {
  if (given === undefined || given === null) return settingsOf({});
  if (typeof given === 'string') return settingsOf({ level: readLevel(given, 'level') });
  return settingsOf(readOptions(given, OPTIONS));
}

/**
 * @param {unknown} given
 * @returns {Settings}
 */
function readCallSettings(given) {
  if (typeof given === 'string') return readSettings(given);
  const { signal, ...options } = readCallOptions(given, OPTIONS);
  return { ...settingsOf(options), signal };
}

/** @type {import('../calls/options.js').OptionReader<string>} */
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
