'use strict';

// How much of what is planted `strict` finds. `npm run bench:secrets` measures the same with other seeds, and beside other programs.

const { clean } = require('..');
const { isLeft, plantedSecrets } = require('./support/secret-kinds.js');

const planted = plantedSecrets(1);

test('the planted secrets are of at least 150 kinds in at least 8 surroundings', () => {
  expect(new Set(planted.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(150);
  expect(new Set(planted.map(({ where }) => where)).size).toBeGreaterThanOrEqual(8);
});

test('clean leaves nothing of a planted secret', async () => {
  const left = [];
  for (const { text, secret } of planted) if (isLeft((await clean(text)).cleaned, secret)) left.push(text);
  expect(left).toEqual([]);
});
