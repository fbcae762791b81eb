'use strict';

// Converts logs of agents to traces. The readers are in the addon.

const { types } = require('node:util');

const { cancellable } = require('./calls/cancel.js');
const { ofType, oneOf, readCallOptions, readOptions } = require('./calls/options.js');
const { attempt, codedError, invalidInput } = require('./calls/errors.js');
const { reasonOf, writeJson } = require('./calls/json.js');
const { describe, guarded, isArray } = require('./calls/reading.js');
const { addon } = require('./loader.js');

/**
 * @import { KnowledgePulseError, ReadResult, ReasoningTrace } from '../index.js'
 * @import { NativeItem, NativeKnown, NativeReadSettings, NativeTraceReader } from './binding.js'
 */

const OPTIONS = {
  file: ofType('string'),
  format: oneOf(addon.formatNames()),
  success: ofType('boolean'),
};

/**
 * A trace or an error, and where it stands in its input.
 *
 * @typedef {Pick<NativeItem, 'line' | 'index' | 'format'> & ({ error: KnowledgePulseError, trace?: undefined, known?: undefined }
 *   | { trace: ReasoningTrace, known: { success: boolean, confidence: boolean }, error?: undefined })} PlacedResult
 */

/** @type {typeof import('../index.js').readTraces} */
function readTraces(input, options) {
  const { signal, ...settings } = readCallOptions(options, OPTIONS);
  return withoutPlaces(readPlaced(input, settings, signal));
}

/**
 * @param {AsyncIterable<PlacedResult>} results
 * @returns {AsyncGenerator<ReadResult, void, undefined>}
 */
async function* withoutPlaces(results) {
  for await (const { trace, known, error } of results) {
    if (error !== undefined) {
      yield { error };
      continue;
    }
    // The trace was not validated.
    const success = known.success ? trace?.metadata?.success : null;
    const confidence = known.confidence ? trace?.outcome?.confidence : null;
    yield { trace, outcome: { success: success ?? null, confidence: confidence ?? null } };
  }
}

/**
 * Does the same as {@link readTraces}, and tells where each trace stands.
 *
 * @param {unknown} input
 * @param {NativeReadSettings} [settings]
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<PlacedResult, void, undefined>}
 */
async function* readPlaced(input, settings, signal) {
  signal?.throwIfAborted();
  const chunks = chunksOf(input);
  const reader = new addon.NativeTraceReader(settings ?? {});
  const items = chunks === undefined ? readValues(reader, input) : readChunks(reader, chunks, signal);
  for await (const item of items) {
    if (item.skipped === null) yield resultOf(item);
    signal?.throwIfAborted();
  }
}

/**
 * @param {NativeTraceReader} reader
 * @param {AsyncIterable<unknown> | Iterable<unknown>} chunks
 * @param {AbortSignal | undefined} signal
 */
async function* readChunks(reader, chunks, signal) {
  const push = (/** @type {Uint8Array | undefined} */ bytes) => {
    const problem = reader.push(bytes);
    if (problem !== null) throw invalidInput(problem);
  };
  for await (const chunk of bytesOf(untilAborted(chunks, signal))) {
    push(chunk);
    yield* readItems(reader);
  }
  push(undefined);
  yield* readItems(reader);
  reader.end();
  yield* readItems(reader);
}

/**
 * Yields chunks until a signal aborts, also while the next one is awaited.
 *
 * @param {AsyncIterable<unknown> | Iterable<unknown>} chunks
 * @param {AbortSignal | undefined} signal
 */
async function* untilAborted(chunks, signal) {
  if (signal === undefined) {
    yield* chunks;
    return;
  }
  const each = (async function* () {
    yield* chunks;
  })();
  const iterator = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : each;
  try {
    for (;;) {
      const { done, value } = await cancellable(() => iterator.next(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    // Closes a stream. Not awaited: while a chunk is awaited, only `destroy` of a stream of Node.js ends that.
    iterator.return?.()?.catch?.(() => {});
    if (signal.aborted) /** @type {{ destroy?: () => void }} */ (chunks).destroy?.();
  }
}

/** @param {NativeTraceReader} reader */
function* readItems(reader) {
  for (let items = reader.next(); items !== null; items = reader.next()) yield* items;
}

/**
 * @param {NativeTraceReader} reader
 * @param {unknown} input
 * @returns {Generator<NativeItem & { value?: unknown }, void>}
 */
function* readValues(reader, input) {
  // An array is a list of records, or one conversation whose reader joins its messages.
  const values = Array.isArray(input) ? input : [input];
  for (const [at, value] of values.entries()) {
    const index = Array.isArray(input) ? at : null;
    let json;
    try {
      json = JSON.stringify(value) ?? 'null';
    } catch (thrown) {
      const none = { format: null, json: null, known: null, skipped: null };
      yield { ...none, line: null, index, size: 0, error: reasonOf(thrown) };
      continue;
    }
    for (const item of reader.read(json, index)) yield { ...item, value };
  }
  reader.end();
  yield* readItems(reader);
}

/**
 * @param {NativeItem & { value?: unknown }} item `value` is the trace where it has no JSON
 * @returns {PlacedResult}
 */
function resultOf({ line, index, format, json, known, error, value }) {
  if (error !== null) {
    const element = index === null ? '' : `[${index}]`;
    const place = line === null ? element && `${element}: ` : `line ${line}${element}: `;
    return { line, index, format: null, error: codedError(Error, 'ERR_INVALID_RECORD', place + error) };
  }
  const trace = /** @type {ReasoningTrace} */ (json === null ? value : JSON.parse(json));
  return { line, index, format, trace, known: /** @type {NativeKnown} */ (known) };
}

/** @type {typeof import('../index.js').traceFromMessages} */
function traceFromMessages(messages, options) {
  const settings = readOptions(options ?? {}, { success: ofType('boolean') });
  if (!isArray(messages)) throw invalidInput(`messages must be an array, got ${describe(messages)}`);
  const reader = new addon.NativeTraceReader(settings);
  const items = reader.read(writeJson({ messages }, 'messages', 'ERR_INVALID_INPUT'));
  reader.end();
  for (const { error, json, skipped } of [...items, ...(reader.next() ?? [])]) {
    if (json !== null) return JSON.parse(json);
    throw invalidInput(`messages make no trace: ${error ?? skipped}`);
  }
  throw invalidInput('messages make no trace: there is no step in them');
}

/**
 * Returns the chunks of a text or of bytes; undefined for a parsed value.
 *
 * @param {any} input
 * @returns {AsyncIterable<unknown> | Iterable<unknown> | undefined}
 */
function chunksOf(input) {
  if (isFileUrl(input) || (typeof input === 'string' && PATH.test(input))) {
    const advice = 'the contents of the file are wanted, or a stream of them: fs.createReadStream(path)';
    throw invalidInput(`the input ${JSON.stringify(input)} looks like a path: ${advice}`);
  }
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
  // A surrogate pair may span two chunks of text.
  let half = '';
  for await (const chunk of chunks) {
    if (typeof chunk === 'string') {
      const text = half + chunk;
      const end = text.length - (/[\ud800-\udbff]/.test(text.slice(-1)) ? 1 : 0);
      half = text.slice(end);
      yield Buffer.from(text.slice(0, end));
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
    if (types.isUint8Array(value)) return value;
    if (types.isAnyArrayBuffer(value)) return new Uint8Array(value);
    if (types.isDataView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return undefined;
  };
  return guarded(bytes, 'the input', 'ERR_INVALID_INPUT');
}

/** Matches one line that looks like a path; JSON begins in another way. */
const PATH =
  /^(?![\s"[{])(?:.{1,4096}\.(?:jsonl?|ndjson|traj|log|txt|gz)|(?:\.{0,2}[\\/]|~[\\/]|[a-z]:[\\/]|file:).{1,4096})$/i;

/** @param {any} input */
const isFileUrl = (input) =>
  attempt(() => input?.protocol === 'file:' && typeof input.href === 'string', false);

module.exports = { readPlaced, readTraces, traceFromMessages };
