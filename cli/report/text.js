'use strict';

// Parts of texts that traces carry, which may be megabytes long.

/**
 * The first code units of a text, without half a character at the end.
 *
 * @param {string} text
 * @param {number} length
 */
function cut(text, length) {
  const end = text.slice(0, length);
  return /[\ud800-\udbff]$/.test(end) ? end.slice(0, -1) : end;
}

/**
 * A copy of its own: part of a string keeps all of it in memory. Lone surrogates become U+FFFD.
 *
 * @param {string} text
 */
function copyOf(text) {
  return Buffer.from(text).toString();
}

/**
 * Whether nothing of a text can be seen.
 *
 * @param {string} text
 */
function isBlank(text) {
  return !/[^\s\p{Cc}\p{Cf}\p{Cs}]/u.test(text);
}

module.exports = { copyOf, cut, isBlank };
