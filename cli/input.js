'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { addAbortSignal } = require('node:stream');

const { Bytes } = require('./bytes.js');
const { decompress } = require('./gzip.js');

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const READ_SIZE = 256 * 1024;

/** The name of standard input among the files. */
const STDIN = '-';

/** What an input is called in messages. */
function nameOf(source) {
  return source === STDIN ? 'stdin' : source;
}

/** What is the same for all names of a file. */
function identityOf(file) {
  try {
    return fs.realpathSync.native(file);
  } catch {
    return path.resolve(file);
  }
}

/** Whether an input is this file, under whatever name. Before it is read: standard input is closed then. */
function isSameFile(source, file) {
  if (source !== STDIN) return identityOf(source) === identityOf(file);
  // It has no name; where it is a terminal or a pipe, nothing of it can be overwritten.
  const [input, other] = [statOf(source), statOf(file)];
  return Boolean(input?.isFile()) && input.dev === other?.dev && input.ino === other?.ino;
}

/**
 * The contents of a file or of standard input, decompressed where they begin as gzip does, without a byte order mark.
 *
 * @param {string} source a path, or `-`
 * @param {{ signal: AbortSignal, onRead: (bytes: number) => void }} options `signal` ends it, without an error; `onRead` gets
 * the numbers of bytes that are read, compressed ones too
 * @returns {AsyncGenerator<Buffer>}
 */
async function* readChunks(source, { signal, onRead }) {
  const raw = source === STDIN ? process.stdin : fs.createReadStream(source, { highWaterMark: READ_SIZE });
  addAbortSignal(signal, raw);
  try {
    yield* withoutMark(decompress(counted(raw, onRead)));
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    raw.destroy();
  }
}

async function* counted(stream, onRead) {
  for await (const chunk of stream) {
    onRead(chunk.length);
    yield chunk;
  }
}

async function* withoutMark(stream) {
  const bytes = new Bytes(stream);
  const mark = await bytes.peek(BYTE_ORDER_MARK.length);
  if (mark.equals(BYTE_ORDER_MARK)) await bytes.take(mark.length);
  yield* bytes.rest();
}

/** How many bytes there are to read; null if that is not known. */
function totalSize(sources) {
  let total = 0;
  for (const source of sources) {
    const stat = statOf(source);
    if (stat === undefined || !stat.isFile()) return null;
    total += Number(stat.size);
  }
  return total;
}

/** What is known of an input, as big integers; undefined if it cannot be looked at. */
function statOf(source) {
  try {
    // As numbers, two files could look the same.
    const options = { bigint: true };
    return source === STDIN ? fs.fstatSync(0, options) : fs.statSync(source, options);
  } catch {
    // Reading it will tell what is wrong.
    return undefined;
  }
}

module.exports = { identityOf, isSameFile, nameOf, readChunks, STDIN, totalSize };
