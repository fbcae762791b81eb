'use strict';

/**
 * Copies plain data of the addon, so that its objects are of the caller's realm.
 *
 * @template T
 * @param {T} value
 * @returns {T}
 */
function localCopy(value) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return /** @type {any} */ (Array.from(value, localCopy));
  const entries = Object.entries(value).map(([name, each]) => [name, localCopy(each)]);
  return Object.fromEntries(entries);
}

module.exports = { localCopy };
