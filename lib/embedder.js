'use strict';

// The embedder of the process: its configuration, what became of it, and a text's embedding.

const { isMainThread } = require('node:worker_threads');

const { readOptions, resolveOptions } = require('./embedder-options.js');
const { codedError, localError } = require('./errors.js');
const native = require('./loader.js').addon;

let configured = false;

/** Tells the addon where the embedder comes from, once per process: nothing is looked for before that. */
function ensureConfigured() {
  if (configured) return;
  if (!native.isConfigured()) configure({});
  configured = true;
}

function configure(options) {
  const isFirst = native.configure(resolveOptions(options));
  // The addon notices the end of the process by itself, but too late if ONNX Runtime is just being loaded.
  if (isFirst && isMainThread) process.once('exit', native.stop);
  return isFirst;
}

function configureEmbedder(options) {
  const checked = readOptions(options);
  if (native.isConfigured() || !configure(checked)) {
    throw codedError(
      Error,
      'ERR_ALREADY_CONFIGURED',
      'the embedder of this process is already configured: call configureEmbedder before the first evaluateValue or embedderStatus',
    );
  }
  configured = true;
}

async function embedderStatus() {
  ensureConfigured();
  // A copy, so that the object is of the caller's realm.
  return { ...(await native.embedderStatus()) };
}

/**
 * Embeds a text, of which the first 512 tokens count. Rejects with the embedder's failure if there is none.
 *
 * @param {string} text
 * @returns {Promise<Float32Array>}
 */
async function embed(text) {
  ensureConfigured();
  try {
    // A copy, so that the array is of the caller's realm.
    return new Float32Array(await native.embed(text));
  } catch (error) {
    throw localError(error);
  }
}

function tellWarning() {
  const warning = native.takeWarning();
  if (warning === null) return;
  process.emitWarning(
    `The embedder does not work, so traces are scored with a novelty of 0.5: ${warning.reason}`,
    { type: 'KnowledgePulseWarning', code: warning.code },
  );
}

module.exports = { configureEmbedder, embed, embedderStatus, ensureConfigured, tellWarning };
