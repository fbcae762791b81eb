'use strict';

// Converts logs of agents to traces. The readers are in the addon.

const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { types } = require('node:util');

const { cancellable } = require('./calls/cancel.js');
const { ofType, oneOf, readCallOptions, readOptions } = require('./calls/options.js');
const { attempt, codedError, fromAddon, invalidInput } = require('./calls/errors.js');
const { guarded, isArray, lengthOf, reasonOf, writeJson } = require('./calls/reading.js');
const { addon } = require('./loader.js');

/**
 * @import { ReadResult, ReasoningTrace } from '../index.js'
 * @import { NativeItem, NativeReadSettings, NativeTraceReader, NativeTraces } from './binding.js'
 */

const OPTIONS = { format: oneOf(addon.formatNames()), success: ofType('boolean') };

/** The number of bytes, and of characters of JSON, after which other work gets a turn. */
const BATCH = 256 * 1024;

/** @type {typeof import('../index.js').readTraces} */
function readTraces(input, options) {
  const { signal, ...settings } = readCallOptions(options, OPTIONS);
  // Resolved now, because the working directory may change before it is read.
  const file = pathOf(input);
  if (file === undefined) return resultsOf(itemsOf(input, settings, signal), signal, resultOf);
  const items = itemsOfFiles(() => new addon.NativeTraces([file], settings));
  return resultsOf(items, signal, (item) => resultOf(item, file));
}

/**
 * Yields what `make` makes of items, until a signal aborts.
 *
 * @template T
 * @param {AsyncIterable<NativeItem>} items
 * @param {AbortSignal | undefined} signal
 * @param {(item: NativeItem) => T} make
 * @returns {AsyncGenerator<T, void, undefined>}
 */
async function* resultsOf(items, signal, make) {
  signal?.throwIfAborted();
  for await (const item of items) {
    signal?.throwIfAborted();
    if (item.skipped === null) yield make(item);
  }
  signal?.throwIfAborted();
}

/**
 * Reads what the addon opens.
 *
 * @param {() => NativeTraces} open
 */
async function* itemsOfFiles(open) {
  const traces = fromAddon(open);
  try {
    yield* allOf(traces);
  } finally {
    traces.close();
  }
}

/**
 * @param {unknown} input
 * @param {NativeReadSettings} settings
 * @param {AbortSignal | undefined} signal
 * @returns {AsyncGenerator<NativeItem, void>}
 */
async function* itemsOf(input, settings, signal) {
  const chunks = chunksOf(input);
  if (chunks === undefined) {
    /** @type {Map<number | null, string>} */
    const reasons = new Map();
    for await (const { line, ...item } of itemsOf(linesOf(input, reasons), settings, signal)) {
      const index = isArray(input) ? Number(line) - 1 : null;
      yield { ...item, line: null, index, error: reasons.get(line) ?? item.error };
    }
    return;
  }
  const reader = fromAddon(() => new addon.NativeTraceReader(settings));
  /** @type {{ thrown: unknown } | undefined} */
  let failure;
  try {
    for await (const bytes of bytesOf(untilAborted(chunks, signal))) {
      for (let first = 0; first < bytes.length; first += BATCH) {
        reader.push(bytes.subarray(first, first + BATCH));
        yield* allOf(reader);
      }
    }
  } catch (thrown) {
    failure = { thrown };
  }
  // A row may wait for the next one, of which it may be the beginning.
  reader.push(null);
  yield* allOf(reader);
  if (failure !== undefined) throw failure.thrown;
}

/** @param {Pick<NativeTraces | NativeTraceReader, 'next'>} reader */
async function* allOf(reader) {
  for (;;) {
    const items = await fromAddon(() => reader.next());
    if (items === null) return;
    yield* items;
  }
}

/**
 * Yields chunks until a signal aborts, also while the next one is awaited.
 *
 * @param {AsyncIterable<unknown> | Iterable<unknown>} chunks
 * @param {AbortSignal | undefined} signal
 */
async function* untilAborted(chunks, signal) {
  const each = (async function* () {
    yield* chunks;
  })();
  try {
    for (;;) {
      const { done, value } = await cancellable(() => each.next(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    const closed = each.return(undefined).catch(() => {});
    const stream = /** @type {{ destroy?: () => void }} */ (chunks);
    // While a chunk is awaited, only `destroy` of a stream of Node.js ends that.
    if (signal?.aborted) stream.destroy?.();
    else await closed;
  }
}

/**
 * Yields a value in JSON, of an array each element on a line of its own, some lines at a time. What has none becomes `null`, and its line gets
 * a reason.
 *
 * @param {unknown} input
 * @param {Map<number | null, string>} reasons by the numbers of lines
 */
function* linesOf(input, reasons) {
  let lines = '';
  for (const [index, value] of (isArray(input) ? input : [input]).entries()) {
    try {
      lines += `${JSON.stringify(value) ?? null}\n`;
    } catch (thrown) {
      lines += 'null\n';
      reasons.set(index + 1, reasonOf(thrown));
    }
    if (lines.length < BATCH) continue;
    yield lines;
    lines = '';
  }
  yield lines;
}

/**
 * @param {NativeItem} item
 * @param {string} [named] the path that was to be read
 * @returns {ReadResult}
 */
function resultOf({ file, line, index, json, known, error, unread }, named) {
  if (unread !== null) {
    const failure = codedError(Error, 'ERR_IO', `${file} could not be read: ${unread}`);
    if (file === named) throw failure;
    return { error: failure };
  }
  if (error !== null) {
    const element = index === null ? '' : `[${index}]`;
    const position = line === null ? element && `${element}: ` : `line ${line}${element}: `;
    const place = file === null || file === named ? position : `${file}: ${position}`;
    return { error: codedError(Error, 'ERR_INVALID_RECORD', place + error) };
  }
  /** @type {ReasoningTrace} of a native trace as it was, not validated */
  const trace = JSON.parse(String(json));
  const [hasSuccess, hasConfidence] = known ?? [];
  const success = hasSuccess ? trace?.metadata?.success : null;
  const confidence = hasConfidence ? trace?.outcome?.confidence : null;
  return { trace, outcome: { success: success ?? null, confidence: confidence ?? null } };
}

/** @type {typeof import('../index.js').traceFromMessages} */
function traceFromMessages(messages, options) {
  const settings = readOptions(options ?? {}, { success: ofType('boolean') });
  lengthOf(messages, 'messages', 'ERR_INVALID_INPUT');
  const given = writeJson({ messages }, 'messages', 'ERR_INVALID_INPUT');
  for (const { error, json, skipped } of fromAddon(() => addon.readValue(given, settings))) {
    if (json !== null) return JSON.parse(json);
    throw invalidInput(`messages make no trace: ${error ?? skipped}`);
  }
  throw invalidInput('messages make no trace: there is no step in them');
}

/**
 * Returns the path that an input names, as a `file:` URL or a line that is no JSON; undefined for other inputs.
 *
 * @param {any} input
 * @returns {string | undefined}
 */
function pathOf(input) {
  const url = attempt(() => (typeof input.protocol === 'string' ? input.href : undefined), undefined);
  if (typeof url === 'string') {
    const file = attempt(() => fileURLToPath(url), undefined);
    if (file === undefined)
      throw invalidInput(`${url} is no file: fetch it, and read the body of the response`);
    return file;
  }
  return typeof input === 'string' && PATH.test(input) ? path.resolve(input) : undefined;
}

/** Matches a line that does not begin as JSON does. */
const PATH = /^(?!\s*(?:[[{"]|$))[^\r\n]{1,4096}$/;

/**
 * Returns the chunks of a text or of bytes; undefined for a parsed value.
 *
 * @param {any} input
 * @returns {AsyncIterable<unknown> | Iterable<unknown> | undefined}
 */
function chunksOf(input) {
  if (typeof input === 'string' || bytesIn(input) !== undefined) return [input];
  if (types.isPromise(input)) throw invalidInput('the input is a promise: await it first');
  if (input === null || typeof input !== 'object' || isArray(input)) return undefined;
  const isStream = () => Symbol.asyncIterator in input || Symbol.iterator in input;
  return guarded(isStream, 'the input', 'ERR_INVALID_INPUT') ? input : undefined;
}

/**
 * Yields the bytes of a stream of bytes or text.
 *
 * @param {AsyncIterable<unknown> | Iterable<unknown>} chunks
 * @returns {AsyncGenerator<Uint8Array>}
 */
async function* bytesOf(chunks) {
  const encoder = new TextEncoder();
  // A surrogate pair may span two chunks of text.
  let half = '';
  for await (const chunk of chunks) {
    if (typeof chunk === 'string') {
      const text = half + chunk;
      const end = text.length - (/[\ud800-\udbff]/.test(text.slice(-1)) ? 1 : 0);
      half = text.slice(end);
      yield encoder.encode(text.slice(0, end));
      continue;
    }
    const bytes = bytesIn(chunk);
    if (bytes === undefined) throw invalidInput('a stream must be of bytes or text');
    yield bytes;
  }
}

/**
 * Returns the bytes of an `ArrayBuffer`, a `Uint8Array` or a `DataView`, also of another realm; undefined for other values. Throws an
 * error with a code for a buffer that was transferred.
 *
 * @param {unknown} value
 */
function bytesIn(value) {
  const bytes = () => {
    // Of a transferred buffer no array can be made.
    if (types.isUint8Array(value)) return value.byteLength > 0 ? value : new Uint8Array(value.buffer, 0, 0);
    if (types.isAnyArrayBuffer(value)) return new Uint8Array(value);
    if (types.isDataView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return undefined;
  };
  return guarded(bytes, 'the input', 'ERR_INVALID_INPUT');
}

module.exports = { itemsOf, itemsOfFiles, readTraces, resultOf, resultsOf, traceFromMessages };
