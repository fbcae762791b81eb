'use strict';

/** @typedef {Error & { code?: string }} SystemError what the system or this package says of a failure */

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

/** What the exit codes mean; `--help` and the README say it too. */
const EXIT = { ok: 0, badLines: 1, usage: 2, file: 3, interrupted: 130 };

/** @type {Record<string, string>} */
const REASONS = {
  EACCES: 'permission denied',
  EBUSY: 'it is in use',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than is allowed',
  EISDIR: 'it is a directory',
  EMFILE: 'too many files are open',
  ENOENT: 'no such file or directory',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is no directory',
  EPERM: 'not permitted',
  EROFS: 'the file system is read-only',
};

/**
 * What is wrong with a file, in words if they are known.
 *
 * @param {unknown} thrown
 */
function reasonOf(thrown) {
  const error = /** @type {SystemError} */ (thrown);
  const reason = REASONS[error.code ?? ''];
  return reason ? `${reason} (${error.code})` : error.message;
}

module.exports = { CommandError, EXIT, reasonOf };
