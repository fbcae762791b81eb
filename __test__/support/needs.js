'use strict';

// Tests that need something that a machine may lack. Where KNOWLEDGEPULSE_TEST_COMPLETE is set, as in CI, they fail without it.

/**
 * Tells that tests are skipped; throws where none may be.
 *
 * @param {string} needed
 */
function skipped(needed) {
  if (process.env.KNOWLEDGEPULSE_TEST_COMPLETE)
    throw new Error(`tests would be skipped, which need ${needed}`);
  console.warn(`skipped: tests that need ${needed}`);
}

/**
 * Returns `group`, which is `test` or `describe`, or its `skip` where something is missing.
 *
 * @template {{ skip: unknown }} T
 * @param {unknown} isThere
 * @param {string} needed
 * @param {T} group
 * @returns {T}
 */
function needing(isThere, needed, group) {
  if (isThere) return group;
  skipped(needed);
  return /** @type {T} */ (group.skip);
}

const CHROMIUM = 'a Chromium: Debian has the package chromium, and CHROME_BIN may name another';

module.exports = { CHROMIUM, needing, skipped };
