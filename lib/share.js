'use strict';

// Shares traces, files and folders of sessions, or those of this machine, into a folder.

const path = require('node:path');

const { withCall } = require('./calls/cancel.js');
const { oneOf, readCallOptions } = require('./calls/options.js');
const { isArray, isObject, readList, writeJson, wrongType } = require('./calls/reading.js');
const { readCleaning } = require('./clean.js');
const native = require('./loader.js').addon;

const OPTIONS = {
  as: oneOf(/** @type {const} */ (['native', 'messages', 'atif', 'knowledgepulse'])),
  clean: readCleaning,
};

/** @type {typeof import('../index.js').share} */
async function share(tracesOrFiles, folder, options) {
  // Without a form the addon takes that of the folder.
  const { signal, as = '', clean = readCleaning({}, 'options.clean') } = readCallOptions(options, OPTIONS);
  if (typeof folder !== 'string' || folder === '')
    throw wrongType('ERR_INVALID_INPUT', 'folder', 'the path of a folder', folder);
  const shared = readShared(tracesOrFiles);
  // Resolved now, because the working directory may change before it is used.
  const target = path.resolve(folder);
  /** @type {Promise<string> | undefined} */
  let begun;
  const json = await withCall(signal, (call) => {
    begun = native.share(shared, target, as, clean, call);
    return begun;
  }).finally(() => begun?.catch(() => {})); // Until what a cancelled call had begun in the folder is gone.
  const { sessions, leftOut, warning } = JSON.parse(json);
  if (warning !== null) process.emitWarning(warning, { type: 'KnowledgePulseWarning' });
  return { sessions: sessions.map(inCamelCase), leftOut };
}

/**
 * Returns paths, and traces in JSON, each with whether it is a path.
 *
 * @param {unknown} list null for the sessions of this machine
 */
function readShared(list) {
  if (list !== null && !isArray(list))
    throw wrongType('ERR_INVALID_INPUT', 'what is shared', 'an array of traces or paths, or null', list);
  /** @type {(value: unknown, place: string) => [string, boolean]} */
  const read = (value, place) => {
    if (typeof value === 'string') return [path.resolve(value), true];
    if (!isObject(value)) throw wrongType('ERR_INVALID_INPUT', place, 'a trace or a path', value);
    return [writeJson(value, place, 'ERR_INVALID_TRACE'), false];
  };
  return list && readList(list, 'traces', 'ERR_INVALID_INPUT', read);
}

/**
 * Returns a line of a manifest with the names of JavaScript, and those of its sub-agents.
 *
 * @param {Record<string, unknown>} line
 * @returns {Record<string, unknown>}
 */
function inCamelCase(line) {
  const named = (/** @type {string} */ name) =>
    name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  const valued = (/** @type {string} */ name, /** @type {any} */ value) =>
    name === 'subagents' ? value.map(inCamelCase) : value;
  const fields = Object.entries(line).map(([name, value]) => [named(name), valued(name, value)]);
  return Object.fromEntries(fields);
}

module.exports = { share };
