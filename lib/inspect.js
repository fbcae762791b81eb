'use strict';

// The output of `console.log` for objects with private state.

/** @typedef {(depth: number, options: import('node:util').InspectOptions) => string} Inspect */

const { inspect } = require('node:util');

/**
 * Returns the text of `inspect.custom` for a class.
 *
 * @param {string} name of the class
 * @param {Record<string, unknown>} fields
 * @param {number} depth of nesting that may still be shown
 * @param {import('node:util').InspectOptions} options
 */
function inspectAs(name, fields, depth, options) {
  if (depth < 0) return `[${name}]`;
  return `${name} ${inspect(fields, { ...options, depth })}`;
}

module.exports = { custom: inspect.custom, inspectAs };
