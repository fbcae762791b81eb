'use strict';

// Decompresses gzip so that nothing before a fault is lost: the decompressor of Node.js drops what it has not handed out when
// something follows the compressed data, or when that is cut off.

const { createInflateRaw } = require('node:zlib');

const crc32 = require('crc-32');

const { Bytes } = require('./bytes.js');

/** @typedef {InstanceType<typeof Bytes>} ByteReader */

/** How a member begins; the third byte is deflate, the only method there is. */
const MAGIC = Buffer.from([0x1f, 0x8b, 0x08]);

// RFC 1952, 2.3.
const HEADER_LENGTH = 10;
const FLAGS_AT = 3;
const FLAGS = { headerChecksum: 2, extra: 4, name: 8, comment: 16 };
const TRAILER_LENGTH = 8;

/** How many compressed bytes are decompressed at once: deflate makes at most 1,032 times as many of them. */
const SLICE_LENGTH = 16 * 1024;

const NEWLINE = Buffer.from('\n');
const EMPTY = Buffer.alloc(0);

/**
 * Text that may be compressed with gzip, in any number of members. What follows them and is no member comes as it is, on a
 * line of its own, so that it is judged as text is; zeros, which pad files, are left out.
 *
 * @param {AsyncIterable<Buffer>} stream
 * @returns {AsyncGenerator<Buffer>}
 * @throws {Error} after all that could be decompressed, if a member is cut off or damaged
 */
async function* decompress(stream) {
  const bytes = new Bytes(stream);
  /** @type {number | undefined} */
  let last;
  while ((await bytes.peek(MAGIC.length)).equals(MAGIC)) {
    for await (const chunk of readMember(bytes)) {
      yield chunk;
      last = chunk.at(-1);
    }
    last ??= NEWLINE[0];
    if (!(await skipTo(bytes, (byte) => byte !== 0))) return;
  }
  if (last !== undefined && last !== NEWLINE[0]) yield NEWLINE;
  yield* bytes.rest();
}

/**
 * @param {ByteReader} bytes
 * @returns {AsyncGenerator<Buffer>}
 */
async function* readMember(bytes) {
  await skipHeader(bytes);
  let checksum = 0;
  let length = 0;
  for await (const chunk of inflate(bytes)) {
    checksum = crc32.buf(chunk, checksum);
    length += chunk.length;
    yield chunk;
  }
  const trailer = await need(bytes, TRAILER_LENGTH);
  if (trailer.readInt32LE(0) !== checksum || trailer.readUInt32LE(4) !== length % 2 ** 32) {
    throw new Error('its compressed contents are damaged: their checksum is wrong');
  }
}

/** @param {ByteReader} bytes */
async function skipHeader(bytes) {
  const flags = (await need(bytes, HEADER_LENGTH))[FLAGS_AT];
  if (flags & FLAGS.extra) await need(bytes, (await need(bytes, 2)).readUInt16LE());
  for (const text of [FLAGS.name, FLAGS.comment]) {
    if (!(flags & text)) continue;
    if (!(await skipTo(bytes, (byte) => byte === 0))) throw cutOff();
    await need(bytes, 1);
  }
  if (flags & FLAGS.headerChecksum) await need(bytes, 2);
}

/**
 * Takes exactly `length` bytes.
 *
 * @param {ByteReader} bytes
 * @param {number} length
 */
async function need(bytes, length) {
  if ((await bytes.peek(length)).length < length) throw cutOff();
  return length === 0 ? EMPTY : bytes.take(length);
}

/**
 * Skips all bytes up to the first for which `isEnd` holds, which stays; false if the input ends before one.
 *
 * @param {ByteReader} bytes
 * @param {(byte: number) => boolean} isEnd
 */
async function skipTo(bytes, isEnd) {
  for (let taken = await bytes.take(); taken.length > 0; taken = await bytes.take()) {
    const end = taken.findIndex(isEnd);
    if (end < 0) continue;
    bytes.unread(taken.length - end);
    return true;
  }
  return false;
}

/**
 * Decompresses to the end of the deflate stream.
 *
 * @param {ByteReader} bytes
 * @returns {AsyncGenerator<Buffer>}
 */
async function* inflate(bytes) {
  const engine = createInflateRaw();
  /** @type {Buffer[]} */
  let inflated = [];
  /** @type {Error | undefined} */
  let failure;
  // As it comes, because an error throws away what waits to be read.
  engine.on('data', (chunk) => inflated.push(chunk));
  engine.on('error', (error) => {
    failure = error;
  });
  /** Goes on after a write. After a fault the engine closes, and does not always call back then. */
  let goOn = () => {};
  engine.on('close', () => goOn());
  try {
    for (let given = 0; ; ) {
      const slice = await bytes.take(SLICE_LENGTH);
      if (slice.length === 0) throw cutOff();
      given += slice.length;
      await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
        goOn = resolve;
        engine.write(slice, resolve);
      });
      yield* inflated;
      inflated = [];
      if (failure) throw damaged(failure);
      // Only at its end it leaves something.
      const left = given - engine.bytesWritten;
      if (left > 0) return bytes.unread(left);
    }
  } finally {
    engine.destroy();
  }
}

const damaged = (/** @type {Error} */ { message }) =>
  new Error(`its compressed contents are damaged: ${message}`);
const cutOff = () => new Error('its compressed contents are cut off');

module.exports = { decompress };
