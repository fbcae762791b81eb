'use strict';

// Values that getters throw.

const { hostile, revoked } = require('./hostile.js');

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

module.exports = { THROWN };
