'use strict';

// The embedder of the process: its configuration, what became of it, and a text's embedding.

const { isMainThread } = require('node:worker_threads');

const { cancellable, throwIfAborted } = require('./calls/abort.js');
const { readCallOptions } = require('./calls/options.js');
const { readOptions, resolveOptions } = require('./embedder-options.js');
const { codedError, fromAddon } = require('./calls/errors.js');
const { custom, inspectAs } = require('./inspect.js');
const native = require('./loader.js').addon;
const { isArray, readFrom, readLength } = require('./calls/reading.js');

/** The length of an embedding. */
const DIMENSIONS = 384;

let configured = false;

// Every thread that could use the embedder, because any of them may be the one that configures it.
fromAddon(() => native.waitAtEnd());
// The addon notices the end of the process by itself, but too late if ONNX Runtime is just being loaded.
if (isMainThread && !process.listeners('exit').includes(native.stop)) process.once('exit', native.stop);

/** Tells the addon where the embedder comes from, once per process: nothing is looked for before that. */
function ensureConfigured() {
  if (configured) return;
  if (!native.isConfigured()) configure({});
  configured = true;
}

function configure(options) {
  const resolved = resolveOptions(options);
  return fromAddon(() => native.configure(resolved));
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

/** So many texts of a batch are in flight: enough for every lane. */
const WINDOW = 64;

class Embedder {
  get dimensions() {
    return DIMENSIONS;
  }

  [custom](depth, options) {
    return inspectAs('Embedder', { dimensions: DIMENSIONS }, depth, options);
  }

  async embed(text, options) {
    const { signal } = readCallOptions(options);
    const checked = readText(text, 'text');
    throwIfAborted(signal);
    return embed(checked, signal);
  }

  async embedBatch(texts, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: 'function' });
    if (!isArray(texts)) throw invalidText('texts must be an array');
    const total = readLength(texts, 'texts', 'ERR_INVALID_TEXT');
    const checked = [];
    for (let index = 0; index < total; index++) {
      const path = `texts[${index}]`;
      checked.push(readText(readFrom(texts, index, path, 'ERR_INVALID_TEXT'), path));
    }
    throwIfAborted(signal);
    const embeddings = [];
    const inFlight = [];
    const takeFirst = async () => {
      const embedding = await inFlight.shift();
      // Those in flight may all be embedded by now, so nothing else would tell.
      throwIfAborted(signal);
      embeddings.push(embedding);
      onProgress?.({ done: embeddings.length, total });
    };
    for (const text of checked) {
      if (inFlight.length === WINDOW) await takeFirst();
      throwIfAborted(signal);
      const embedding = embed(text, signal);
      // It may be looked at later.
      embedding.catch(() => {});
      inFlight.push(embedding);
    }
    while (inFlight.length > 0) await takeFirst();
    throwIfAborted(signal);
    return embeddings;
  }
}

/** Lone surrogates become U+FFFD, whatever the engine would make of them. */
function readText(text, path) {
  if (typeof text !== 'string') {
    throw invalidText(`${path} must be a string, got ${text === null ? 'null' : typeof text}`);
  }
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

function invalidText(message) {
  return codedError(TypeError, 'ERR_INVALID_TEXT', message);
}

/**
 * Embeds a text, of which the first 512 tokens count. Rejects with the embedder's failure if there is none.
 *
 * @param {string} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<Float32Array>}
 */
async function embed(text, signal) {
  ensureConfigured();
  const call = signal && new native.NativeCall();
  const begin = () => fromAddon(() => native.embed(text, call));
  // A copy, so that the array is of the caller's realm.
  return new Float32Array(await cancellable(begin, call, signal));
}

function tellWarning() {
  const warning = native.takeWarning();
  if (warning === null) return;
  process.emitWarning(
    `The embedder does not work, so traces are scored with a novelty of 0.5: ${warning.reason}`,
    { type: 'KnowledgePulseWarning', code: warning.code },
  );
}

module.exports = {
  DIMENSIONS,
  Embedder,
  configureEmbedder,
  embed,
  embedderStatus,
  ensureConfigured,
  tellWarning,
};
