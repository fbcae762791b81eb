'use strict';

// What `console.log` shows of objects whose state is private.

/** @typedef {(depth: number, options: import('node:util').InspectOptions) => string} Inspect */

const { inspect } = require('node:util');

/**
 * What the method `inspect.custom` of a class gives.
 *
 * @param {string} name of the class
 * @param {Record<string, unknown>} fields
 * @param {number} depth how many levels may still be shown
 * @param {import('node:util').InspectOptions} options
 */
function inspectAs(name, fields, depth, options) {
  if (depth < 0) return `[${name}]`;
  return `${name} ${inspect(fields, { ...options, depth })}`;
}

module.exports = { custom: inspect.custom, inspectAs };
