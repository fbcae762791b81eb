'use strict';

const { isBlank } = require('./report/text.js');

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

/**
 * As {@link printable}, or something else where nothing of the text could be seen.
 *
 * @param {string} text
 * @param {string} instead
 * @param {number} [length]
 */
function labelOf(text, instead, length = DEFAULT_LENGTH) {
  return isBlank(text) ? instead : printable(text, length);
}

/**
 * With four decimals; what they round to zero has no sign.
 *
 * @param {number} value
 */
function decimal(value) {
  const text = value.toFixed(4);
  return Number(text) === 0 ? (0).toFixed(4) : text;
}

module.exports = { decimal, labelOf, printable };
