'use strict';

// Answers the questions of the command that need JavaScript.

const { configureEmbedder, ensureConfigured } = require('../embedder.js');
const { CommandError, EXIT } = require('./errors.js');

/**
 * @import { EmbedderOptions } from '../../index.js'
 * @import { NativeQuestion } from '../binding.js'
 * @import { SystemError } from './errors.js'
 */

/** @type {Awaited<ReturnType<typeof import('./store.js').openStore>>} what `connect` has opened */
let store;

/**
 * @param {NativeQuestion['kind']} kind
 * @param {any} about
 * @returns {Promise<unknown>}
 */
async function answerOf(kind, about) {
  switch (kind) {
    case 'configure':
      return configure(about);
    case 'connect':
      // Loaded late, because most runs have no store.
      store = await require('./store.js').openStore(about);
      return;
    case 'explain':
      return store.explain(JSON.parse(about.trace), about.remember);
    case 'size':
      return store.size();
    case 'close':
      return store.close();
  }
  throw new Error(`the command has asked for ${kind}`);
}

/**
 * Classifies a failure: an error of the store ends the run, an invalid trace does not.
 *
 * @param {unknown} thrown
 * @returns {{ exitCode: number, message: string }}
 */
function failureOf(thrown) {
  if (thrown instanceof CommandError) return thrown;
  const { code = '', message, stack } = /** @type {SystemError} */ (thrown);
  if (code === 'ERR_INVALID_TRACE') return { exitCode: EXIT.badLines, message };
  // Messages of the package need no addition.
  const isOurs = code.startsWith('ERR_');
  return { exitCode: EXIT.file, message: isOurs ? message : `this is a bug, please report it: ${stack}` };
}

/** @param {Record<keyof EmbedderOptions, any>} choices null where nothing was chosen */
function configure(choices) {
  const chosen = Object.entries(choices).filter(([, choice]) => choice !== null);
  configureEmbedder(Object.fromEntries(chosen));
  ensureConfigured();
}

module.exports = { answerOf, failureOf };
