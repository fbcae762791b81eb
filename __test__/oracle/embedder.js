'use strict';

const { fork } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');

/** A client of the reference embedder, which takes one text after another. `close` ends its process. */
class OracleEmbedder {
  #process;
  #exited;

  constructor(modelDirectory) {
    this.#process = fork(path.join(__dirname, 'embedder-process.mjs'), [modelDirectory]);
    this.#exited = once(this.#process, 'exit');
  }

  /** The embedding of `text` and its number of tokens after the cut. */
  async describe(text, counts = true) {
    this.#process.send({ text, counts });
    const [answer] = await Promise.race([once(this.#process, 'message'), this.#exited]);
    if (answer?.embedding === undefined) throw new Error(`the oracle failed: ${answer?.error ?? answer}`);
    return answer;
  }

  async embed(text) {
    return (await this.describe(text, false)).embedding;
  }

  close() {
    this.#process.disconnect();
  }
}

module.exports = { OracleEmbedder };
