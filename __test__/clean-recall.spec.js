'use strict';

// How much of what is planted `strict` finds. `npm run bench:secrets` measures the same with other seeds, and beside other programs.

const { cleanPii } = require('..');
const { plantedSecrets } = require('./support/secret-kinds.js');

const planted = plantedSecrets(1);

test('the planted secrets are of at least 150 kinds in at least 8 surroundings', () => {
  expect(new Set(planted.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(150);
  expect(new Set(planted.map(({ where }) => where)).size).toBeGreaterThanOrEqual(8);
});

test('cleanPii with strict leaves fewer than one planted secret in a hundred', () => {
  const left = planted.filter(({ text, secret }) => {
    // Of a URL the password is the secret.
    const core = secret.replace(/^.*:\/\/[^:]*:([^@]+)@.*$/, '$1');
    return cleanPii(text, { strict: true }).cleaned.includes(core);
  });
  expect(left.length / planted.length).toBeLessThanOrEqual(0.01);
});
