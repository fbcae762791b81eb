'use strict';

// Shares traces and files of sessions into a folder.

const path = require('node:path');

const { withCall } = require('./calls/cancel.js');
const { fromAddon, invalidInput } = require('./calls/errors.js');
const { writeJson } = require('./calls/json.js');
const { isFilledIn, toldOfFilledIn } = require('./calls/outcomes.js');
const { oneOf, readCallOptions } = require('./calls/options.js');
const { describe, isArray, readFrom, readLength } = require('./calls/reading.js');
const { readCleaning } = require('./clean.js');
const native = require('./loader.js').addon;

/** @import { NativeShared } from './binding.js' */

const OPTIONS = {
  as: oneOf(/** @type {const} */ (['native', 'messages', 'atif', 'knowledgepulse'])),
  clean: readCleaning,
};

/** @type {typeof import('../index.js').share} */
async function share(tracesOrFiles, folder, options) {
  // Without a form the addon takes that of the folder.
  const { signal, as = '', clean = readCleaning({}, 'options.clean') } = readCallOptions(options, OPTIONS);
  if (typeof folder !== 'string' || folder === '') {
    const found = folder === '' ? 'an empty string' : describe(folder);
    throw invalidInput(`folder must be the path of a folder, got ${found}`);
  }
  if (!isArray(tracesOrFiles)) {
    const message = `what is shared must be an array of traces or paths, got ${describe(tracesOrFiles)}`;
    throw invalidInput(message);
  }
  const length = readLength(tracesOrFiles, 'traces', 'ERR_INVALID_INPUT');
  let filledIn = 0;
  const shared = Array.from({ length }, (_, index) => {
    const place = `traces[${index}]`;
    const value = readFrom(tracesOrFiles, index, place, 'ERR_INVALID_INPUT');
    if (isFilledIn(value)) filledIn++;
    return sharedFrom(value, place);
  });
  // Resolved now, because the working directory may change before it is used.
  const target = path.resolve(folder);
  const json = await withCall(signal, (call) =>
    fromAddon(() => native.share(shared, target, as, clean, call)),
  );
  const { sessions, leftOut } = JSON.parse(json);
  const told = toldOfFilledIn(filledIn);
  if (told !== '') process.emitWarning(told, { type: 'KnowledgePulseWarning' });
  return { sessions: sessions.map(inCamelCase), leftOut };
}

/**
 * Returns a line of a manifest with the names of JavaScript.
 *
 * @param {Record<string, unknown>} line
 */
function inCamelCase(line) {
  const named = (/** @type {string} */ name) =>
    name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(line).map(([name, value]) => [named(name), value]));
}

/**
 * @param {unknown} value
 * @param {string} place of the value in messages
 * @returns {NativeShared}
 */
function sharedFrom(value, place) {
  if (typeof value === 'string') return { file: path.resolve(value) };
  if (value === null || typeof value !== 'object' || isArray(value)) {
    throw invalidInput(`${place} must be a trace or the path of a file, got ${describe(value)}`);
  }
  return { trace: writeJson(value, place, 'ERR_INVALID_TRACE') };
}

module.exports = { share };
