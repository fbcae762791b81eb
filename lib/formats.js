'use strict';

// Converts logs of agents to traces. The readers are in the addon.

const { types } = require('node:util');

const { inRange, ofType, oneOf, readOptions } = require('./calls/options.js');
const { codedError } = require('./calls/errors.js');
const { addon } = require('./loader.js');

/**
 * @import { FormatName, ReadError, ReadResult, ReadTrace } from '../formats.js'
 * @import { NativeForeign, NativeItem, NativeReadSettings, NativeTraceReader } from './binding.js'
 */

/** @type {readonly Exclude<FormatName, 'map'>[]} */
const FORMAT_NAMES = [
  // The traces of this package, which need no reader.
  'trace',
  'atif',
  'swe-agent',
  'gemini-cli',
  'qwen-code',
  'pi',
  'cursor',
  'copilot-cli',
  'copilot-chat',
  'opencode',
  'cline',
  'goose',
  'droid',
  'hermes',
  'kimi',
  'grok',
  'crush',
  'kiro',
  'antigravity',
  'continue',
  'zed',
  'amp',
  'letta',
  'aider',
  'openhands',
  'inspect',
  'langchain',
  'sharegpt',
  'openai-chat',
  'claude-code',
  'codex',
  'langsmith',
  'langfuse',
  'phoenix',
  'mlflow',
  'weave',
  'braintrust',
  'logfire',
  'otel',
];

const OPTIONS = {
  confidence: inRange({ from: 0, to: 1 }),
  domain: ofType('string'),
  file: ofType('string'),
  format: oneOf(FORMAT_NAMES),
  map: readMap,
  success: ofType('boolean'),
};

/** @type {import('./calls/options.js').OptionReader<string>} */
function readMap(value, path) {
  let json;
  try {
    json = JSON.stringify(value);
  } catch (thrown) {
    throw codedError(TypeError, 'ERR_INVALID_OPTION', `${path} has no JSON: ${reasonOf(thrown)}`);
  }
  const problem = addon.mapProblem(json ?? 'null', path);
  if (problem !== null) throw codedError(TypeError, 'ERR_INVALID_OPTION', problem);
  return json;
}

/** @type {typeof import('../formats.js').toTraces} */
function toTraces(input, options) {
  return generate(input, options === undefined ? {} : readOptions(options, OPTIONS));
}

/**
 * @param {unknown} input
 * @param {NativeReadSettings} options
 * @returns {AsyncGenerator<ReadResult, void, undefined>}
 */
async function* generate(input, options) {
  const chunks = chunksOf(input);
  if (chunks === undefined) {
    yield* readValues(input, options);
    return;
  }
  const reader = new addon.NativeTraceReader(options);
  for await (const chunk of bytesOf(chunks)) {
    refuse(reader.push(chunk));
    yield* readResults(reader);
  }
  refuse(reader.finish());
  yield* readResults(reader);
  reader.end();
  yield* readResults(reader);
}

/** @param {NativeTraceReader} reader */
function* readResults(reader) {
  for (let items = reader.next(); items !== null; items = reader.next()) {
    for (const item of items) yield* resultsOf(item, parsed);
  }
}

/**
 * @param {unknown} input
 * @param {NativeReadSettings} options
 * @returns {Generator<ReadResult, void>}
 */
function* readValues(input, options) {
  const reader = new addon.NativeTraceReader(options);
  // An array is a list of records, or one conversation whose reader joins its messages.
  const values = Array.isArray(input) ? input : [input];
  for (const [at, value] of values.entries()) {
    const index = Array.isArray(input) ? at : null;
    let json;
    try {
      json = JSON.stringify(value) ?? 'null';
    } catch (thrown) {
      yield wrong({ line: null, index }, reasonOf(thrown));
      continue;
    }
    for (const item of reader.read(json, index))
      yield* resultsOf(item, (text) => (text === null ? value : parsed(text)));
  }
  reader.end();
  yield* readResults(reader);
}

/**
 * Returns why a value has no JSON: it is nested too deeply, refers to itself, or has getters that throw.
 *
 * @param {unknown} thrown
 */
function reasonOf(thrown) {
  if (thrown instanceof RangeError) return 'it is nested too deeply';
  // Engines explain circular references on further lines.
  return thrown instanceof Error ? thrown.message.split('\n', 1)[0] : 'it could not be read';
}

/** @param {string | null} json */
const parsed = (json) => JSON.parse(json ?? 'null');

/**
 * @param {NativeItem} item
 * @param {(json: string | null) => unknown} traceOf
 * @returns {Generator<ReadResult, void>}
 */
function* resultsOf(item, traceOf) {
  const { line, index, format, json, known, error, skipped } = item;
  if (skipped !== null) return;
  if (error !== null) yield wrong(item, error);
  else {
    const isKnown = known ?? { success: true, confidence: true };
    yield/** @type {ReadTrace} */ ({ line, index, format, trace: traceOf(json), known: isKnown });
  }
}

/**
 * @param {{ line: number | null, index: number | null }} place
 * @param {string} reason
 * @returns {ReadError}
 */
function wrong({ line, index }, reason) {
  const place = line === null ? '' : `line ${line}${index === null ? '' : `[${index}]`}: `;
  return { line, index, error: codedError(Error, 'ERR_INVALID_RECORD', `${place}${reason}`) };
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
  if (typeof input === 'string' || input instanceof Uint8Array) return [input];
  if (types.isAnyArrayBuffer(input)) return [new Uint8Array(input)];
  if (types.isPromise(input)) throw invalidInput('the input is a promise: await it first');
  if (input === null || typeof input !== 'object' || Array.isArray(input)) return undefined;
  return Symbol.asyncIterator in input || Symbol.iterator in input ? input : undefined;
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
    } else if (chunk instanceof Uint8Array) yield chunk;
    else throw invalidInput('a stream must be of bytes or text');
  }
}

/** @param {NativeForeign | null} foreign what the input is instead of text, if it is something else */
function refuse(foreign) {
  if (foreign === null) return;
  const { what, program } = foreign;
  throw invalidInput(`the input is ${what}: make text in UTF-8 of it first, as ${program} does`);
}

/** @param {string} message */
const invalidInput = (message) => codedError(TypeError, 'ERR_INVALID_INPUT', message);

/** Matches one line that looks like a path; JSON begins in another way. */
const PATH =
  /^(?![\s"[{])(?:.{1,4096}\.(?:jsonl?|ndjson|traj|log|txt|gz)|(?:\.{0,2}[\\/]|~[\\/]|[a-z]:[\\/]|file:).{1,4096})$/i;

/** @param {any} input */
const isFileUrl = (input) => input?.protocol === 'file:' && typeof input.href === 'string';

module.exports = { FORMAT_NAMES, toTraces };
