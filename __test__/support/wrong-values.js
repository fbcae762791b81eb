'use strict';

// Values that a call refuses, by their names, and what its error calls them.

const { hostile, revoked } = require('./hostile.js');

const NOT_NUMBERS = [
  ['a string', '10', 'string'],
  ['an empty string', '', 'string'],
  ['null', null, 'null'],
  ['a bigint', 10n, 'bigint'],
  ['a boolean', true, 'boolean'],
  ['an object with valueOf', { valueOf: () => 10 }, 'object'],
  ['an object whose valueOf throws', { valueOf: hostile.toString }, 'object'],
  ['a boxed number', new Number(10), 'object'],
  ['a Date', new Date(10), 'object'],
  ['an array', [10], 'array'],
  ['a symbol', Symbol('s'), 'symbol'],
  ['a function', () => 10, 'function'],
  ['a revoked proxy', revoked({}), 'object'],
];

/** Without arrays, which some calls take. */
const NOT_OBJECTS = [
  ['null', null, 'null'],
  ['a number', 1000, '1000'],
  ['NaN', Number.NaN, 'NaN'],
  ['a string', 'a'.repeat(384), 'string'],
  ['a boolean', true, 'boolean'],
  ['a symbol', Symbol('s'), 'symbol'],
  ['a bigint', 1000n, 'bigint'],
  ['a function', () => {}, 'function'],
  ['a class', class Vector {}, 'function'],
];

/** What is no whole number of at least 0. */
const NOT_WHOLE = [-1, -Number.MIN_VALUE, 0.5, 1.5, 2 ** 53, 1e300, Number.NaN, 1 / 0, -1 / 0];

/** What getters throw, which becomes the cause of an error. */
const THROWN = [
  ['an error', new Error('thrown')],
  ['a frozen error', Object.freeze(new RangeError('thrown'))],
  ['an error with a code', Object.assign(new Error('thrown'), { code: 'ENOENT' })],
  ['null', null],
  ['undefined', undefined],
  ['a string', 'thrown'],
  ['a number', 0],
  ['a symbol', Symbol('thrown')],
  ['a bigint', 1n],
  ['a function', () => {}],
  ['an object whose toString throws', hostile],
  ['an object without prototype', Object.create(null)],
  ['a revoked proxy', revoked({})],
];

module.exports = { NOT_NUMBERS, NOT_OBJECTS, NOT_WHOLE, THROWN };
