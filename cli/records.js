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
const [QUOTE, BACKSLASH, COMMA, COLON] = ['"', '\\', ',', ':'].map((character) => character.charCodeAt(0));
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = ['[', ']', '{', '}'].map((character) =>
  character.charCodeAt(0),
);

/**
 * One value of an input. Either `value` and the `text` that it was read from, or an `error` that says why there is none.
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
 * The values of an input. It holds one value at a time, of at most `limit` bytes.
 *
 * A line that begins with `[` begins an array, whose elements are the values; otherwise a line is a value, unless it leaves
 * brackets open: then the value goes on until they are closed. Blank lines are skipped. After a broken value reading goes on with
 * the next line that begins with a bracket.
 *
 * @param {AsyncIterable<Buffer>} chunks
 * @param {{ limit?: number }} [options]
 * @returns {AsyncGenerator<JsonRecord>}
 */
async function* readRecords(chunks, { limit = DEFAULT_LIMIT } = {}) {
  const reader = new Reader(chunks);
  let rescanned = 0;
  for (let byte = await reader.skipBlank(); byte !== undefined; byte = await reader.skipBlank()) {
    if (byte === OPEN_ARRAY) {
      yield* readElements(reader, limit);
      continue;
    }
    const { line } = reader;
    const first = await reader.readLine(limit);
    const record = { line, index: null, ...parse(first, limit) };
    const nesting = new Nesting();
    if (
      record.error === undefined ||
      first === null ||
      !nesting.staysOpen(first) ||
      rescanned > RESCAN_LIMIT
    ) {
      yield record;
      continue;
    }
    const { lines, isComplete, error } = await readOpenValue(reader, first, nesting, limit);
    if (isComplete) {
      yield { line, index: null, ...parse(Buffer.concat(lines), limit) };
      continue;
    }
    yield { line, index: null, size: first.length, error };
    lines.shift();
    rescanned += reader.unread(lines) + lines.length * LINE_COST;
    await reader.skipToBracket();
  }
}

/** Reads the lines after `first` until they close its brackets, or cannot any more. */
async function readOpenValue(reader, first, nesting, limit) {
  const lines = [first];
  let length = first.length;
  for (;;) {
    const { line } = reader;
    const next = await reader.readLine(limit - length);
    // A part of it is gone already, so that none is read again.
    if (next === null) return { lines: [], error: tooLong(limit) };
    if (next === undefined) return { lines, error: 'not JSON: it is cut off' };
    lines.push(next);
    length += next.length;
    if (nesting.staysOpen(next)) continue;
    if (nesting.isClosed) return { lines, isComplete: true };
    return { lines, error: `not JSON: it is cut off or broken before the end of line ${line}` };
  }
}

/** The elements of the array that the reader is at. */
async function* readElements(reader, limit) {
  const arrayLine = reader.line;
  reader.skipByte();
  for (let index = 0; ; index++) {
    let byte = await reader.skipBlank();
    while (byte === COMMA) {
      reader.skipByte();
      byte = await reader.skipBlank();
    }
    if (byte === CLOSE_ARRAY) return reader.skipByte();
    const { line } = reader;
    if (byte === undefined) {
      yield {
        line,
        index,
        size: 0,
        error: `not JSON: the array that begins in line ${arrayLine} is cut off`,
      };
      return;
    }
    const element = { line, index, ...parse(await reader.readElement(limit), limit) };
    yield element;
    if (element.error !== undefined && (await reader.skipBlank()) === undefined) return;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The text and value of these bytes, which are null if there were too many, or what is wrong with them. */
function parse(bytes, limit) {
  if (bytes === null) return { size: limit, error: tooLong(limit) };
  const size = bytes.length;
  let text;
  try {
    text = utf8.decode(bytes).trim();
  } catch {
    return { size, error: 'not UTF-8' };
  }
  try {
    return { size, text, value: JSON.parse(text) };
  } catch (error) {
    // Lines are counted from the beginning of the value there.
    return { size, error: `not JSON: ${error.message.replace(/ \(line \d+ column \d+\)$/, '')}` };
  }
}

function tooLong(limit) {
  return `longer than ${limit / 1024 / 1024} MB`;
}

/** Follows the brackets of a value from line to line. */
class Nesting {
  #depth = 0;
  #before = COLON;

  /** Whether brackets are open after this line, and what has been read can still become JSON. */
  staysOpen(line) {
    let inString = false;
    for (let at = 0; at < line.length; at++) {
      const byte = line[at];
      if (inString) {
        if (byte === BACKSLASH) at++;
        else if (byte === QUOTE) inString = false;
        continue;
      }
      switch (byte) {
        case SPACE:
        case TAB:
        case RETURN:
        case NEWLINE:
          continue;
        case OPEN_OBJECT:
        case OPEN_ARRAY:
          if (!this.#mayBegin()) return false;
          this.#depth++;
          break;
        case CLOSE_OBJECT:
        case CLOSE_ARRAY:
          this.#depth--;
          break;
        case QUOTE:
          if (!this.#mayBegin()) return false;
          inString = true;
      }
      this.#before = byte;
    }
    // No string goes on in the next line.
    this.#depth = inString ? Number.NaN : this.#depth;
    return this.#depth > 0;
  }

  get isClosed() {
    return this.#depth === 0;
  }

  #mayBegin() {
    const before = this.#before;
    return before === COLON || before === COMMA || before === OPEN_OBJECT || before === OPEN_ARRAY;
  }
}

/** Where the input has been read to. */
class Reader {
  /** The line that the next byte is in, from 1. */
  line = 1;
  #chunks;
  #chunk = Buffer.alloc(0);
  #at = 0;

  constructor(chunks) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Whether there is another byte. */
  async #more() {
    while (this.#at === this.#chunk.length) {
      const { done, value } = await this.#chunks.next();
      if (done) return false;
      this.#chunk = value;
      this.#at = 0;
    }
    return true;
  }

  skipByte() {
    this.#at++;
  }

  /** Skips white space; returns the byte after it, which is still to be read, or undefined at the end. */
  async skipBlank() {
    for (;;) {
      if (this.#at === this.#chunk.length && !(await this.#more())) return undefined;
      const byte = this.#chunk[this.#at];
      if (byte === NEWLINE) this.line++;
      else if (byte !== SPACE && byte !== TAB && byte !== RETURN) return byte;
      this.#at++;
    }
  }

  /** The rest of the line with its end; null if it is longer than `limit`, undefined if there is none. */
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
      this.line++;
      break;
    }
    return isEmpty ? undefined : parts.join();
  }

  /** The element that the reader is at, up to the comma or bracket after it; null if it is longer than `limit`. */
  async readElement(limit) {
    const parts = new Parts(limit);
    let depth = 0;
    let inString = false;
    let isEscaped = false;
    while (await this.#more()) {
      const chunk = this.#chunk;
      let at = this.#at;
      for (; at < chunk.length; at++) {
        const byte = chunk[at];
        if (byte === NEWLINE) this.line++;
        if (inString) {
          if (isEscaped) isEscaped = false;
          else if (byte === BACKSLASH) isEscaped = true;
          else if (byte === QUOTE) inString = false;
        } else if (byte === QUOTE) inString = true;
        else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
        else if (depth === 0 && (byte === COMMA || byte === CLOSE_ARRAY)) break;
        else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth = Math.max(0, depth - 1);
      }
      parts.push(chunk.subarray(this.#at, at));
      this.#at = at;
      if (at < chunk.length) break;
    }
    return parts.join();
  }

  /** Puts lines back, to be read again; returns how many bytes that are. */
  unread(lines) {
    const again = Buffer.concat(lines);
    this.#chunk = Buffer.concat([again, this.#chunk.subarray(this.#at)]);
    this.#at = 0;
    this.line -= lines.filter((line) => line.at(-1) === NEWLINE).length;
    return again.length;
  }

  /** Skips lines up to one that begins with a bracket. */
  async skipToBracket() {
    while (await this.#more()) {
      const byte = this.#chunk[this.#at];
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) return;
      await this.readLine(0);
    }
  }
}

/** Bytes that are put together, unless they become too many. */
class Parts {
  #parts = [];
  #length = 0;
  #limit;

  constructor(limit) {
    this.#limit = limit;
  }

  push(part) {
    this.#length += part.length;
    if (this.#length > this.#limit) this.#parts = [];
    else this.#parts.push(part);
  }

  join() {
    if (this.#length > this.#limit) return null;
    return this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
  }
}

module.exports = { DEFAULT_LIMIT, readRecords };
