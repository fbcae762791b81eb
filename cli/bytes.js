'use strict';

/** The bytes of a stream, as many at a time as are asked for. */
class Bytes {
  #chunks;
  /** @type {Buffer} */
  #buffer = Buffer.alloc(0);
  /** How many of the buffer have been taken. */
  #taken = 0;

  /** @param {AsyncIterable<Buffer>} stream */
  constructor(stream) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /**
   * The next `length` bytes, fewer at the end; they stay.
   *
   * @param {number} length
   */
  async peek(length) {
    while (this.#buffer.length - this.#taken < length) {
      const { done, value } = await this.#chunks.next();
      if (done) break;
      const left = this.#buffer.subarray(this.#taken);
      this.#buffer = left.length === 0 ? value : Buffer.concat([left, value]);
      this.#taken = 0;
    }
    return this.#buffer.subarray(this.#taken, this.#taken + length);
  }

  /** At least one of the next bytes and at most `most`; none at the end. */
  async take(most = Number.POSITIVE_INFINITY) {
    await this.peek(1);
    const bytes = this.#buffer.subarray(this.#taken, this.#taken + most);
    this.#taken += bytes.length;
    return bytes;
  }

  /**
   * Puts back the last `count` bytes of what was taken last.
   *
   * @param {number} count
   */
  unread(count) {
    this.#taken -= count;
  }

  /** All bytes that are left. */
  async *rest() {
    for (let bytes = await this.take(); bytes.length > 0; bytes = await this.take()) yield bytes;
  }
}

module.exports = { Bytes };
