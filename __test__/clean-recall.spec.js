'use strict';

// How much of what is planted `strict` finds. `npm run bench:secrets` measures the same with other seeds, and beside other programs.

const { cleanPii } = require('..');
const { isLeft, plantedSecrets } = require('./support/secret-kinds.js');

const planted = plantedSecrets(1);

test('the planted secrets are of at least 150 kinds in at least 8 surroundings', () => {
  expect(new Set(planted.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(150);
  expect(new Set(planted.map(({ where }) => where)).size).toBeGreaterThanOrEqual(8);
});

test('cleanPii with strict leaves nothing of a planted secret', () => {
  const left = planted.filter(({ text, secret }) => isLeft(cleanPii(text, { strict: true }).cleaned, secret));
  expect(left).toEqual([]);
});
