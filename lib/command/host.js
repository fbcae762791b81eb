'use strict';

// Answers the questions of the command that need JavaScript.

const { configureEmbedder, ensureConfigured } = require('../embedder.js');
const { CommandError, EXIT } = require('./errors.js');

/**
 * @import { EmbedderOptions, ReasoningTrace } from '../../index.js'
 * @import { NativeQuestion } from '../binding.js'
 * @import { SystemError } from './errors.js'
 * @import { Wanted } from './store.js'
 */

class Host {
  /** @type {Awaited<ReturnType<typeof import('./store.js').openStore>> | null} */
  #store = null;

  /**
   * @param {NativeQuestion['kind']} kind
   * @param {any} about
   * @returns {Promise<unknown>}
   */
  async answer(kind, about) {
    switch (kind) {
      case 'configure':
        return configure(about);
      case 'connect':
        return this.#connect(about);
      case 'explain':
        return this.#connected.explain(
          /** @type {ReasoningTrace} */ (JSON.parse(about.trace)),
          about.remember,
        );
      case 'size':
        return this.#connected.size();
      case 'close':
        return this.#connected.close();
    }
    throw new Error(`the command has asked for ${kind}`);
  }

  /** @param {Wanted} wanted */
  async #connect(wanted) {
    // Loaded late, because most runs have no store.
    const { openStore } = require('./store.js');
    this.#store = await openStore(wanted);
  }

  get #connected() {
    if (this.#store === null) throw new Error('the command has no store');
    return this.#store;
  }

  /**
   * Classifies a failure: an error of the store ends the run, an invalid trace does not.
   *
   * @param {unknown} thrown
   * @returns {{ exitCode: number, message: string }}
   */
  failureOf(thrown) {
    if (thrown instanceof CommandError) return thrown;
    const { code = '', message, stack } = /** @type {SystemError} */ (thrown);
    if (code === 'ERR_INVALID_TRACE') return { exitCode: EXIT.badLines, message };
    // Messages of the package need no addition.
    const isOurs = code.startsWith('ERR_');
    return { exitCode: EXIT.file, message: isOurs ? message : `this is a bug, please report it: ${stack}` };
  }
}

/** @param {Record<keyof EmbedderOptions, any>} choice null where nothing was chosen */
function configure({ dtype, engine, modelDirectory, threads }) {
  configureEmbedder({
    dtype: dtype ?? undefined,
    engine: engine ?? undefined,
    modelDirectory: modelDirectory ?? undefined,
    threads: threads ?? undefined,
  });
  ensureConfigured();
}

module.exports = { Host };
