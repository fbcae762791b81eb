'use strict';

/**
 * Work that is begun in order and finished in order, with a bounded amount of it in between: so many pieces, and so many bytes
 * that they hold.
 */
class Window {
  #maxPieces;
  #maxBytes;
  #pieces = [];
  #bytes = 0;
  #last = Promise.resolve();
  #failure;

  constructor({ maxPieces, maxBytes }) {
    this.#maxPieces = maxPieces;
    this.#maxBytes = maxBytes;
  }

  /**
   * Has `work` done after all that was added before; settles when there is room for more.
   *
   * @param {number} bytes
   * @param {() => Promise<void>} work
   * @throws what the first of the work threw; none is done after that
   */
  async add(bytes, work) {
    this.#bytes += bytes;
    this.#last = this.#after(this.#last, bytes, work);
    this.#pieces.push(this.#last);
    while (
      this.#pieces.length >= this.#maxPieces ||
      (this.#bytes > this.#maxBytes && this.#pieces.length > 0)
    ) {
      await this.#pieces.shift();
    }
    if (this.#failure) throw this.#failure.error;
  }

  async #after(before, bytes, work) {
    await before;
    try {
      if (!this.#failure) await work();
    } catch (error) {
      this.#failure ??= { error };
    }
    this.#bytes -= bytes;
  }

  /** Settles when all work is done. */
  async drain() {
    this.#pieces = [];
    await this.#last;
    if (this.#failure) throw this.#failure.error;
  }
}

module.exports = { Window };
