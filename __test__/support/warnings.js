'use strict';

/**
 * Records the warnings of this process, instead of printing them, while `act` goes on.
 *
 * @param {(warnings: Array<{ message: string, type?: string, code?: string }>) => unknown} act is given the list as it grows
 */
async function warningsWhile(act) {
  const { emitWarning } = process;
  /** @type {Array<{ message: string, type?: string, code?: string }>} */
  const warnings = [];
  process.emitWarning = (/** @type {any} */ message, /** @type {any} */ options) =>
    warnings.push({ message, ...options });
  try {
    await act(warnings);
  } finally {
    process.emitWarning = emitWarning;
  }
  return warnings;
}

module.exports = { warningsWhile };
