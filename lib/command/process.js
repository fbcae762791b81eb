'use strict';

// The process of `kp-score`. The command runs in the addon; this adds signals, and answers the questions that need JavaScript.

const os = require('node:os');

/** @import { NativeCommand, NativeQuestion } from '../binding.js' */

/** The exit codes, as in `--help`. */
const EXIT = { badLines: 1, file: 3, interrupted: 130 };

/** @type {NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function runProcess() {
  // The exit code if the process ends before the run does.
  process.exitCode = EXIT.file;
  let loaded;
  try {
    loaded = require('../loader.js');
  } catch (error) {
    // The message has a line for each attempt, so it is not joined to one.
    process.stderr.write(`kp-score: ${/** @type {Error} */ (error).message}\n`);
    return;
  }
  // Handles signals before the run starts, because a reader of its first output may send one. In WebAssembly the run blocks this
  // thread, so signals end the process.
  if (!('connectEmbedder' in loaded.addon)) {
    for (const signal of SIGNALS) process.on(signal, () => interrupt(command, signal));
  }
  const words = process.argv.slice(2);
  if (loaded.addon.needsModel(words)) require('../embedder.js').ensureConfigured();
  const command = new loaded.addon.NativeCommand(words, os.hostname(), ({ number, kind, about }) => {
    if (kind === 'end') {
      leaveSignals();
      process.exit(JSON.parse(about));
    }
    answerOf(kind, JSON.parse(about))
      .then((answer) => command.answer(number, JSON.stringify(answer ?? null)))
      .catch((thrown) => {
        const { exitCode, message } = failureOf(thrown);
        command.fail(number, exitCode, message);
      });
  });
  showWarnings(command);
}

/** @type {Awaited<ReturnType<typeof import('./store.js').openStore>>} what `connect` has opened */
let store;

/**
 * @param {Exclude<NativeQuestion['kind'], 'end'>} kind
 * @param {any} about
 * @returns {Promise<unknown>}
 */
async function answerOf(kind, about) {
  if (kind !== 'connect') return store[kind](about);
  // Loaded late, because most runs have no store.
  store = await require('./store.js').openStore(about);
}

/**
 * Classifies a failure: an error of the store ends the run, an invalid trace does not.
 *
 * @param {unknown} thrown
 * @returns {{ exitCode: number, message: string }}
 */
function failureOf(thrown) {
  const error = /** @type {Error & { code?: string, exitCode?: number }} */ (thrown);
  const { code = '', exitCode, message, stack } = error;
  if (exitCode !== undefined) return { exitCode, message };
  if (code === 'ERR_INVALID_TRACE') return { exitCode: EXIT.badLines, message };
  // Messages of the package need no addition.
  const isOurs = code.startsWith('ERR_');
  return { exitCode: EXIT.file, message: isOurs ? message : `this is a bug, please report it: ${stack}` };
}

/** @param {NativeCommand} command */
function showWarnings(command) {
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'KnowledgePulseWarning') command.warn(warning.message);
  });
}

/**
 * Ends the run. The second signal kills the process as if it were not handled, because `process.exit` would wait for a file
 * that blocks while it is opened.
 *
 * @param {NativeCommand} command
 * @param {NodeJS.Signals} signal
 */
function interrupt(command, signal) {
  if (command.interrupt()) return;
  // Windows has no death by a signal.
  if (process.platform === 'win32') process.exit(EXIT.interrupted);
  leaveSignals();
  process.kill(process.pid, signal);
}

/** From now on a signal ends the process, even one that is about to exit and waits. */
function leaveSignals() {
  for (const signal of SIGNALS) process.removeAllListeners(signal);
}

module.exports = { runProcess };
