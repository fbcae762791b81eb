'use strict';

// The common part of memories of vectors and of traces: bounds and files.

const path = require('node:path');

const { callAddon, localCopy } = require('./calls/addon.js');
const { cancellable } = require('./calls/cancel.js');
const { inRange, invalidOption, oneOf, readCallOptions } = require('./calls/options.js');
const { embedderStatus } = require('./embedder.js');
const { DIMENSIONS } = require('./embedding.js');
const { codeOf, codedError, fromAddon, localError } = require('./calls/errors.js');
const { describe } = require('./calls/reading.js');

/**
 * @import { VectorCache as Public } from '../index.js'
 * @import { NativeCall, NativeModelIdentity, NativeTraceMemory, NativeVectorCache } from './binding.js'
 */

const COUNT = { from: 0, whole: true };

/** A time to live in milliseconds; infinity means for ever. */
const DURATION = { from: 0 };

/** The bounds of a new memory. */
const DEFAULTS = { maxElements: 1000, dimensions: DIMENSIONS, ttlMs: Number.POSITIVE_INFINITY };

const OPTIONS = {
  maxElements: inRange(COUNT),
  dimensions: inRange({ from: 1, whole: true }),
  ttlMs: inRange(DURATION),
};

const LOAD_OPTIONS = {
  maxElements: OPTIONS.maxElements,
  ttlMs: OPTIONS.ttlMs,
  model: oneOf(['check', 'any']),
};

/**
 * Loads a native memory from a file, and checks its model against the embedder unless `model` is `any`.
 *
 * @template {{ model: NativeModelIdentity | null }} Native
 * @param {{ load(path: string, maxElements?: number, ttlMs?: number, call?: NativeCall): Promise<Native> }} Class
 * @param {unknown} file
 * @param {unknown} options
 * @param {(loaded: Native, identity: NativeModelIdentity) => void} check throws if the loaded vectors are of another model
 * @returns {Promise<Native>}
 */
async function loadMemory(Class, file, options, check) {
  const resolved = readPath(file);
  const { maxElements, ttlMs, model = 'check', signal } = readCallOptions(options, LOAD_OPTIONS);
  const loaded = await callAddon(signal, (call) => Class.load(resolved, maxElements, ttlMs, call));
  const comparing = () => requireModel(resolved, loaded.model, (identity) => check(loaded, identity));
  // An aborted call does not load the embedder.
  if (model === 'check') await cancellable(comparing, signal);
  return loaded;
}

/**
 * Throws if the vectors of a memory are known to be of another model than the embedder of this process.
 *
 * @param {string} file of the memory
 * @param {import('./binding.js').NativeModelIdentity | null} held the model of its vectors
 * @param {(identity: import('./binding.js').NativeModelIdentity) => void} check throws if this model differs
 */
async function requireModel(file, held, check) {
  if (held === null) return;
  const { available, model, dtype } = await embedderStatus();
  if (!available || model === null || dtype === null) return;
  try {
    check({ model, dtype });
  } catch (error) {
    if (codeOf(error) !== 'ERR_MEMORY_OTHER_MODEL') throw localError(error);
    // Adds the file and the remedy, which the core's message lacks.
    throw codedError(
      Error,
      'ERR_MEMORY_OTHER_MODEL',
      `${file} holds vectors of ${held.model} (${held.dtype}), which do not compare with those of the embedder, ` +
        `${model} (${dtype}): use another file, configure the ` +
        "embedder that this one was made with, or load it with { model: 'any' }",
    );
  }
}

class BoundedMemory {
  #native;

  /** @param {() => NativeTraceMemory | NativeVectorCache} native returns the memory in the addon, at every call */
  constructor(native) {
    this.#native = native;
  }

  get size() {
    return this.#native().size;
  }

  get maxElements() {
    return this.#native().bounds.maxElements;
  }

  get ttlMs() {
    return this.#native().bounds.ttlMs;
  }

  /** @returns {{ model: string, dtype: string } | null} */
  get model() {
    return localCopy(this.#native().model);
  }

  /** @type {Public['evictExpired']} */
  evictExpired() {
    this.#native().evictExpired();
  }

  /** @type {Public['clear']} */
  clear() {
    this.#native().clear();
  }

  /** @type {Public['save']} */
  async save(file, options) {
    const resolved = readPath(file);
    const { signal } = readCallOptions(options);
    await callAddon(signal, (call) => this.#native().save(resolved, call));
  }
}

/**
 * Yields the elements of a memory from sequence number `start` to `end`, oldest first. Sequence numbers keep the order, and yield no
 * element twice, while the memory changes.
 *
 * @template {{ sequence: number }} Stored
 * @template Element
 * @param {{ stored(from: number, end: number): Stored | null }} memory
 * @param {number} start
 * @param {number} end
 * @param {(stored: Stored, index: number) => Element} toElement
 * @returns {IterableIterator<Element>}
 */
function* elements(memory, start, end, toElement) {
  for (let next = start; next < end; ) {
    const stored = fromAddon(() => memory.stored(next, end));
    if (stored === null) return;
    next = stored.sequence + 1;
    yield toElement(stored, stored.sequence - start);
  }
}

/** @param {unknown} file */
function readPath(file) {
  if (typeof file !== 'string') {
    throw invalidOption(TypeError, `path must be a string, got ${describe(file)}`);
  }
  if (file === '') throw invalidOption(RangeError, 'path must not be empty');
  // Resolved now, because the working directory may change before it is used.
  return path.resolve(file);
}

module.exports = { BoundedMemory, COUNT, DEFAULTS, OPTIONS, elements, loadMemory };
