'use strict';

// Texts that are hostile to `cleanPii`: pieces of everything that it finds, whole, cut in two and run together.

const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const { text } = require('./arbitraries.js');

const WHITE_SPACE = [...' \t\n\v\f\r\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'];
/** These look like white space, digits or letters to some engines, but not to JavaScript's expressions without flags. */
const DECEPTIVE = [...'\u0085\u180e\u200b\u2060ſ\u212a\u0131\u0130٣３é中\u{1f600}', '\ud800', '\udc00'];
const PUNCTUATION = [...'\'"`,;)}][({:=.-_+/\\@%~!?#*0179aZ'];

const characters = (alphabet, constraints) =>
  fc.string({ unit: fc.constantFrom(...alphabet), ...constraints });
const LETTERS = [...'abcxyzABCXYZ0123456789'];

/** The pieces that the Rust tests of the cleaner put together too. */
const words = fc.constantFrom(
  ...fs
    .readFileSync(path.join(__dirname, '../../crates/clean/src/fixtures/pieces.txt'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((piece) => piece.replace('⏎', '\n')),
);

const piece = fc.oneof(
  { weight: 8, arbitrary: words },
  // As long as keys are, give or take one.
  { weight: 3, arbitrary: characters(LETTERS, { minLength: 14, maxLength: 38 }) },
  { weight: 1, arbitrary: characters([...'0123456789abcdef'], { minLength: 14, maxLength: 18 }) },
  { weight: 2, arbitrary: characters([...'0123456789'], { minLength: 1, maxLength: 16 }) },
  { weight: 2, arbitrary: characters(WHITE_SPACE, { minLength: 1, maxLength: 3 }) },
  { weight: 3, arbitrary: characters(PUNCTUATION, { minLength: 1, maxLength: 3 }) },
  { weight: 1, arbitrary: characters(DECEPTIVE, { minLength: 1, maxLength: 2 }) },
  { weight: 1, arbitrary: text },
);

const some = (...choices) => fc.constantFrom(...choices);
const maybe = (arbitrary) => fc.oneof(fc.constant(''), arbitrary);
const space = maybe(characters(WHITE_SPACE, { minLength: 1, maxLength: 3 }));
const letters = characters(LETTERS, { minLength: 14, maxLength: 38 });
const digits = (count) => characters([...'0123456789'], { minLength: count, maxLength: count });
const value = fc.oneof(
  some('[REDACTED', '[REDACTED:api_key]', '[x', 'a', 'ab', 'a"b', "''", '""', '\'a b"'),
  some('"a b"', "'a\\'b'", '==', ':x'),
  characters([...'ab\'"`,;)}] =:['], { maxLength: 6 }),
  letters,
);
const inRow = (...parts) => fc.tuple(...parts).map((each) => each.join(''));

/** What is found, or nearly so: each part may be missing or wrong. */
const compound = fc.oneof(
  inRow(some('password', 'Token', 'x_secret', 'api_key', 'aPiKeY'), space, some('=', ':', ''), space, value),
  inRow(some('Bearer', 'Bearerr'), space, some('', 'kp_', ' kp_'), letters),
  inRow(some('sk-', 'ghp_', 'ghs_', 'AKIA', 'kp_', 'xoxb-'), letters),
  inRow(
    some('a', 'a.%', '-', ''),
    some('@', '@@'),
    some('b', 'b.c', 'b-.', '.'),
    some('.', ''),
    some('c', 'cc', 'cc1', 'd.ee'),
  ),
  inRow(
    some('', '1', '+1', '+'),
    ...[some('', '-', '.', '\u2028'), some('', '('), digits(3), some('', ')'), some('', '-', ' ')],
    ...[some('', ' ', '\ufeff'), digits(3), some('-', '.', ' ', ''), digits(4), some('', '5', '_', 'é')],
  ),
  inRow(
    some('', 'x', '.'),
    ...Array(4).fill(some('0.', '01.', '255.', '256.', '1')),
    some('', '1', '.', '_'),
  ),
  inRow(
    some('/home/', '/Users/', 'D:\\Users\\', 'd:\\Users\\'),
    some('', 'bob', 'b.o-b_'),
    some('', '/', '\\', '/x\\y', '\\x/y'),
    value,
  ),
);

/** A text. */
const hostileText = fc
  .array(fc.oneof(piece, compound), { maxLength: 14, size: 'max' })
  .map((pieces) => pieces.join(''));

const level = fc.constantFrom('aggregated', 'federated', 'private', undefined);

module.exports = { hostileText, level };
