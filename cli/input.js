'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { addAbortSignal } = require('node:stream');

const { decompress } = require('./gzip.js');

const READ_SIZE = 256 * 1024;

/** The name of standard input among the files. */
const STDIN = '-';

/**
 * What an input is called in messages.
 *
 * @param {string} source
 */
function nameOf(source) {
  return source === STDIN ? 'stdin' : source;
}

/** How many links are followed, as many as Linux does; a longer chain is a circle. */
const MOST_LINKS = 40;

/**
 * The path of a file under whatever name: links are followed, those too that lead to no file yet.
 *
 * @param {string} file
 */
function targetOf(file) {
  try {
    return fs.realpathSync.native(file);
  } catch {
    let target = path.resolve(file);
    for (let links = 0; links < MOST_LINKS; links++) {
      try {
        target = path.join(fs.realpathSync.native(path.dirname(target)), path.basename(target));
        target = path.resolve(path.dirname(target), fs.readlinkSync(target));
      } catch {
        break;
      }
    }
    return target;
  }
}

/**
 * Whether two names, of which `-` is standard input, are of the same file, by links of either kind too. What is no ordinary
 * file is not: nothing of a terminal or a pipe can be overwritten. To be asked before standard input is read, which closes it.
 *
 * @param {string} one
 * @param {string} other
 */
function isSameFile(one, other) {
  const [first, second] = [statOf(one), statOf(other)];
  if (first && second) return first.isFile() && first.dev === second.dev && first.ino === second.ino;
  return !first && !second && targetOf(one) === targetOf(other);
}

/**
 * The contents of a file or of standard input, decompressed where they begin as gzip does.
 *
 * @param {string} source a path, or `-`
 * @param {{ size: number | null, signal: AbortSignal, onRead: (bytes: number) => void }} options `size` is that of an ordinary file,
 * null of any other; `signal` ends it, without an error; `onRead` gets the numbers of bytes that are read, compressed ones too
 * @returns {AsyncGenerator<Buffer>}
 * @throws {Error} if it is a directory; the message says what to do about it
 */
async function* readChunks(source, { size, signal, onRead }) {
  if (statOf(source)?.isDirectory()) {
    const files = path.join(...namesOf(source), '*.jsonl');
    throw new Error(`it is a directory (EISDIR): name the files in it, such as ${files}`);
  }
  const contents = (/** @type {AsyncIterable<Buffer> | Iterable<Buffer>} */ stream) =>
    decompress(counted(stream, onRead));
  const isSmall = source !== STDIN && size !== null && size <= READ_SIZE;
  const small = isSmall ? readSmall(source) : undefined;
  if (small !== undefined) return yield* contents([small]);
  const raw = source === STDIN ? process.stdin : fs.createReadStream(source, { highWaterMark: READ_SIZE });
  addAbortSignal(signal, raw);
  try {
    yield* contents(raw);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    raw.destroy();
  }
}

/**
 * The path of an input, as far as it has one.
 *
 * @param {string} source
 */
const namesOf = (source) => (source === STDIN ? [] : [source]);

/**
 * What is wrong with an input that is no text, and what to do about it.
 *
 * @param {string} source
 * @param {import('../lib/binding.js').NativeForeign} foreign
 */
function foreignInput(source, { what, program }) {
  const names = namesOf(source).map((name) => (/\s/.test(name) ? `"${name}"` : name));
  return new Error(`it is ${what}: use ${[program, ...names].join(' ')} | kp-score`);
}

/**
 * The contents of a file that is read at once: opening, reading and closing it on other threads takes many times as long. Undefined
 * if it cannot be read, of which the stream tells.
 *
 * @param {string} file
 */
function readSmall(file) {
  try {
    return fs.readFileSync(file);
  } catch {
    return undefined;
  }
}

/**
 * @param {AsyncIterable<Buffer> | Iterable<Buffer>} stream
 * @param {(bytes: number) => void} onRead
 */
async function* counted(stream, onRead) {
  for await (const chunk of stream) {
    onRead(chunk.length);
    yield chunk;
  }
}

/**
 * How many bytes there are to read; null if that is not known.
 *
 * @param {string[]} sources
 */
function totalSize(sources) {
  let total = 0;
  for (const source of sources) {
    const stat = statOf(source);
    if (stat === undefined || !stat.isFile()) return null;
    total += Number(stat.size);
  }
  return total;
}

/**
 * What is known of an input, as big integers; undefined if it cannot be looked at.
 *
 * @param {string} source
 */
function statOf(source) {
  try {
    // As numbers, two files could look the same.
    const options = { bigint: /** @type {const} */ (true) };
    return source === STDIN ? fs.fstatSync(0, options) : fs.statSync(source, options);
  } catch {
    // Reading it will tell what is wrong.
    return undefined;
  }
}

module.exports = { foreignInput, isSameFile, nameOf, readChunks, STDIN, statOf, targetOf, totalSize };
