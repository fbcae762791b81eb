'use strict';

// Finds the JSON values of an input, one at a time: JSON Lines, arrays, values that span lines, and any mix of them.
//
// Not a parser: it only finds where a value ends, and leaves the rest to JSON.parse. A streaming parser would end at the first
// syntax error (a NaN from Python is one), where this one loses a value; and it would forget how numbers were written.

/** A value of more bytes is bad. */
const DEFAULT_LIMIT = 64 * 1024 * 1024;

/**
 * So much of an input may be read again after values over several lines were broken, in bytes, where a line costs as much as
 * some more of them. After that a line is a value: hostile input takes linear time too.
 */
const RESCAN_LIMIT = 4 * DEFAULT_LIMIT;
const LINE_COST = 256;

const [TAB, NEWLINE, RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20];
const BLANKS = [TAB, NEWLINE, RETURN, SPACE];
const [QUOTE, BACKSLASH, COMMA, COLON] = ['"', '\\', ',', ':'].map((character) => character.charCodeAt(0));
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = ['[', ']', '{', '}'].map((character) =>
  character.charCodeAt(0),
);

/**
 * One value of an input: either `value` and the `text` that it was read from, or an `error` that says why it could not be read.
 *
 * @typedef {object} JsonRecord
 * @property {number} line where it begins, from 1
 * @property {number | null} index in the array that it is an element of, from 0
 * @property {number} size of it in the input, in bytes
 * @property {string} [text]
 * @property {unknown} [value]
 * @property {string} [error]
 */

/**
 * Short values of one chunk are handed over in batches of this many bytes, because waiting for each takes as long as parsing a
 * hundred bytes of it or more.
 */
const BATCH_SIZE = 64 * 1024;

/**
 * The values of an input, in batches. It holds one value at a time, of at most `limit` bytes, or several that have `BATCH_SIZE`
 * together. Lines end in LF, CRLF or CR.
 *
 * A value that begins with `[` is an array, whose elements are the values. An object ends where its brackets are closed: others
 * may follow it on the line. Anything else is a value to the end of its line. Blank lines are skipped. After an object that its
 * line breaks, reading goes on with the next line; after one over several lines, with the next line that begins with a bracket,
 * in an array with the next that is indented no further than the broken element.
 *
 * @param {AsyncIterable<Buffer>} chunks it makes LF of CR in them
 * @param {{ limit?: number, quotes?: boolean }} [options] `quotes` is whether an error may quote the input
 * @returns {AsyncGenerator<readonly JsonRecord[]>}
 */
async function* readRecords(chunks, { limit = DEFAULT_LIMIT, quotes = true } = {}) {
  const reader = new Reader(chunks, quotes);
  try {
    /** The line whose rest says nothing new: something in it was bad already. */
    /** @type {number | null} */
    let badLine = null;
    for (let byte = await reader.skipBlank(); byte !== undefined; byte = await reader.skipBlank()) {
      if (byte === OPEN_ARRAY) {
        for await (const element of readElements(reader, limit)) yield [element];
        continue;
      }
      const whole = readWholeLines(reader, limit);
      if (whole.length > 0) {
        yield whole;
        continue;
      }
      const { line } = reader;
      const record = byte === OPEN_OBJECT ? await readObject(reader, limit) : await readRest(reader, limit);
      if (record.error === undefined) {
        yield [record];
        continue;
      }
      if (byte === OPEN_OBJECT || line !== badLine) yield [record];
      badLine = reader.isInLine ? reader.line : null;
    }
  } finally {
    await reader.close();
  }
}

/**
 * The objects that take up a whole line each, as most do, as far as they are there: their ends need not be searched for.
 *
 * @param {Reader} reader
 * @param {number} limit
 */
function readWholeLines(reader, limit) {
  /** @type {JsonRecord[]} */
  const records = [];
  for (let size = 0; size < BATCH_SIZE && reader.skipBlankHere() === OPEN_OBJECT && !reader.isInLine; ) {
    const { line } = reader;
    const length = reader.lineLength;
    if (length === undefined || length > limit) break;
    try {
      const text = reader.peekText(length);
      records.push({ line, index: null, size: length, text, value: JSON.parse(text) });
    } catch {
      break;
    }
    reader.skipLine(length);
    size += length;
  }
  return records;
}

/**
 * What is on the line, all of it; beside an object, up to the next one.
 *
 * @param {Reader} reader
 * @param {number} limit
 * @returns {Promise<JsonRecord>}
 */
async function readRest(reader, limit) {
  const { line } = reader;
  const bytes = reader.isInLine ? await reader.readBetween(limit) : await reader.readLine(limit);
  return { line, index: null, ...parse(bytes, limit, reader) };
}

/**
 * The object that the reader is at.
 *
 * @param {Reader} reader
 * @param {number} limit
 * @returns {Promise<JsonRecord>}
 */
async function readObject(reader, limit) {
  const { line } = reader;
  const record = (/** @type {Buffer | null | undefined} */ bytes) => ({
    line,
    index: null,
    ...parse(bytes, limit, reader),
  });
  const nesting = new Nesting();
  const first = await reader.readObject(limit, nesting);
  if (first === null || first === undefined || !nesting.isOpen || !reader.mayReadAgain) return record(first);
  const { lines, isComplete, error } = await readOpenObject(reader, first, nesting, limit);
  const complete = isComplete ? record(Buffer.concat(lines)) : undefined;
  if (complete !== undefined && complete.error === undefined) return complete;
  // It was broken, and the bracket that closed it may be that of a later object.
  reader.unread(lines.slice(1));
  await reader.skipToBracket(0);
  return { line, index: null, size: first.length, error: complete?.error ?? error };
}

/**
 * Reads the lines after `first` until they close its brackets, or cannot any more.
 *
 * @param {Reader} reader
 * @param {Buffer} first
 * @param {Nesting} nesting
 * @param {number} limit
 * @returns {Promise<{ lines: Buffer[], isComplete?: boolean, error?: string }>}
 */
async function readOpenObject(reader, first, nesting, limit) {
  const lines = [first];
  let length = first.length;
  for (;;) {
    const { line } = reader;
    const next = await reader.readObject(limit - length, nesting);
    // A part of it is gone already, so that none is read again.
    if (next === null) return { lines: [], error: tooLong(limit) };
    if (next === undefined) return { lines, error: CUT_OFF };
    lines.push(next);
    length += next.length;
    if (nesting.isOpen) continue;
    if (nesting.isClosed) return { lines, isComplete: true };
    return { lines, error: brokenBefore(line) };
  }
}

/**
 * The elements of the array that the reader is at. Something may have been cut off, of an element or of the array itself; then
 * what follows is in the array if a comma or the bracket comes after it, and otherwise stands for itself.
 *
 * @param {Reader} reader
 * @param {number} limit
 * @returns {AsyncGenerator<JsonRecord, void>}
 */
async function* readElements(reader, limit) {
  const cutOff = (/** @type {number} */ line, /** @type {number} */ index) => ({
    line,
    index,
    size: 0,
    error: `not JSON: the array that begins in line ${arrayLine} is cut off`,
  });
  const arrayLine = reader.line;
  reader.skipByte();
  let isWhole = true;
  for (let index = 0; ; index++) {
    let separatorLine = reader.line;
    let byte = await reader.skipBlank();
    while (byte === COMMA) {
      reader.skipByte();
      separatorLine = reader.line;
      byte = await reader.skipBlank();
    }
    if (byte === CLOSE_ARRAY) return reader.skipByte();
    const { line, indentation } = reader;
    if (byte === undefined) {
      if (isWhole) yield cutOff(separatorLine, index);
      return;
    }
    // In a broken array, `[` begins no element, because no trace is an array, but perhaps the next array.
    if (byte === OPEN_ARRAY && !isWhole) return;

    const { bytes, end } = await reader.readElement(limit, indentation);
    /** @type {JsonRecord} */
    const element = { line, index: isWhole ? index : null, ...parse(bytes, limit, reader) };
    // A bracket may have closed it that is part of what broke it, with whole values in between.
    const isSwallowing =
      element.error !== undefined &&
      bytes !== null &&
      hasValueLine(bytes, indentation) &&
      reader.mayReadAgain;
    if (end === END.separator && !isSwallowing) {
      yield { ...element, index };
      isWhole ||= element.error === undefined;
    } else if (element.error !== undefined) {
      isWhole = false;
      const size = bytes === null ? 0 : 1 + bytes.indexOf(NEWLINE) || bytes.length;
      const rest = bytes?.subarray(size) ?? NOTHING;
      if (end === END.line && isBlank(rest)) {
        yield element;
        continue;
      }
      const lastLine = end === END.separator ? reader.line : reader.line - 1;
      const error = end === END.input ? CUT_OFF : brokenBefore(lastLine);
      yield bytes === null ? element : { ...element, size, error };
      reader.unread([rest]);
      await reader.skipToBracket(indentation);
    } else {
      // The element is whole, and the array was cut off before it or after it.
      const beginsLine = line > separatorLine;
      if (isWhole && beginsLine) yield cutOff(separatorLine, index);
      if (bytes !== null && beginsLine && byte === OPEN_ARRAY) reader.unread([bytes], indentation);
      else yield beginsLine ? { ...element, index: null } : element;
      if (isWhole && !beginsLine) yield cutOff(line, index + 1);
      return;
    }
  }
}

/**
 * Whether a line after the first begins with a bracket and is indented no further, as where a value begins that is not part of this
 * one.
 *
 * @param {Buffer} bytes
 * @param {number} indentation
 */
function hasValueLine(bytes, indentation) {
  for (let at = 1 + bytes.indexOf(NEWLINE); at > 0; at = 1 + bytes.indexOf(NEWLINE, at)) {
    const limit = Math.min(bytes.length, at + indentation + 1);
    let end = at;
    while (end < limit - 1 && (bytes[end] === SPACE || bytes[end] === TAB)) end++;
    if (bytes[end] === OPEN_OBJECT || bytes[end] === OPEN_ARRAY) return true;
  }
  return false;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** What stands for bytes that are not UTF-8, and may also be in the input. */
const REPLACEMENT = '\ufffd';

/**
 * The text of these bytes, without white space around it.
 *
 * @param {Buffer} bytes
 * @param {number} [start]
 * @param {number} [end]
 * @throws {TypeError} if they are not UTF-8
 */
function textOf(bytes, start = 0, end = bytes.length) {
  // For short lines, the decoder that throws takes half as long again.
  const text = bytes.toString('utf8', start, end);
  if (text.includes(REPLACEMENT)) utf8.decode(bytes.subarray(start, end));
  return text.trim();
}

/**
 * The text and value of these bytes, which are null if there were too many, or what is wrong with them.
 *
 * @param {Buffer | null | undefined} bytes
 * @param {number} limit
 * @param {{ quotes: boolean }} reader
 * @returns {{ size: number, text?: string, value?: unknown, error?: string }}
 */
function parse(bytes, limit, { quotes }) {
  if (bytes === null || bytes === undefined) return { size: limit, error: tooLong(limit) };
  const size = bytes.length;
  let text;
  try {
    text = textOf(bytes);
  } catch {
    return { size, error: 'not UTF-8' };
  }
  try {
    return { size, text, value: JSON.parse(text) };
  } catch (error) {
    // Lines are counted from the beginning of the value there.
    return { size, error: quotes ? `not JSON: ${messageOf(error)}` : 'not JSON' };
  }
}

/** @param {unknown} error */
const messageOf = (error) => /** @type {Error} */ (error).message.replace(/ \(line \d+ column \d+\)$/, '');

const NOTHING = Buffer.alloc(0);
/** @param {Buffer} bytes */
const isBlank = (bytes) => bytes.every((byte) => BLANKS.includes(byte));

const CUT_OFF = 'not JSON: it is cut off';
/** @param {number} line */
const brokenBefore = (line) => `not JSON: it is cut off or broken before the end of line ${line}`;
/** @param {number} limit */
const tooLong = (limit) => `longer than ${limit / 1024 / 1024} MB`;

/**
 * Whether a value may begin after this byte, be it in an array or in an object.
 *
 * @param {number} before
 */
function mayBegin(before) {
  return before === COLON || before === COMMA || before === OPEN_OBJECT || before === OPEN_ARRAY;
}

/** Follows the brackets of an object from line to line. */
class Nesting {
  #depth = 0;
  #before = COLON;
  #inString = false;
  #isEscaped = false;
  #isBroken = false;

  /** Whether brackets are open, and what has been read can still become JSON. */
  get isOpen() {
    return this.#depth > 0 && !this.#isBroken;
  }

  get isClosed() {
    return this.#depth === 0;
  }

  /**
   * Follows from `at` on; returns where the object ends there, or the line, or else the chunk.
   *
   * @param {Buffer} chunk
   * @param {number} at
   * @returns {number}
   */
  follow(chunk, at) {
    if (this.#isBroken) return 1 + chunk.indexOf(NEWLINE, at) || chunk.length;
    for (let end = at; end < chunk.length; end++) {
      const byte = chunk[end];
      if (byte === NEWLINE) {
        // No string goes on in the next line.
        if (this.#inString) this.#isBroken = true;
        return end + 1;
      }
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#inString = false;
        continue;
      }
      switch (byte) {
        case SPACE:
        case TAB:
        case RETURN:
          continue;
        case OPEN_OBJECT:
        case OPEN_ARRAY:
        case QUOTE:
          if (!mayBegin(this.#before)) {
            this.#isBroken = true;
            return this.follow(chunk, end);
          }
          if (byte === QUOTE) this.#inString = true;
          else this.#depth++;
          break;
        case CLOSE_OBJECT:
        case CLOSE_ARRAY:
          this.#depth--;
          if (this.#depth === 0) return end + 1;
      }
      this.#before = byte;
    }
    return chunk.length;
  }
}

/**
 * What an element ends at: a comma, a bracket or the next object on its line; a line that begins with something else; the end of
 * the input; or nothing sound.
 */
const END = { separator: 'separator', line: 'line', input: 'input', broken: 'broken' };

/** Where the input has been read to. */
class Reader {
  /** The line that the next byte is in, from 1. */
  line = 1;
  /** How many blanks that line begins with, as far as it has been read. */
  indentation = 0;
  /** Whether something else than blanks has been read of it. */
  isInLine = false;
  #chunks;
  /** @type {Buffer} */
  #chunk = Buffer.alloc(0);
  #at = 0;
  /** Whether the chunk ended in a return, which may be one with the line feed that comes next. */
  #endedInReturn = false;
  #readAgain = 0;

  /**
   * @param {AsyncIterable<Buffer>} chunks
   * @param {boolean} quotes whether an error may quote them
   */
  constructor(chunks, quotes) {
    this.quotes = quotes;
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Lets go of the chunks: whoever does not want the rest of a stream wants it closed. */
  async close() {
    await this.#chunks.return?.();
  }

  /** Whether there is another byte. */
  async #more() {
    while (this.#at === this.#chunk.length) {
      const { done, value } = await this.#chunks.next();
      if (done) return false;
      this.#chunk = this.#withLineFeeds(value);
      this.#at = 0;
    }
    return true;
  }

  /**
   * A chunk in which every line ends in a line feed. No valid JSON has a return but between values.
   *
   * @param {Buffer} chunk
   */
  #withLineFeeds(chunk) {
    if (chunk.length === 0) return chunk;
    const rest = this.#endedInReturn && chunk[0] === NEWLINE ? chunk.subarray(1) : chunk;
    this.#endedInReturn = rest.at(-1) === RETURN;
    for (let at = rest.indexOf(RETURN); at !== -1; at = rest.indexOf(RETURN, at + 1)) {
      if (rest[at + 1] !== NEWLINE) rest[at] = NEWLINE;
    }
    return rest;
  }

  #beginLine() {
    this.line++;
    this.indentation = 0;
    this.isInLine = false;
  }

  /** Skips a byte that is not blank. */
  skipByte() {
    this.#at++;
    this.isInLine = true;
  }

  /** Skips white space; returns the byte after it, which is still to be read, or undefined at the end. */
  async skipBlank() {
    for (;;) {
      const byte = this.skipBlankHere();
      if (byte !== undefined || !(await this.#more())) return byte;
    }
  }

  /** The same as far as the chunk goes. */
  skipBlankHere() {
    for (; this.#at < this.#chunk.length; this.#at++) {
      const byte = this.#chunk[this.#at];
      if (byte === NEWLINE) this.#beginLine();
      else if (byte !== SPACE && byte !== TAB && byte !== RETURN) return byte;
      else if (!this.isInLine) this.indentation++;
    }
    return undefined;
  }

  /**
   * The rest of the line with its end; null if it is longer than `limit`, undefined if there is none.
   *
   * @param {number} limit
   */
  async readLine(limit) {
    const parts = new Parts(limit);
    let isEmpty = true;
    while (await this.#more()) {
      isEmpty = false;
      const newline = this.#chunk.indexOf(NEWLINE, this.#at);
      const end = newline === -1 ? this.#chunk.length : newline + 1;
      parts.push(this.#chunk.subarray(this.#at, end));
      this.#at = end;
      if (newline === -1) continue;
      this.#beginLine();
      break;
    }
    return isEmpty ? undefined : parts.join();
  }

  /**
   * What is on the line before the next object; null if it is longer than `limit`.
   *
   * @param {number} limit
   */
  async readBetween(limit) {
    const parts = new Parts(limit);
    while (await this.#more()) {
      const rest = this.#chunk.subarray(this.#at);
      const brace = rest.indexOf(OPEN_OBJECT);
      const before = brace === -1 ? rest : rest.subarray(0, brace);
      const newline = before.indexOf(NEWLINE);
      parts.push(newline === -1 ? before : before.subarray(0, newline));
      this.#at += newline === -1 ? before.length : newline;
      if (before.length < rest.length || newline !== -1) break;
    }
    return parts.join();
  }

  /** How many bytes the rest of the line has with its end; undefined if it is not all in the chunk. */
  get lineLength() {
    const newline = this.#chunk.indexOf(NEWLINE, this.#at);
    return newline === -1 ? undefined : newline + 1 - this.#at;
  }

  /**
   * What comes next, still to be read, as text.
   *
   * @param {number} length in bytes
   * @throws {TypeError} if it is not UTF-8
   */
  peekText(length) {
    return textOf(this.#chunk, this.#at, this.#at + length);
  }

  /**
   * Skips the rest of the line, which has this length.
   *
   * @param {number} length
   */
  skipLine(length) {
    this.#at += length;
    this.#beginLine();
  }

  /**
   * What comes next of the object that `nesting` follows, up to its end or that of the line, to which a broken one goes on; null if
   * it is longer than `limit`, undefined if there is nothing.
   *
   * @param {number} limit
   * @param {Nesting} nesting
   */
  async readObject(limit, nesting) {
    const parts = new Parts(limit);
    let isEmpty = true;
    while (await this.#more()) {
      isEmpty = false;
      const end = nesting.follow(this.#chunk, this.#at);
      parts.push(this.#chunk.subarray(this.#at, end));
      this.#at = end;
      this.isInLine = true;
      if (nesting.isClosed) break;
      if (this.#chunk[end - 1] !== NEWLINE) continue;
      this.#beginLine();
      break;
    }
    return isEmpty ? undefined : parts.join();
  }

  /**
   * The element that the reader is at, up to what it ends at; its bytes are null if they are more than `limit`. A line that is
   * indented no further than `indentation` tells where one that is too long may be over.
   *
   * @param {number} limit
   * @param {number} indentation
   */
  async readElement(limit, indentation) {
    const parts = new Parts(limit);
    let depth = 0;
    let inString = false;
    let isEscaped = false;
    let before = COMMA;
    let end;
    this.isInLine = true;
    while (end === undefined && (await this.#more())) {
      const chunk = this.#chunk;
      let at = this.#at;
      for (; at < chunk.length; at++) {
        const byte = chunk[at];
        if (byte === NEWLINE) {
          this.#beginLine();
          // No string goes on in the next line.
          if (!inString && (depth === 0 || this.mayReadAgain)) continue;
          end = END.broken;
          at++;
          break;
        }
        if (inString) {
          if (isEscaped) isEscaped = false;
          else if (byte === BACKSLASH) isEscaped = true;
          else if (byte === QUOTE) inString = false;
          continue;
        }
        if (byte === SPACE || byte === TAB || byte === RETURN) {
          if (!this.isInLine) this.indentation++;
          continue;
        }
        if (depth === 0) {
          if (byte === COMMA || byte === CLOSE_ARRAY) end = END.separator;
          else if (!this.isInLine) end = END.line;
          // Without a comma they are still two.
          else if (byte === OPEN_OBJECT && before === CLOSE_OBJECT) end = END.separator;
          if (end !== undefined) break;
        }
        if (byte === QUOTE) inString = true;
        else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
          const isOver = parts.areTooMany ? this.indentation <= indentation : !mayBegin(before);
          if (!this.isInLine && isOver) {
            end = END.broken;
            break;
          }
          depth++;
        } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth = Math.max(0, depth - 1);
        before = byte;
        this.isInLine = true;
      }
      parts.push(chunk.subarray(this.#at, at));
      this.#at = at;
    }
    return { bytes: parts.join(), end: end ?? END.input };
  }

  /**
   * Puts what was read last back, whole lines, or all that follows the `indentation` of the first one.
   *
   * @param {Buffer[]} parts
   * @param {number} [indentation]
   */
  unread(parts, indentation = 0) {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (length === 0) return;
    const [first] = parts;
    const start = this.#at - length;
    // Copying what may be a large chunk for each of many broken values would take long.
    const isInChunk =
      start >= 0 &&
      first.buffer === this.#chunk.buffer &&
      first.byteOffset === this.#chunk.byteOffset + start;
    if (isInChunk) {
      this.#at = start;
    } else {
      this.#chunk = Buffer.concat([...parts, this.#chunk.subarray(this.#at)]);
      this.#at = 0;
    }
    let lines = 0;
    for (let at = this.#at; ; lines++) {
      at = 1 + this.#chunk.indexOf(NEWLINE, at);
      if (at === 0 || at > this.#at + length) break;
    }
    this.line -= lines;
    this.indentation = indentation;
    this.isInLine = false;
    this.#readAgain += length + lines * LINE_COST;
  }

  /** Whether a broken value may still cost reading its lines again. */
  get mayReadAgain() {
    return this.#readAgain <= RESCAN_LIMIT;
  }

  /**
   * Skips lines up to one that begins with a bracket and is indented no further.
   *
   * @param {number} indentation
   */
  async skipToBracket(indentation) {
    for (;;) {
      const byte = await this.skipBlank();
      const isBracket = byte === OPEN_OBJECT || byte === OPEN_ARRAY;
      if (byte === undefined || (isBracket && this.indentation <= indentation)) return;
      await this.readLine(0);
    }
  }
}

/** Bytes that are put together, unless they become too many. */
class Parts {
  /** @type {Buffer[]} */
  #parts = [];
  #length = 0;
  #limit;

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @param {Buffer} part */
  push(part) {
    this.#length += part.length;
    if (this.areTooMany) this.#parts = [];
    else this.#parts.push(part);
  }

  get areTooMany() {
    return this.#length > this.#limit;
  }

  join() {
    if (this.areTooMany) return null;
    return this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
  }
}

module.exports = { DEFAULT_LIMIT, readRecords };
