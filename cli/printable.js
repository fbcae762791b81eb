'use strict';

/** A part of a trace may be megabytes long. */
const DEFAULT_LENGTH = 200;

/**
 * Text of a trace as one line that is safe to print: without control characters, which a terminal would obey, and cut.
 *
 * @param {string} text
 * @param {number} [length] the greatest number of UTF-16 code units
 */
function printable(text, length = DEFAULT_LENGTH) {
  // Format characters too: they turn text around or hide it.
  const plain = text.slice(0, length).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ');
  return text.length > length ? `${plain}…` : plain;
}

module.exports = { printable };
