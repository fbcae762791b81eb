'use strict';

/**
 * Work that is begun in order and finished in order, with a bound on the pieces in between and on the bytes that
 * they hold. For one caller, which awaits each call.
 */
class InFlight {
  #maxPieces;
  #maxBytes;
  /** @type {Array<{ bytes: number, work: () => Promise<void> }>} */
  #pieces = [];
  #bytes = 0;
  /**
   * Settles when nothing is left to do.
   *
   * @type {Promise<void> | undefined}
   */
  #running;
  /** @type {{ error: unknown } | undefined} */
  #failure;
  #onFinished = () => {};

  /** @param {{ maxPieces: number, maxBytes: number }} limits */
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
    this.#pieces.push({ bytes, work });
    this.#running ??= this.#run();
    while (
      this.#pieces.length >= this.#maxPieces ||
      (this.#bytes > this.#maxBytes && this.#pieces.length > 0)
    ) {
      await new Promise((resolve) => {
        this.#onFinished = () => resolve(undefined);
      });
    }
    if (this.#failure) throw this.#failure.error;
  }

  async #run() {
    // Not before the caller has gone on.
    await undefined;
    while (this.#pieces.length > 0) {
      try {
        if (!this.#failure) await this.#pieces[0].work();
      } catch (error) {
        this.#failure = { error };
      }
      this.#bytes -= this.#pieces.shift()?.bytes ?? 0;
      this.#onFinished();
    }
    this.#running = undefined;
  }

  /** Settles when all work is done. */
  async drain() {
    await this.#running;
    if (this.#failure) throw this.#failure.error;
  }
}

module.exports = { InFlight };
