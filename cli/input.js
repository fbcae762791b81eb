'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { addAbortSignal, pipeline, Readable } = require('node:stream');
const { createGunzip } = require('node:zlib');

const GZIP = Buffer.from([0x1f, 0x8b]);
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
 * The contents of a file or of standard input, decompressed if they begin as gzip does, without a byte order mark.
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
    const { head, chunks } = await takeHead(counted(raw, onRead), BYTE_ORDER_MARK.length);
    if (head.subarray(0, GZIP.length).equals(GZIP)) {
      // Its errors come out of the iteration.
      yield* withoutMark(pipeline(Readable.from(after(head, chunks)), createGunzip(), () => {}));
    } else {
      yield* withoutMark(after(head, chunks));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function* counted(stream, onRead) {
  for await (const chunk of stream) {
    onRead(chunk.length);
    yield chunk;
  }
}

async function* withoutMark(stream) {
  const { head, chunks } = await takeHead(stream, BYTE_ORDER_MARK.length);
  const isMarked = head.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  yield* after(isMarked ? head.subarray(BYTE_ORDER_MARK.length) : head, chunks);
}

/** The first bytes of a stream, at least so many unless it ends before, and its other chunks. */
async function takeHead(stream, length) {
  const chunks = stream[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < length) {
    const { done, value } = await chunks.next();
    if (done) break;
    head = head.length === 0 ? value : Buffer.concat([head, value]);
  }
  return { head, chunks };
}

async function* after(head, chunks) {
  yield head;
  yield* { [Symbol.asyncIterator]: () => chunks };
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
