'use strict';

// The embedder of the process: configuration, state and embedding.

const { isMainThread } = require('node:worker_threads');

const { callAddon } = require('./calls/addon.js');
const { cancellable } = require('./calls/cancel.js');
const { ofType, readCallOptions } = require('./calls/options.js');
const { readEmbedderOptions, resolveOptions } = require('./embedder-options.js');
const { codedError, fromAddon } = require('./calls/errors.js');
const native = require('./loader.js').addon;
const { isArray, readFrom, readLength } = require('./calls/reading.js');

/** @import { EmbedderOptions, EmbedderStatus } from '../index.js' */

let configured = false;

// Registered in every thread, because any of them may configure the embedder.
fromAddon(() => native.waitAtEnd());
// The addon notices the end of the process too late while ONNX Runtime is being loaded.
if (isMainThread && !process.listeners('exit').includes(native.stop)) process.once('exit', native.stop);

/** Configures the embedder of the addon, once per process; nothing is searched before that. */
function ensureConfigured() {
  if (configured) return;
  if (!native.isConfigured()) configure({});
  configured = true;
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
      'ERR_ALREADY_CONFIGURED',
      'the embedder of this process is already configured: call configureEmbedder before the first evaluateValue or embedderStatus',
    );
  }
  configured = true;
}

/** @type {typeof import('../index.js').embedderStatus} */
async function embedderStatus() {
  ensureConfigured();
  // A copy, so that the object is of the caller's realm.
  return /** @type {EmbedderStatus} */ ({ ...(await native.embedderStatus()) });
}

/** The number of texts of a batch in flight, enough for every lane. */
const MAX_IN_FLIGHT = 64;

/** @type {typeof import('../index.js').embed} */
async function embed(texts, options) {
  const { signal, onProgress } = readCallOptions(options, { onProgress: ofType('function') });
  if (!isArray(texts)) throw invalidText('texts must be an array');
  const total = readLength(texts, 'texts', 'ERR_INVALID_TEXT');
  /** @type {string[]} */
  const checked = [];
  for (let index = 0; index < total; index++) {
    const path = `texts[${index}]`;
    checked.push(readText(readFrom(texts, index, path, 'ERR_INVALID_TEXT'), path));
  }
  return cancellable(() => embedAll(checked, signal, onProgress), signal);
}

/**
 * @param {string[]} texts
 * @param {AbortSignal | undefined} signal
 * @param {((progress: import('../index.js').BatchProgress) => void) | undefined} onProgress
 */
async function embedAll(texts, signal, onProgress) {
  /** @type {Float32Array[]} */
  const embeddings = [];
  /** @type {Array<Promise<Float32Array>>} */
  const inFlight = [];
  const takeFirst = async () => {
    const embedding = /** @type {Float32Array} */ (await inFlight.shift());
    // All texts in flight may be embedded already, so no rejection reports the abort.
    signal?.throwIfAborted();
    embeddings.push(embedding);
    onProgress?.({ done: embeddings.length, total: texts.length });
  };
  for (const text of texts) {
    if (inFlight.length === MAX_IN_FLIGHT) await takeFirst();
    signal?.throwIfAborted();
    const embedding = embedText(text, signal);
    // Its rejection may be handled later.
    embedding.catch(() => {});
    inFlight.push(embedding);
  }
  while (inFlight.length > 0) await takeFirst();
  signal?.throwIfAborted();
  return embeddings;
}

/**
 * Reads a text. Lone surrogates become U+FFFD, whatever the engine does with them.
 *
 * @param {unknown} text
 * @param {string} path
 */
function readText(text, path) {
  if (typeof text !== 'string') {
    throw invalidText(`${path} must be a string, got ${text === null ? 'null' : typeof text}`);
  }
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** @param {string} message */
function invalidText(message) {
  return codedError(TypeError, 'ERR_INVALID_TEXT', message);
}

/**
 * Embeds the first 512 tokens of a text. Rejects with the embedder's failure if it does not work.
 *
 * @param {string} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<Float32Array>}
 */
async function embedText(text, signal) {
  ensureConfigured();
  // A copy, so that the array is of the caller's realm.
  return new Float32Array(await callAddon(signal, (call) => native.embed(text, call)));
}

/** Emits one warning per process if the embedder is broken. */
function tellWarning() {
  const warning = native.takeWarning();
  if (warning === null) return;
  process.emitWarning(
    `The embedder does not work, so traces are scored with a novelty of 0.5: ${warning.reason}`,
    { type: 'KnowledgePulseWarning', code: warning.code },
  );
}

module.exports = {
  configureEmbedder,
  embed,
  embedderStatus,
  ensureConfigured,
  tellWarning,
};
