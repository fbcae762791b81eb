'use strict';

// Cleans a trace: serialised on the event loop, cleaned on another thread.

const { localCopy } = require('../calls/addon.js');
const { readNodes, writeNodes } = require('../calls/nodes.js');
const native = require('../loader.js').addon;
const { readCallSettings, refuseMore } = require('./options.js');
const { onAnotherThread } = require('./text.js');

/** @import { CleanedTrace } from '../../index.js' */

/** @type {typeof import('../../index.js').cleanTrace} */
async function cleanTrace(trace, options) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const settings = readCallSettings(options);
  const written = writeNodes(trace);
  const { nodes, redactions } = await onAnotherThread(native.cleanTrace, written, settings);
  const copy = /** @type {CleanedTrace['trace']} */ (readNodes(nodes));
  return { trace: copy, redactions: localCopy(redactions) };
}

module.exports = { cleanTrace };
