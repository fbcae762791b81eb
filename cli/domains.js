'use strict';

// Finds the domain that a mistyped one was meant to be. Any name is a domain, so an unknown one is no error.

/** The domains that have weights of their own without `--weights`. */
const BUILT_IN = ['finance', 'code', 'medical', 'customer_service'];

/** Two names are close if they differ by one slip for this many characters, and by two at most. */
const CHARACTERS_PER_SLIP = 3;
const MAX_SLIPS = 2;

/**
 * Returns the name that is closest to this one, but not the same; undefined if none is close.
 *
 * @param {string} name
 * @param {Iterable<string>} names
 * @returns {string | undefined}
 */
function closestTo(name, names) {
  let least = Math.min(MAX_SLIPS, Math.floor(name.length / CHARACTERS_PER_SLIP)) + 1;
  let closest;
  for (const other of names) {
    if (other === name || Math.abs(other.length - name.length) >= least) continue;
    const slips = slipsBetween(name.toLowerCase(), other.toLowerCase());
    if (slips < least) [least, closest] = [slips, other];
  }
  return closest;
}

/**
 * Counts the characters that are missing, added, replaced or swapped with the next one: the optimal string alignment distance.
 *
 * @param {string} one
 * @param {string} other
 */
function slipsBetween(one, other) {
  const rows = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= one.length; row++) {
    const [above, cells] = [rows[row - 1], [row]];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      cells.push(
        Math.min(
          above[column] + 1,
          cells[column - 1] + 1,
          above[column - 1] + (isSame ? 0 : 1),
          isSwap ? rows[row - 2][column - 2] + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    rows.push(cells);
  }
  return rows[one.length][other.length];
}

module.exports = { BUILT_IN, closestTo };
