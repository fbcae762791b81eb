'use strict';

// The process of `kp-score`. The command runs in the addon; this adds signals and warnings.

/** @import { NativeCommand } from '../binding.js' */

/** The exit codes, as in `--help`. */
const EXIT = { file: 3, interrupted: 130 };

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
  if (!loaded.file?.endsWith('.cjs')) {
    for (const signal of SIGNALS) process.on(signal, () => interrupt(command, signal));
  }
  const words = process.argv.slice(2);
  if (loaded.addon.needsModel(words)) require('../embedder.js').ensureConfigured();
  const command = new loaded.addon.NativeCommand(words, (exitCode) => {
    leaveSignals();
    process.exit(exitCode);
  });
  showWarnings(command);
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
