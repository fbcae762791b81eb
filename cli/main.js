'use strict';

// The command `kp-score`; run.js is what it does.

const { version } = require('../package.json');
const { CommandError, EXIT } = require('./errors.js');
const { Messages } = require('./messages.js');
const { readOptions, USAGE } = require('./options.js');
const { removeTemporaryFiles, StandardOutput } = require('./output.js');

/** @typedef {InstanceType<typeof import('./run.js').Run>} Run */

/** @typedef {InstanceType<typeof Messages>} StandardError where messages go */

/**
 * Runs the command; settles with its exit code.
 *
 * @param {string[]} args
 */
async function main(args) {
  let messages = new Messages({ quiet: false });
  try {
    const options = readOptions(args);
    if (options.help) return await print(USAGE);
    if (options.version) return await print(version);
    messages = new Messages(options);
    showWarnings(messages);
    // Only now: help is there even where the addon cannot be loaded.
    const { Run } = require('./run.js');
    const run = new Run(options, messages);
    handleSignals(run, messages);
    return await run.run();
  } catch (thrown) {
    if (thrown instanceof CommandError) {
      messages.failure(thrown.message);
      return thrown.exitCode;
    }
    const error = /** @type {import('./errors.js').SystemError} */ (thrown);
    // It has a line for each attempt, which are hard to tell apart on one.
    if (error?.code === 'ERR_ADDON_LOAD') {
      messages.text(`kp-score: ${error.message}\n`);
      return EXIT.file;
    }
    // Errors of the package say all there is to say.
    const isOurs = typeof error?.code === 'string' && error.code.startsWith('ERR_');
    messages.failure(isOurs ? error.message : `this is a bug, please report it: ${error?.stack}`);
    return EXIT.file;
  }
}

/** @param {string} text */
async function print(text) {
  // A reader that has closed standard error ends its output, and not the run.
  const stdout = new StandardOutput(() => {});
  await stdout.write(`${text}\n`);
  await stdout.finish();
  return EXIT.ok;
}

/**
 * Warnings of the package on one line, as everything else.
 *
 * @param {StandardError} messages
 */
function showWarnings(messages) {
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'KnowledgePulseWarning') messages.warning(warning.message);
  });
}

/** @type {NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * @param {Run} run
 * @param {StandardError} messages
 */
function handleSignals(run, messages) {
  let isInterrupted = false;
  const interrupt = (/** @type {NodeJS.Signals} */ signal) => {
    if (isInterrupted) {
      messages.stopProgress();
      return endAtOnce(signal);
    }
    isInterrupted = true;
    messages.warning('interrupted: finishing what was begun; once more to end at once');
    run.interrupt();
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
}

/**
 * Dies of the signal, as if it had not been handled: `process.exit` would wait for a file that waits to be opened.
 *
 * @param {NodeJS.Signals} signal
 */
function endAtOnce(signal) {
  removeTemporaryFiles();
  // It knows no death of a signal.
  if (process.platform === 'win32') process.exit(EXIT.interrupted);
  leaveSignals();
  process.kill(process.pid, signal);
}

/** From now on a signal ends the process, even one that is about to exit and waits. */
function leaveSignals() {
  for (const signal of SIGNALS) process.removeAllListeners(signal);
}

/** Runs the command of this process, and ends it. */
async function runProcess() {
  // Should it end before it is done.
  process.exitCode = EXIT.file;
  const code = await main(process.argv.slice(2));
  // What was written to a pipe may still be on its way.
  await new Promise((resolve) => process.stderr.write('', resolve));
  leaveSignals();
  process.exit(code);
}

module.exports = { runProcess };
