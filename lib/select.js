'use strict';

// Chooses a set of traces. Traces are read on the event loop, some at a time; other threads do the rest.

const { setTimeout } = require('node:timers/promises');

const { cancellable } = require('./calls/cancel.js');
const { codedError, errorOfTrace, fromAddon } = require('./calls/errors.js');
const {
  invalidOption,
  ofType,
  oneOf,
  readCallOptions,
  readOptions,
  requireNumber,
} = require('./calls/options.js');
const { describe, isArray, readFrom, readLength } = require('./calls/reading.js');
const { embed } = require('./embedder.js');
const { DIMENSIONS } = require('./embedding.js');
const native = require('./loader.js').addon;
const { nativeOfTraces } = require('./trace-memory.js');

/**
 * @import { BatchProgress, ReadonlyReasoningTrace, SelectOptions, Selection } from '../index.js'
 * @import { OptionReader } from './calls/options.js'
 * @import { NativeCandidates, NativeCount, NativeNearby, NativeTraceMemory } from './binding.js'
 */

/** The number of traces that are read at a time. */
const BATCH = 64;

/** The number of listed traces that a chosen one stands for. */
const MOST_LISTED = 16;

/** The interval of progress reports, in milliseconds. */
const INTERVAL = 50;

/** @type {OptionReader<NativeCount>} a number of traces, or a percentage such as `'10%'` */
function readCount(value, path) {
  const percent = typeof value === 'string' ? /^(\d+(?:\.\d+)?)%$/.exec(value) : null;
  if (percent) return { value: requireNumber(Number(percent[1]), path, { from: 0, to: 100 }), percent: true };
  if (typeof value !== 'number') {
    const found = typeof value === 'string' ? JSON.stringify(value) : describe(value);
    throw invalidOption(TypeError, `${path} must be a number or a percentage like '10%', got ${found}`);
  }
  return { value: requireNumber(value, path, { from: 0, whole: true }), percent: false };
}

const SELECT_OPTIONS = {
  count: readCount,
  novelty: oneOf(['lexical', 'full']),
  known: readKnown,
  quota: (/** @type {unknown} */ value, /** @type {string} */ path) =>
    readOptions(value, { failures: readCount }, path).failures,
  onProgress: ofType('function'),
};

/** @type {OptionReader<NativeTraceMemory>} */
function readKnown(value, path) {
  const known = nativeOfTraces(value);
  if (known !== undefined) return known;
  throw invalidOption(TypeError, `${path} must be a TraceMemory, got ${describe(value)}`);
}

/** @type {typeof import('../index.js').select} */
async function select(traces, options) {
  const {
    signal,
    count,
    novelty = 'lexical',
    known,
    quota,
    onProgress,
  } = readCallOptions(options, SELECT_OPTIONS);
  if (count === undefined)
    throw invalidOption(TypeError, "options.count must be a number or a percentage like '10%'");
  if (known !== undefined && known.method !== novelty) {
    throw invalidOption(
      RangeError,
      `options.known compares by novelty '${known.method}': select with novelty '${known.method}', or use another memory`,
    );
  }
  if (!isArray(traces))
    throw codedError(TypeError, 'ERR_INVALID_TRACE', `traces must be an array, got ${describe(traces)}`);
  const length = readLength(traces, 'traces', 'ERR_INVALID_TRACE');
  signal?.throwIfAborted();
  const call = new native.NativeCall();
  const candidates = new native.NativeCandidates(novelty);
  const work = async () => {
    if (known !== undefined) await fromAddon(() => candidates.addKnown(known, call));
    /** @type {Array<string | undefined>} */
    const ids = [];
    for (let first = 0; first < length; first += BATCH) {
      signal?.throwIfAborted();
      await add(candidates, traces, first, Math.min(first + BATCH, length), ids, novelty === 'full');
    }
    const reply = fromAddon(() => candidates.select(count, quota, MOST_LISTED, call));
    const found = onProgress ? withProgress(reply, candidates, length, onProgress, call) : reply;
    return toSelection(await found, ids);
  };
  return cancellable(work, signal, () => call.cancel());
}

/**
 * @param {NativeCandidates} candidates
 * @param {readonly unknown[]} traces
 * @param {number} first
 * @param {number} end
 * @param {Array<string | undefined>} ids
 * @param {boolean} embeds
 */
async function add(candidates, traces, first, end, ids, embeds) {
  /** @type {boolean[]} */
  const areKnown = [];
  const digests = [];
  for (let index = first; index < end; index++) {
    try {
      const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
      const { id, digest } = fromAddon(() => candidates.read(trace, embeds));
      ids.push(id ?? undefined);
      digests.push(digest ?? '');
      areKnown.push(isOutcomeKnown(/** @type {ReadonlyReasoningTrace} */ (trace)));
    } catch (error) {
      throw errorOfTrace(error, index);
    }
  }
  const embeddings = embeds ? await embed(digests) : undefined;
  const vectors = embeddings && new Float32Array(embeddings.length * DIMENSIONS);
  embeddings?.forEach((embedding, index) => {
    vectors?.set(embedding, index * DIMENSIONS);
  });
  await fromAddon(() => candidates.add(areKnown, vectors));
}

/**
 * Returns whether the outcome of a trace is known: `toTraces` notes unknown outcomes in `metadata.imported`.
 *
 * @param {ReadonlyReasoningTrace} trace
 */
function isOutcomeKnown(trace) {
  const metadata = readFrom(trace, 'metadata', 'trace.metadata', 'ERR_INVALID_TRACE');
  let value = /** @type {unknown} */ (metadata);
  for (const name of ['imported', 'known', 'success']) {
    if (typeof value !== 'object' || value === null) return true;
    value = readFrom(value, name, `trace.metadata.${name}`, 'ERR_INVALID_TRACE');
  }
  return value !== false;
}

/**
 * Returns the reply of a call and reports its progress. An error of `onProgress` ends the call.
 *
 * @template T
 * @param {Promise<T>} reply
 * @param {NativeCandidates} candidates
 * @param {number} total
 * @param {(progress: BatchProgress) => void} onProgress
 * @param {import('./binding.js').NativeCall} call
 * @returns {Promise<T>}
 */
async function withProgress(reply, candidates, total, onProgress, call) {
  let told = 0;
  const tell = () => {
    const done = candidates.compared;
    if (done > told) onProgress({ done, total });
    told = done;
  };
  try {
    const isDone = reply.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([isDone, setTimeout(INTERVAL, false)]))) tell();
    const result = await reply;
    tell();
    return result;
  } catch (error) {
    call.cancel();
    throw error;
  }
}

/**
 * A copy, so that the objects are of the caller's realm, with the ids.
 *
 * @param {import('./binding.js').NativeSelection} found
 * @param {Record<number, string | undefined>} ids
 * @returns {Selection}
 */
function toSelection(found, ids) {
  const toSimilar = (/** @type {NativeNearby} */ { index, similarity }) => ({
    index,
    id: ids[index],
    similarity,
  });
  const orNull = (/** @type {NativeNearby | null | undefined} */ near) => (near ? toSimilar(near) : null);
  const chosen = Array.from(found.chosen, (each, rank) => ({
    index: each.index,
    id: ids[each.index],
    rank: rank + 1,
    reason: /** @type {'coverage' | 'failure'} */ (each.reason),
    gain: each.gain,
    covered: each.covered,
    standsFor: each.standsFor,
    similar: Array.from(each.similar, toSimilar),
    nearestLeft: orNull(each.nearestLeft),
  }));
  const left = Array.from(found.left, ({ index, chosen: by, known, unfit }) => ({
    index,
    id: ids[index],
    chosen: orNull(by),
    known: known ? { index: known.index, similarity: known.similarity } : null,
    unfit: /** @type {Selection['left'][number]['unfit']} */ (unfit ?? null),
  }));
  return { chosen, left, explanation: found.explanation, coveredBefore: found.coveredBefore };
}

module.exports = { select };
