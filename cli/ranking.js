'use strict';

// Chooses the best traces of a run by their rank, in bounded memory: what was scored waits in a temporary file until all scores are
// known. Not a second pass over the input: standard input and pipes are read once, and scoring again would take as long again, with
// a memory in which every trace is already.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setImmediate } = require('node:timers/promises');

const { CommandError, EXIT, reasonOf } = require('./errors.js');
const { TemporaryFile } = require('./output.js');

/** How many are the best: a number of traces, or percents of all, of which at least one is kept. */
/** @typedef {{ count: number } | { percent: number }} Top */

/** @typedef {{ score: number, ties: number, kept: number }} CutOff */

/** In front of each record: its score, as a double, and its length in bytes. */
const HEADER_LENGTH = 12;
const SCORE_LENGTH = 8;
const READ_SIZE = 1024 * 1024;

/** Records are collected up to this many bytes before they are written. */
const WRITE_SIZE = 256 * 1024;

/** After how many records that are read at once other work gets a turn, such as a signal. */
const BREATH = 64;

/** How many bits of a score are looked at in one pass, the most significant ones first. */
const DIGIT_COUNT = 4;
const DIGIT_VALUES = 2 ** 16;

/** A temporary file that records are appended to and that is read from its beginning. */
class Spill {
  #file;
  #descriptor = -1;
  /** @type {Buffer[]} */
  #waiting = [];
  #waitingLength = 0;

  constructor() {
    this.#file = new TemporaryFile(path.join(os.tmpdir(), 'kp-score'));
  }

  async open() {
    // Traces may be private.
    this.#descriptor = await this.#file.open(0o600);
  }

  /** @param {Buffer} bytes */
  async append(bytes) {
    this.#waiting.push(bytes);
    this.#waitingLength += bytes.length;
    if (this.#waitingLength >= WRITE_SIZE) await this.flush();
  }

  async flush() {
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingLength = 0;
    for (let at = 0; at < bytes.length; ) {
      at += await new Promise((resolve, reject) => {
        fs.write(this.#descriptor, bytes, at, (error, written) => (error ? reject(error) : resolve(written)));
      });
    }
  }

  /** All that was appended. @returns {AsyncGenerator<Buffer>} */
  async *chunks() {
    await this.flush();
    yield* fs.createReadStream(this.#file.path, { highWaterMark: READ_SIZE });
  }

  /**
   * Reads bytes that were flushed, at once: a thread of its own for each read takes many times as long.
   *
   * @param {number} position
   * @param {number} length
   */
  read(position, length) {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; ) {
      const count = fs.readSync(this.#descriptor, bytes, at, length - at, position + at);
      if (count === 0) {
        throw new CommandError(
          EXIT.file,
          `${this.#file.path}, where --top keeps the traces, was cut off meanwhile`,
        );
      }
      at += count;
    }
    return bytes;
  }

  async remove() {
    if (this.#descriptor >= 0) await new Promise((resolve) => fs.close(this.#descriptor, resolve));
    this.#descriptor = -1;
    await this.#file.remove();
  }
}

class Ranking {
  #top;
  #count = 0;
  #records = new Spill();
  /** The headers alone, which are read several times. */
  #headers = new Spill();

  /** @param {Top} top */
  constructor(top) {
    this.#top = top;
  }

  /** @throws {CommandError} */
  async open() {
    await orExplain(async () => {
      await this.#records.open();
      await this.#headers.open();
    });
  }

  /**
   * Adds what is to come back in its place.
   *
   * @param {number} score 0 to 1
   * @param {string} record
   * @throws {CommandError}
   */
  async add(score, record) {
    const bytes = Buffer.from(record);
    const header = Buffer.alloc(HEADER_LENGTH);
    // Without the sign of a negative zero, which would make it the greatest of all.
    header.writeDoubleBE(score + 0);
    header.writeUInt32BE(bytes.length, SCORE_LENGTH);
    this.#count++;
    await orExplain(async () => {
      await this.#headers.append(header);
      await this.#records.append(header);
      await this.#records.append(bytes);
    });
  }

  /**
   * The least score that is kept, how many of those that have exactly that score are, which are the first ones, and how many are kept
   * in all.
   *
   * Doubles that are not negative have the order of their bits. So the score is found digit by digit, as in a radix sort, by counting.
   *
   * @returns {Promise<CutOff>}
   */
  async cutOff() {
    const count =
      'count' in this.#top ? this.#top.count : Math.ceil((this.#count * this.#top.percent) / 100 - 1e-9);
    if (this.#count === 0) return { score: 0, ties: 0, kept: 0 };
    const kept = Math.min(Math.max(1, count), this.#count);
    let left = kept;
    const found = Buffer.alloc(SCORE_LENGTH);
    for (let digit = 0; digit < DIGIT_COUNT; digit++) {
      const counts = await this.#countDigits(found, digit * 2);
      let value = DIGIT_VALUES - 1;
      for (; counts[value] < left; value--) left -= counts[value];
      found.writeUInt16BE(value, digit * 2);
    }
    return { score: found.readDoubleBE(), ties: left, kept };
  }

  /**
   * How many scores that begin as `found` have each value in the two bytes at `offset`.
   *
   * @param {Buffer} found
   * @param {number} offset
   */
  async #countDigits(found, offset) {
    const counts = new Float64Array(DIGIT_VALUES);
    const beginning = found.subarray(0, offset);
    for await (const header of pieces(this.#headers.chunks(), () => HEADER_LENGTH)) {
      if (header.subarray(0, offset).equals(beginning)) counts[header.readUInt16BE(offset)]++;
    }
    return counts;
  }

  /**
   * All records in the order in which they were added, and whether each is among the best; of equal scores, those that came first.
   *
   * @param {CutOff} cutOff
   * @returns {AsyncGenerator<{ record: string, kept: boolean }>}
   */
  async *records(cutOff) {
    const isKept = selector(cutOff);
    let score = 0;
    let isHeader = true;
    for await (const piece of pieces(this.#records.chunks(), (last) =>
      isHeader ? HEADER_LENGTH : /** @type {Buffer} */ (last).readUInt32BE(SCORE_LENGTH),
    )) {
      isHeader = !isHeader;
      if (!isHeader) score = piece.readDoubleBE();
      else yield { record: piece.toString(), kept: isKept(score) };
    }
  }

  /**
   * The records of the best, the highest score first; of equal scores, those that came first. Holds 24 bytes for each of them.
   *
   * @param {CutOff} cutOff
   * @returns {AsyncGenerator<string>}
   */
  async *best(cutOff) {
    const isKept = selector(cutOff);
    const [scores, positions] = [new Float64Array(cutOff.kept), new Float64Array(cutOff.kept)];
    const [lengths, order] = [new Uint32Array(cutOff.kept), new Uint32Array(cutOff.kept)];
    let found = 0;
    let position = 0;
    for await (const header of pieces(this.#headers.chunks(), () => HEADER_LENGTH)) {
      const [score, length] = [header.readDoubleBE(), header.readUInt32BE(SCORE_LENGTH)];
      if (isKept(score)) {
        scores[found] = score;
        positions[found] = position + HEADER_LENGTH;
        lengths[found] = length;
        order[found] = found;
        found++;
      }
      position += HEADER_LENGTH + length;
    }
    order.sort((a, b) => scores[b] - scores[a] || a - b);
    await this.#records.flush();
    for (const [rank, at] of order.entries()) {
      if (rank % BREATH === BREATH - 1) await setImmediate();
      yield this.#records.read(positions[at], lengths[at]).toString();
    }
  }

  async remove() {
    await this.#records.remove();
    await this.#headers.remove();
  }
}

/**
 * Tells of scores, in the order in which they were added, whether each is among the best.
 *
 * @param {CutOff} cutOff
 */
function selector({ score: least, ties }) {
  let left = ties;
  return (/** @type {number} */ score) => score > least || (score === least && left-- > 0);
}

/**
 * Cuts chunks into pieces.
 *
 * @param {AsyncIterable<Buffer>} chunks
 * @param {(last: Buffer | undefined) => number} lengthOf the length of the next piece, at least 1
 * @returns {AsyncGenerator<Buffer>}
 */
async function* pieces(chunks, lengthOf) {
  /** @type {Buffer | undefined} */
  let last;
  let piece = Buffer.alloc(lengthOf(last));
  let filled = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const copied = chunk.copy(piece, filled, at);
      at += copied;
      filled += copied;
      if (filled < piece.length) continue;
      last = piece;
      yield piece;
      piece = Buffer.allocUnsafe(lengthOf(last));
      filled = 0;
    }
  }
}

/**
 * @param {() => Promise<void>} work
 * @throws {CommandError}
 */
async function orExplain(work) {
  try {
    await work();
  } catch (error) {
    throw new CommandError(
      EXIT.file,
      `cannot write to ${os.tmpdir()}, where --top keeps the traces until it knows the best: ${reasonOf(error)}; ` +
        'TMPDIR names another directory',
    );
  }
}

module.exports = { Ranking };
