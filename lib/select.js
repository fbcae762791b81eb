'use strict';

// Chooses a set of traces. Traces are read on the event loop, some at a time; other threads do the rest.

const { setTimeout } = require('node:timers/promises');

const { cancellable } = require('./calls/cancel.js');
const { errorOfTrace, fromAddon } = require('./calls/errors.js');
const {
  inRange,
  invalidOption,
  ofType,
  oneOf,
  readCallOptions,
  readCount,
  recordOf,
} = require('./calls/options.js');
const { lengthOf, readFrom, wrongType } = require('./calls/reading.js');
const { embed } = require('./embedder.js');
const native = require('./loader.js').addon;
const { nativeOf, readMemory } = require('./trace-memory.js');

/**
 * @import { OptionReader } from './calls/options.js'
 * @import { NativeCandidates } from './binding.js'
 */

/** The number of traces that are read at a time. */
const BATCH = 64;

/** The number of listed traces that a chosen one stands for. */
const MOST_LISTED = 16;

/** The interval of progress reports, in milliseconds. */
const INTERVAL = 50;

const readPercent = inRange({ from: 0, to: 100 });

/** @type {OptionReader<[number, boolean]>} a number of traces, or a percentage such as `'10%'` */
function readShare(value, path) {
  const percent = typeof value === 'string' ? /^(\d+(?:\.\d+)?)%$/.exec(value) : null;
  if (percent) return [readPercent(Number(percent[1]), path), true];
  if (typeof value !== 'number')
    throw wrongType('ERR_INVALID_OPTION', path, "a number or a percentage like '10%'", value);
  return [readCount(value, path), false];
}

const SELECT_OPTIONS = {
  count: readShare,
  failures: readShare,
  known: readMemory,
  labels: recordOf(ofType('boolean')),
  method: oneOf(/** @type {const} */ (['lexical', 'full'])),
  onProgress: ofType('function'),
};

/** @type {typeof import('../index.js').select} */
async function select(traces, options) {
  const given = readCallOptions(options, SELECT_OPTIONS, ['count']);
  const { signal, count, failures, labels = [], method = 'lexical', onProgress } = given;
  const known = nativeOf(given.known);
  if (known !== undefined && known.method !== method) {
    throw invalidOption(
      RangeError,
      `options.known compares by method '${known.method}', not by '${method}': use another memory, or that method`,
    );
  }
  const length = lengthOf(traces, 'traces', 'ERR_INVALID_TRACE');
  signal?.throwIfAborted();
  const candidates = new native.NativeCandidates(method, labels);
  const call = new native.NativeCall();
  /** @param {number} index of a trace, whose digest is returned */
  const read = (index) => {
    try {
      const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
      return fromAddon(() => candidates.read(trace, method === 'full')) ?? '';
    } catch (error) {
      throw errorOfTrace(error, index);
    }
  };
  const choose = async () => {
    if (known !== undefined) await fromAddon(() => candidates.addKnown(known, call));
    for (let first = 0; first < length; first += BATCH) {
      signal?.throwIfAborted();
      const batch = Array.from({ length: Math.min(BATCH, length - first) }, (_, index) =>
        read(first + index),
      );
      const vectors = method === 'full' ? await embed(batch) : [];
      await fromAddon(() => candidates.add(vectors));
    }
    const reply = fromAddon(() => candidates.select(count, failures, MOST_LISTED, call));
    const found = onProgress ? withProgress(reply, candidates, length, onProgress, call) : reply;
    return JSON.parse(await found);
  };
  return cancellable(choose, signal, () => call.cancel());
}

/**
 * Returns the reply of a call and reports its progress. An error of `onProgress` ends the call.
 *
 * @param {Promise<string>} reply
 * @param {NativeCandidates} candidates
 * @param {number} total
 * @param {(progress: { done: number, total: number }) => void} onProgress
 * @param {import('./binding.js').NativeCall} call
 */
async function withProgress(reply, candidates, total, onProgress, call) {
  let told = 0;
  const tell = () => {
    const done = candidates.compared;
    if (done > told) onProgress({ done, total });
    told = done;
  };
  try {
    for (;;) {
      const result = await Promise.race([reply, setTimeout(INTERVAL, undefined)]);
      tell();
      if (result !== undefined) return result;
    }
  } catch (error) {
    call.cancel();
    throw error;
  }
}

module.exports = { select };
