'use strict';

// The sessions that agents have left on this machine.

const path = require('node:path');

const { attempt } = require('./calls/errors.js');
const { invalidOption, ofType, oneOf, readCallOptions } = require('./calls/options.js');
const { describe, isArray, readFrom, readLength } = require('./calls/reading.js');
const { addon } = require('./loader.js');
const { outcomeOf, placed, readFiles } = require('./read-traces.js');

/**
 * @import { SessionResult } from '../index.js'
 * @import { OptionReader } from './calls/options.js'
 * @import { PlacedResult } from './read-traces.js'
 */

/** @type {OptionReader<string>} a time in ISO 8601 */
function readTime(value, path) {
  const isDate = () => Object.prototype.toString.call(value) === '[object Date]';
  const isTime = typeof value === 'string' || attempt(isDate, false);
  const time = new Date(isTime ? /** @type {string | Date} */ (value) : Number.NaN);
  if (Number.isNaN(time.valueOf()))
    throw invalidOption(RangeError, `${path} must be a Date or a date as text`);
  return time.toISOString();
}

/**
 * @template T
 * @param {OptionReader<T>} reader
 * @returns {OptionReader<T[]>} of one value or a list of them
 */
const oneOrMore = (reader) => (value, path) => {
  if (!isArray(value)) return [reader(value, path)];
  return Array.from({ length: readLength(value, path, 'ERR_INVALID_OPTION') }, (_, index) => {
    const place = `${path}[${index}]`;
    return reader(readFrom(value, index, place, 'ERR_INVALID_OPTION'), place);
  });
};

/** @type {OptionReader<string[]>} an id or a path, which is resolved now */
function readIgnored(value, place) {
  if (typeof value !== 'string') {
    throw invalidOption(TypeError, `${place} must be a string, got ${describe(value)}`);
  }
  return value === '' ? [] : [value, path.resolve(value)];
}

const OPTIONS = {
  since: readTime,
  agent: oneOrMore(oneOf(addon.formatNames())),
  project: ofType('string'),
  ignore: oneOrMore(readIgnored),
};

/** @type {typeof import('../index.js').sessions} */
function sessions(options) {
  const { signal, since, agent: agents = [], project, ignore = [] } = readCallOptions(options, OPTIONS);
  const open = () => addon.NativeTraces.ofThisMachine(since, agents, project, ignore.flat());
  return withInfo(placed(readFiles(open, signal), signal));
}

/**
 * @param {AsyncIterable<PlacedResult>} results
 * @returns {AsyncGenerator<SessionResult, void, undefined>}
 */
async function* withInfo(results) {
  for await (const { file, trace, known, about, error } of results) {
    const place = { file: String(file) };
    if (error !== undefined) yield { ...place, error };
    else yield { ...place, ...JSON.parse(String(about)), trace, outcome: outcomeOf(trace, known) };
  }
}

module.exports = { sessions };
