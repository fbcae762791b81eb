// `npm run fuzz:clean`: hostile texts through `cleanPii`, compared with JavaScript's own regular expressions, to the character.
//
//   npm run fuzz:clean                          20,000 texts
//   npm run fuzz:clean -- --texts 1000000
//   npm run fuzz:clean -- --seed 7              the texts of that seed again

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

import fc from 'fast-check';

const require = createRequire(import.meta.url);
const { cleanPii } = require('../..');
const oracle = require('../oracle/clean.js');
const { hostileText, level } = require('../support/clean-texts.js');

const { values } = parseArgs({
  options: { texts: { type: 'string', default: '20000' }, seed: { type: 'string' } },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const found = new Map();

console.log(`seed ${seed}, ${values.texts} texts`);
fc.assert(
  fc.property(hostileText, level, (text, each) => {
    const cleaned = cleanPii(text, each);
    assert.deepEqual(cleaned, oracle.cleanPii(text, each));
    for (const { type, count } of cleaned.redactions) found.set(type, (found.get(type) ?? 0) + count);
  }),
  { numRuns: Number(values.texts), seed },
);
console.log(`found ${[...found].map(([type, count]) => `${count} ${type}`).join(', ')}`);
console.log('all well');
