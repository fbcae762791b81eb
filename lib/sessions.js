'use strict';

// The sessions that agents have left on this machine.

const path = require('node:path');
const { isDate } = require('node:util').types;

const { invalidOption, listOf, ofType, oneOf, readCallOptions } = require('./calls/options.js');
const { isArray } = require('./calls/reading.js');
const { addon } = require('./loader.js');
const { itemsOfFiles, resultOf, resultsOf } = require('./read-traces.js');

/**
 * @import { SessionResult } from '../index.js'
 * @import { NativeItem } from './binding.js'
 * @import { OptionReader } from './calls/options.js'
 */

/** @type {OptionReader<string>} a time in ISO 8601 */
function readTime(value, path) {
  const time = new Date(typeof value === 'string' || isDate(value) ? value : Number.NaN);
  if (Number.isNaN(time.valueOf()))
    throw invalidOption(RangeError, `${path} must be a Date or a date as text`);
  return time.toISOString();
}

/**
 * @template T
 * @param {OptionReader<T>} reader
 * @returns {OptionReader<T[]>} of one value or a list of them
 */
const oneOrMore = (reader) => (value, path) =>
  isArray(value) ? listOf(reader)(value, path) : [reader(value, path)];

const OPTIONS = {
  since: readTime,
  agent: oneOrMore(oneOf(addon.formatNames())),
  project: ofType('string'),
  ignore: oneOrMore(ofType('string')),
};

/** @type {typeof import('../index.js').sessions} */
function sessions(options) {
  const { signal, since, agent: agents = [], project, ignore = [] } = readCallOptions(options, OPTIONS);
  // Ids, and paths, which are resolved now, because the working directory may change before they are compared.
  const ignored = ignore.flatMap((each) => (each === '' ? [] : [each, path.resolve(each)]));
  const open = () => addon.NativeTraces.ofThisMachine(since, agents, project, ignored);
  return resultsOf(itemsOfFiles(open), signal, sessionOf);
}

/**
 * @param {NativeItem} item
 * @returns {SessionResult}
 */
function sessionOf(item) {
  const file = String(item.file);
  const { trace, outcome, error } = resultOf(item);
  if (error !== undefined) return { file, error };
  return { file, ...JSON.parse(String(item.about)), trace, outcome };
}

module.exports = { sessions };
