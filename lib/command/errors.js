'use strict';

/** @typedef {Error & { code?: string }} SystemError what the system or this package says of a failure */

/** What the exit codes mean; `--help` says it too. */
const EXIT = { badLines: 1, usage: 2, file: 3, interrupted: 130 };

/** What ends the command: a message for people, and the exit code. */
class CommandError extends Error {
  /**
   * @param {number} exitCode one of {@link EXIT}
   * @param {string} message one line, with the way out
   */
  constructor(exitCode, message) {
    super(message);
    this.exitCode = exitCode;
  }
}

module.exports = { CommandError, EXIT };
