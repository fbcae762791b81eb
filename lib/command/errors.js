'use strict';

/** @typedef {Error & { code?: string }} SystemError an error of the system or of this package */

/** The exit codes, as in `--help`. */
const EXIT = { badLines: 1, usage: 2, file: 3, interrupted: 130 };

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
