'use strict';

// The embedder of the process: configuration, state and embedding.

const { isMainThread } = require('node:worker_threads');

const { withCall } = require('./calls/cancel.js');
const { readEmbedderOptions, resolveOptions } = require('./embedder-options.js');
const { codedError, fromAddon } = require('./calls/errors.js');
const { readCallOptions } = require('./calls/options.js');
const native = require('./loader.js').addon;
const { readList, readText } = require('./calls/reading.js');

/** @import { EmbedderOptions } from '../index.js' */

// Registered in every thread, because any of them may configure the embedder.
fromAddon(() => native.waitAtEnd());
// The addon notices the end of the process too late while ONNX Runtime is being loaded.
if (isMainThread && !process.listeners('exit').includes(native.stop)) process.once('exit', native.stop);

/** Configures the embedder of the addon, once per process; nothing is searched before that. */
function ensureConfigured() {
  if (!native.isConfigured()) configure({});
}

/**
 * Configures the embedder; returns whether this was the first call.
 *
 * @param {EmbedderOptions} options
 */
function configure(options) {
  const resolved = resolveOptions(options);
  return fromAddon(() => native.configure(resolved));
}

/** @type {typeof import('../index.js').configureEmbedder} */
function configureEmbedder(options) {
  const checked = readEmbedderOptions(options);
  if (native.isConfigured() || !configure(checked)) {
    throw codedError(
      Error,
      'ERR_INVALID_OPTION',
      'the embedder of this process is already configured: call configureEmbedder before the first evaluateValue or embedderStatus',
    );
  }
}

/** @type {typeof import('../index.js').embedderStatus} */
async function embedderStatus() {
  ensureConfigured();
  return JSON.parse(await native.embedderStatus());
}

/** The number of texts in flight, enough for every lane. */
const MAX_IN_FLIGHT = 64;

/** @type {typeof import('../index.js').embed} */
async function embed(texts, options) {
  const { signal } = readCallOptions(options);
  // Lone surrogates become U+FFFD, whatever the engine does with them.
  const readWhole = (/** @type {unknown} */ text, /** @type {string} */ path) =>
    readText(text, path).replace(/\p{Surrogate}/gu, '\uFFFD');
  const checked = readList(texts, 'texts', 'ERR_INVALID_INPUT', readWhole);
  ensureConfigured();
  /** @type {Float32Array[]} */
  const embeddings = [];
  for (let first = 0; first < checked.length; first += MAX_IN_FLIGHT) {
    const some = checked.slice(first, first + MAX_IN_FLIGHT);
    const found = await Promise.all(some.map((text) => withCall(signal, (call) => native.embed(text, call))));
    // Copies, so that the arrays are of the caller's realm.
    embeddings.push(...found.map((embedding) => new Float32Array(embedding)));
  }
  return embeddings;
}

/** Emits one warning per process if the embedder is broken. */
function tellWarning() {
  const warning = native.takeWarning();
  if (warning === null) return;
  const [code, reason] = warning;
  const message = `The embedder does not work, so traces are scored with a novelty of 0.5: ${reason}`;
  process.emitWarning(message, { type: 'KnowledgePulseWarning', code });
}

module.exports = { configureEmbedder, embed, embedderStatus, ensureConfigured, tellWarning };
