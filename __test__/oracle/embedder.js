'use strict';

const { spawn } = require('node:child_process');
const path = require('node:path');
const { createInterface } = require('node:readline');

/** A client of the reference embedder. `close` ends its process. */
class OracleEmbedder {
  #process;
  #pending = new Map();
  #next = 0;

  constructor(modelDirectory) {
    const script = path.join(__dirname, 'embedder-process.mjs');
    // Always Node.js, also under Bun: the SDK's users score on it, and one reference serves both.
    const node = process.versions.bun ? 'node' : process.execPath;
    this.#process = spawn(node, [script, modelDirectory], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#settle(JSON.parse(line)));
    this.#process.on('exit', (code) => {
      for (const { reject } of this.#pending.values())
        reject(new Error(`the oracle ended with code ${code}`));
      this.#pending.clear();
    });
  }

  #settle({ id, embedding, tokens, error }) {
    const { resolve, reject } = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) resolve({ embedding, tokens });
    else reject(new Error(`the oracle failed: ${error}`));
  }

  /** The embedding of `text` and its number of tokens after the cut. */
  describe(text, counts = true) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#process.stdin.write(`${JSON.stringify({ id, text, counts })}\n`);
    });
  }

  async embed(text) {
    return (await this.describe(text, false)).embedding;
  }

  close() {
    this.#process.stdin.end();
  }
}

module.exports = { OracleEmbedder };
