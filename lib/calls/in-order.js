'use strict';

/** Gives replies in the order of their calls. */
class InOrder {
  /** Resolves after the replies to all calls so far. */
  #last = Promise.resolve();

  /**
   * Makes a call. Returns its reply, or throws its error, after the replies to earlier calls, when `begin`'s argument resolves.
   *
   * @template T
   * @param {(earlier: Promise<void>) => T | Promise<T>} begin
   * @returns {Promise<T>}
   */
  async reply(begin) {
    const earlier = this.#last;
    let done = () => {};
    this.#last = new Promise((resolve) => {
      done = resolve;
    });
    try {
      return await begin(earlier);
    } finally {
      await earlier;
      done();
    }
  }
}

module.exports = { InOrder };
