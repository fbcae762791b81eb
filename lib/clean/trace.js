'use strict';

// Cleans a trace: serialised on the event loop, cleaned on another thread.

const { localCopy } = require('../calls/addon.js');
const { codedError } = require('../calls/errors.js');
const { writeJson } = require('../calls/json.js');
const { describe, isArray } = require('../calls/reading.js');
const native = require('../loader.js').addon;
const { readCallSettings, refuseMore } = require('./options.js');
const { onAnotherThread } = require('./text.js');

/** @type {typeof import('../../index.js').cleanTrace} */
async function cleanTrace(trace, options) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const settings = readCallSettings(options);
  if (trace === null || typeof trace !== 'object' || isArray(trace)) {
    throw codedError(TypeError, 'ERR_INVALID_TRACE', `trace must be an object, got ${describe(trace)}`);
  }
  const written = writeJson(trace, 'trace', 'ERR_INVALID_TRACE');
  const { json, redactions } = await onAnotherThread(native.cleanTrace, written, settings);
  return { trace: JSON.parse(json), redactions: localCopy(redactions) };
}

module.exports = { cleanTrace };
