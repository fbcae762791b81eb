'use strict';

// Turns what agents write into traces, by the module of each format.

const { types } = require('node:util');

const { inRange, ofType, oneOf, readOptions } = require('../calls/options.js');
const { codedError } = require('../calls/errors.js');
const { readText } = require('./encoding.js');
const { isObject } = require('./mapping.js');
const { DEFAULT_LIMIT, readRecords } = require('./records.js');

/**
 * @import { FormatName, Known, ReadError, ReadOptions, ReadResult, ReadTrace } from '../../formats.js'
 * @import { JsonRecord } from './records.js'
 */

/** @typedef {InstanceType<typeof import('./mapping.js').TraceBuilder>} TraceBuilder */

/** @typedef {import('./mapping.js').Place & { value: unknown, size: number }} Entry a JSON value, its size in the input in bytes, and where it is from */

/**
 * Reads one input of a format: one that has a trace in each record has no `end`.
 *
 * @typedef {object} Reader
 * @property {(entry: Entry) => Iterable<TraceBuilder | TypeError>} read the traces that this record ends, and what is wrong with parts
 * of it; throws a `TypeError` that says what is wrong with all of it
 * @property {() => Iterable<TraceBuilder | TypeError>} [end] the traces that the end of the input ends, and what is wrong with one
 */

/**
 * What a reader knows of its input.
 *
 * @typedef {object} Context
 * @property {string} [file] the path of the input
 * @property {Map<string, 'named' | 'followed'>} files by their real paths, which were read: because they were named, or because another
 * one refers to them
 */

/** @typedef {Omit<JsonRecord, 'line'> & { line: number | null }} InputRecord a record of text, or of a value */

/**
 * A module of a format.
 *
 * @typedef {object} Format
 * @property {FormatName} name
 * @property {(value: unknown) => boolean} recognises whether a record is of this format; may read getters that throw
 * @property {(context: Context) => Reader} createReader
 */

/**
 * What a record came to: a trace; a value that no format recognises, or that is a `ReasoningTrace` already; or an error.
 *
 * @typedef {object} Item
 * @property {number | null} line
 * @property {number | null} index
 * @property {number} size of it in the input, in bytes
 * @property {FormatName | null} format null if no format recognises the value
 * @property {unknown} [value] the trace, or the value as it is
 * @property {string} [text] what the value was read from, if it is as it is
 * @property {Known} [known] what of the outcome is known, if a format was converted
 * @property {string} [error]
 * @property {string} [skipped] why there is no trace: the records are not of a conversation
 */

/** The name of the traces of this package, which need no reader. */
const NATIVE = /** @type {const} */ ('trace');

/**
 * Every format, in the order in which they are asked whether a record is theirs.
 *
 * @type {readonly Format[]}
 */
const FORMATS = [
  require('./atif.js'),
  require('./swe-agent.js'),
  require('./openai-chat.js'),
  require('./claude-code.js'),
  require('./otel.js'),
];

/** @type {readonly never[]} */
const NONE = [];

/** @type {readonly FormatName[]} */
const FORMAT_NAMES = [NATIVE, ...FORMATS.map(({ name }) => name)];

/**
 * @param {unknown} value
 */
const isTrace = (value) => isObject(value) && value['@type'] === 'ReasoningTrace';

/**
 * The format that a record is of by what is in it; undefined for what is a trace already, or of no format.
 *
 * @param {unknown} value
 */
const recognisedFormat = (value) =>
  isTrace(value) ? undefined : FORMATS.find(({ recognises }) => recognises(value));

/** Reads one input, record by record. */
class TraceReader {
  #format;
  #context;
  #given;
  #isOutline;
  /** @type {Map<Format, Reader>} */
  #readers = new Map();

  /**
   * @param {object} [options]
   * @param {FormatName} [options.format] of every record; without it, each is recognised by what is in it
   * @param {string} [options.file] the path of the input
   * @param {Context['files']} [options.files] of all inputs that belong together, none of which is read twice
   * @param {boolean} [options.isOutline] whether outlines of the traces that are converted are enough
   * @param {boolean} [options.success]
   * @param {number} [options.confidence]
   * @param {string} [options.domain]
   */
  constructor({ format, file, files = new Map(), isOutline = false, ...given } = {}) {
    this.#format = format;
    this.#isOutline = isOutline;
    this.#context = { file, files };
    this.#given = given;
  }

  /**
   * What a record comes to: nothing, if its trace goes on, or several traces.
   *
   * @param {InputRecord} record
   * @returns {Iterable<Item>}
   */
  read(record) {
    const { line, index, size, error } = record;
    if (error !== undefined) return [{ line, index, size, format: null, error }];
    const { text, value } = record;
    let format;
    try {
      format = this.#formatOf(value);
    } catch (thrown) {
      return [{ line, index, size, format: null, error: reasonOf(thrown) }];
    }
    if (format === undefined) {
      const isNative = this.#format === NATIVE || isTrace(value);
      return [{ line, index, size, format: isNative ? NATIVE : null, value, text }];
    }
    let found;
    try {
      found = this.#readerOf(format).read({ value, line, index, size, isOutline: this.#isOutline });
    } catch (thrown) {
      return [{ line, index, size, format: format.name, error: this.#wrongOf(format.name, thrown, value) }];
    }
    // Most records of a format that spreads a trace over several end none.
    return Array.isArray(found) && found.length === 0 ? NONE : this.#take(format.name, record, found);
  }

  /**
   * The traces that the end of the input ends.
   *
   * @returns {Generator<Item, void>}
   */
  *end() {
    for (const [{ name }, reader] of this.#readers) {
      yield* this.#take(name, { line: null, index: null, size: 0 }, reader.end?.() ?? NONE);
    }
    this.#readers.clear();
  }

  /**
   * The format of a record; undefined for what is a trace already, or of no format.
   *
   * @param {unknown} value
   */
  #formatOf(value) {
    if (this.#format === NATIVE) return undefined;
    if (this.#format !== undefined) return FORMATS.find(({ name }) => name === this.#format);
    return recognisedFormat(value);
  }

  /**
   * What is wrong with a record, and of which other format it seems to be than the one that was asked for.
   *
   * @param {FormatName} format
   * @param {unknown} thrown
   * @param {unknown} value
   */
  #wrongOf(format, thrown, value) {
    const wrong = wrongOf(format, thrown);
    if (this.#format === undefined) return wrong;
    try {
      const found = isTrace(value) ? NATIVE : recognisedFormat(value)?.name;
      return found === undefined || found === format ? wrong : `${wrong}; it looks like ${found}`;
    } catch {
      // It has getters that throw.
      return wrong;
    }
  }

  /** @param {Format} format */
  #readerOf(format) {
    let reader = this.#readers.get(format);
    if (reader === undefined) {
      reader = format.createReader(this.#context);
      this.#readers.set(format, reader);
    }
    return reader;
  }

  /**
   * The traces that are put together, and what went wrong at last.
   *
   * @param {FormatName} format
   * @param {{ line: number | null, index: number | null, size: number, value?: unknown }} place
   * @param {Iterable<TraceBuilder | TypeError>} found
   * @returns {Generator<Item, void>}
   */
  *#take(format, place, found) {
    let at = place;
    try {
      for (const builder of found) {
        if (builder instanceof Error) {
          const { line, index } = place;
          yield { line, index, size: 0, format, error: wrongOf(format, builder) };
          continue;
        }
        at = builder;
        const { line, index, size } = builder;
        if (builder.isEmpty) {
          const reason = builder.emptyReason;
          yield {
            line,
            index,
            size,
            format,
            ...(builder.isConversation ? { error: reason } : { skipped: reason }),
          };
        } else {
          const { trace, known } = builder.finish(this.#given);
          yield { line, index, size, format, value: trace, known };
        }
        at = place;
      }
    } catch (thrown) {
      const { line, index, size } = at;
      yield { line, index, size, format, error: this.#wrongOf(format, thrown, place.value) };
    }
  }
}

/**
 * What is wrong with a record. Whatever is thrown, it is the record's fault: it is nested more deeply than the stack is, refers to
 * itself, or has getters that throw.
 *
 * @param {unknown} thrown
 */
function reasonOf(thrown) {
  if (thrown instanceof RangeError) return 'it is nested too deeply';
  return thrown instanceof Error ? thrown.message : 'it could not be read';
}

/**
 * @param {FormatName} format
 * @param {unknown} thrown
 */
const wrongOf = (format, thrown) => `not ${format}: ${reasonOf(thrown)}`;

const OPTIONS = {
  confidence: inRange({ from: 0, to: 1 }),
  domain: ofType('string'),
  file: ofType('string'),
  format: oneOf(FORMAT_NAMES),
  success: ofType('boolean'),
};

/**
 * The traces in what an agent has written: a value that was parsed, text, or a stream of bytes or text. A stream is read as it
 * comes; of it, a record is held at a time, and the traces that are not complete yet.
 *
 * @param {unknown} input
 * @param {ReadOptions} [options]
 * @returns {AsyncGenerator<ReadResult, void, undefined>}
 * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, at once
 */
function toTraces(input, options) {
  return generate(input, options === undefined ? {} : readOptions(options, OPTIONS));
}

/**
 * @param {unknown} input
 * @param {ReadOptions} options
 * @returns {AsyncGenerator<ReadResult, void, undefined>}
 */
async function* generate(input, options) {
  const reader = new TraceReader(options);
  for await (const records of recordsOf(input)) {
    for (const record of records) {
      for (const item of reader.read(record)) yield* resultsOf(item);
    }
  }
  for (const item of reader.end()) yield* resultsOf(item);
}

/**
 * @param {Item} item
 * @returns {Generator<ReadResult, void>}
 */
function* resultsOf({ line, index, format, value, known, error, skipped }) {
  if (skipped !== undefined) return;
  const reason =
    error ??
    (format === null ? `of no format that is known; they are ${FORMAT_NAMES.join(', ')}` : undefined);
  if (reason !== undefined) {
    const place = line === null ? '' : `line ${line}${index === null ? '' : `[${index}]`}: `;
    yield { line, index, error: codedError(Error, 'ERR_INVALID_RECORD', `${place}${reason}`) };
    return;
  }
  const isKnown = known ?? { success: true, confidence: true };
  yield/** @type {ReadTrace} */ ({ line, index, format, trace: value, known: isKnown });
}

/**
 * The records of an input, whatever it is, in batches.
 *
 * @param {unknown} input
 * @returns {AsyncIterable<readonly InputRecord[]> | Iterable<readonly InputRecord[]>}
 */
function recordsOf(input) {
  if (isFileUrl(input) || (typeof input === 'string' && PATH.test(input))) {
    const advice = 'the contents of the file are wanted, or a stream of them: fs.createReadStream(path)';
    throw codedError(
      TypeError,
      'ERR_INVALID_INPUT',
      `the input ${JSON.stringify(input)} looks like a path: ${advice}`,
    );
  }
  if (typeof input === 'string' || input instanceof Uint8Array) return recordsIn([input]);
  if (types.isAnyArrayBuffer(input)) return recordsIn([new Uint8Array(input)]);
  const isStream = isObject(input) && (Symbol.asyncIterator in input || Symbol.iterator in input);
  if (isStream) return recordsIn(/** @type {AsyncIterable<unknown>} */ (input));
  if (types.isPromise(input)) {
    throw codedError(TypeError, 'ERR_INVALID_INPUT', 'the input is a promise: await it first');
  }
  // An array is a list of records, or one conversation, whose reader puts its messages together.
  if (Array.isArray(input)) return [input.map((value, index) => ({ line: null, index, size: 0, value }))];
  return [[{ line: null, index: null, size: 0, value: input }]];
}

/**
 * The bytes of a stream of bytes or text. They are copied: the reader changes line ends in them.
 *
 * @param {AsyncIterable<unknown> | Iterable<unknown>} chunks
 * @returns {AsyncGenerator<Buffer>}
 */
async function* bytesOf(chunks) {
  const encoder = new StringEncoder();
  for await (const chunk of chunks) {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
      throw codedError(TypeError, 'ERR_INVALID_INPUT', 'a stream must be of bytes or text');
    }
    yield typeof chunk === 'string' ? encoder.encode(chunk) : Buffer.from(chunk);
  }
}

/**
 * The records of a stream of bytes or text, in batches.
 *
 * @param {AsyncIterable<unknown> | Iterable<unknown>} chunks
 */
const recordsIn = (chunks) =>
  readRecords(
    readText(bytesOf(chunks), (what, program) =>
      codedError(
        TypeError,
        'ERR_INVALID_INPUT',
        `the input is ${what}: make text in UTF-8 of it first, as ${program} does`,
      ),
    ),
  );

/** Text in one line that ends as the names of files do, or begins as paths do; values of JSON begin in another way. */
const PATH =
  /^(?![\s"[{])(?:.{1,4096}\.(?:jsonl?|ndjson|traj|log|txt|gz)|(?:\.{0,2}[\\/]|~[\\/]|[a-z]:[\\/]|file:).{1,4096})$/i;

/** @param {unknown} input */
const isFileUrl = (input) => isObject(input) && input.protocol === 'file:' && typeof input.href === 'string';

/** Text to bytes, chunk by chunk: a character of two code units may be in two chunks. */
class StringEncoder {
  #left = '';

  /** @param {string} chunk */
  encode(chunk) {
    const text = this.#left + chunk;
    const last = text.charCodeAt(text.length - 1);
    const isHalf = last >= 0xd800 && last < 0xdc00;
    this.#left = isHalf ? text.slice(-1) : '';
    return Buffer.from(isHalf ? text.slice(0, -1) : text);
  }
}

module.exports = { DEFAULT_LIMIT, FORMAT_NAMES, NATIVE, toTraces, TraceReader };
