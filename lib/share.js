'use strict';

// Shares traces and files of sessions into a folder.

const { fromAddon, invalidInput } = require('./calls/errors.js');
const { writeJson } = require('./calls/json.js');
const { oneOf, readOptions } = require('./calls/options.js');
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
  const { as = '', clean = readCleaning({}, 'options.clean') } = readOptions(options ?? {}, OPTIONS);
  if (typeof folder !== 'string' || folder === '') {
    const found = folder === '' ? 'an empty string' : describe(folder);
    throw invalidInput(`folder must be the path of a folder, got ${found}`);
  }
  if (!isArray(tracesOrFiles)) {
    const message = `what is shared must be an array of traces or paths, got ${describe(tracesOrFiles)}`;
    throw invalidInput(message);
  }
  const length = readLength(tracesOrFiles, 'traces', 'ERR_INVALID_INPUT');
  const shared = Array.from({ length }, (_, index) => sharedFrom(tracesOrFiles, index));
  return JSON.parse(await fromAddon(() => native.share(shared, folder, as, clean)));
}

/**
 * @param {readonly unknown[]} list
 * @param {number} index
 * @returns {NativeShared}
 */
function sharedFrom(list, index) {
  const path = `traces[${index}]`;
  const value = readFrom(list, index, path, 'ERR_INVALID_INPUT');
  if (typeof value === 'string') return { file: value };
  if (value === null || typeof value !== 'object' || isArray(value)) {
    throw invalidInput(`${path} must be a trace or the path of a file, got ${describe(value)}`);
  }
  return { trace: writeJson(value, path, 'ERR_INVALID_TRACE') };
}

module.exports = { share };
