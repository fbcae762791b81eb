'use strict';

// What the memories of vectors and of traces have in common: their bounds, and their files.

const path = require('node:path');

const { callAddon } = require('./calls/addon.js');
const { cancellable } = require('./calls/cancel.js');
const { inRange, invalidOption, oneOf, readCallOptions } = require('./calls/options.js');
const { embedderStatus } = require('./embedder.js');
const { codeOf, codedError, localError } = require('./calls/errors.js');
const { describe } = require('./calls/reading.js');

/**
 * @import { CallOptions } from '../index.js'
 * @import { NativeCall, NativeModelIdentity, NativeSnapshot } from './binding.js'
 */

/** How many there are of something. */
const COUNT = { from: 0, whole: true };

/** Milliseconds; infinity for ever. */
const DURATION = { from: 0 };

/** The options of a new memory. */
const OPTIONS = {
  maxElements: inRange(COUNT),
  dimensions: inRange({ from: 1, whole: true }),
  ttlMs: inRange(DURATION),
};

/** The options of `load`, besides `signal`. */
const LOAD_OPTIONS = {
  maxElements: OPTIONS.maxElements,
  ttlMs: OPTIONS.ttlMs,
  model: oneOf(['check', 'any']),
};

/**
 * The native memory in a file, whose model is that of the embedder unless any will do.
 *
 * @template {{ model: NativeModelIdentity | null }} Native
 * @param {{ load(path: string, maxElements?: number, ttlMs?: number, call?: NativeCall): Promise<Native> }} Class
 * @param {unknown} file
 * @param {unknown} options
 * @param {(loaded: Native, identity: NativeModelIdentity) => void} check throws if vectors of this model do not compare with those loaded
 * @returns {Promise<Native>}
 */
async function loadMemory(Class, file, options, check) {
  const resolved = readPath(file);
  const { maxElements, ttlMs, model = 'check', signal } = readCallOptions(options, LOAD_OPTIONS);
  const loaded = await callAddon(signal, (call) => Class.load(resolved, maxElements, ttlMs, call));
  const comparing = () => requireModel(resolved, loaded.model, (identity) => check(loaded, identity));
  // The embedder is not loaded for a call that nobody waits for.
  if (model === 'check') await cancellable(comparing, signal);
  return loaded;
}

/**
 * Throws if the vectors of a memory do not compare with those of the embedder of this process, as far as that is known.
 *
 * @param {string} file where the memory was loaded from
 * @param {import('./binding.js').NativeModelIdentity | null} held the model that its vectors come from
 * @param {(identity: import('./binding.js').NativeModelIdentity) => void} check throws if those of this model do not compare
 */
async function requireModel(file, held, check) {
  if (held === null) return;
  const { available, model, dtype } = await embedderStatus();
  if (!available || model === null || dtype === null) return;
  try {
    check({ model, dtype });
  } catch (error) {
    if (codeOf(error) !== 'ERR_MEMORY_OTHER_MODEL') throw localError(error);
    // The core's message names neither the file nor the remedy.
    throw codedError(
      Error,
      'ERR_MEMORY_OTHER_MODEL',
      `${file} holds vectors of ${held.model} (${held.dtype}), which do not compare with those of the embedder, ` +
        `${model} (${dtype}): use another file, configure the ` +
        "embedder that this one was made with, or load it with { model: 'any' }",
    );
  }
}

/**
 * What a memory in the addon has, whatever it holds.
 *
 * @typedef {object} NativeMemory
 * @property {number} size
 * @property {import('./binding.js').NativeBounds} bounds
 * @property {NativeModelIdentity | null} model
 * @property {() => void} evictExpired
 * @property {() => void} clear
 * @property {() => NativeSnapshot} snapshot
 */

/** A bounded first-in-first-out memory of vectors or of traces. */
class BoundedMemory {
  #native;

  /** @param {() => NativeMemory} native the one in the addon, which is asked for at every call */
  constructor(native) {
    this.#native = native;
  }

  /** How many vectors or traces the memory holds; expired ones do not count. */
  get size() {
    return this.#native().size;
  }

  /** How many of them are kept. */
  get maxElements() {
    return this.#native().bounds.maxElements;
  }

  /** How many milliseconds each lives; `Infinity` for ever. */
  get ttlMs() {
    return this.#native().bounds.ttlMs;
  }

  /**
   * The model that the vectors or embeddings come from, if that is known.
   *
   * @returns {{ model: string, dtype: string } | null}
   */
  get model() {
    const identity = this.#native().model;
    return identity === null ? null : { model: identity.model, dtype: identity.dtype };
  }

  /**
   * Returns what expired ones take of memory. They no longer count anyway.
   *
   * @returns {void}
   */
  evictExpired() {
    this.#native().evictExpired();
  }

  /**
   * Removes every vector or trace, and forgets the model.
   *
   * @returns {void}
   */
  clear() {
    this.#native().clear();
  }

  /**
   * Writes the memory to a file, in the safetensors format, as it is at the call. Rejects with `ERR_MEMORY_IO`.
   *
   * @param {string} file
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async save(file, options) {
    const resolved = readPath(file);
    const { signal } = readCallOptions(options);
    // Of several saves to one file the last call wins: the addon keeps a later snapshot that is there already.
    await callAddon(signal, (call) => this.#native().snapshot().save(resolved, call));
  }
}

/** @param {unknown} file */
function readPath(file) {
  if (typeof file !== 'string') {
    throw invalidOption(TypeError, `path must be a string, got ${describe(file)}`);
  }
  if (file === '') throw invalidOption(RangeError, 'path must not be empty');
  // The directory of the process may change before it is used.
  return path.resolve(file);
}

module.exports = { BoundedMemory, COUNT, OPTIONS, loadMemory };
