'use strict';

// The codes of errors: one enum in crates/error has them all, and the declarations and the page about errors have the same.

const fs = require('node:fs');
const path = require('node:path');

const { addon } = require('../lib/loader.js');
const { root } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');

const codes = addon.errorCodes().sort();

/** The codes in a text, each between two quotation marks of the given kinds. */
const codesIn = (file, quotes) => {
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  const found = [...text.matchAll(new RegExp(`([${quotes}])(ERR_[A-Z_]*[A-Z])\\1`, 'g'))];
  return [...new Set(found.map(([, , code]) => code))].sort();
};

test('errorCodes gives at most eighteen, one for each thing that a caller can do', () => {
  expect(codes.length).toBeLessThanOrEqual(18);
  expect(new Set(codes).size).toBe(codes.length);
});

test.each([
  ['docs/errors.md', '`'],
  ['index.d.ts', `'`],
])('%s has the codes of the enum, and no other', (file, quotes) => {
  // `ERR_…` in the comments of the declarations stands between backticks.
  expect(codesIn(file, quotes)).toEqual(codes);
});

test.each(['index.d.ts', 'postgres.d.ts'])('the comments of %s name no other code of an error', (file) => {
  expect(codes).toEqual(expect.arrayContaining(codesIn(file, '`')));
});

test('lib/ uses no other code of an error, but that of a cancelled call', () => {
  const files = fs.readdirSync(path.join(root, 'lib'), { recursive: true, encoding: 'utf8' });
  const used = files
    .filter((name) => name.endsWith('.js'))
    .flatMap((name) => codesIn(path.join('lib', name), `'`));
  expect([...codes, 'ERR_ABORTED']).toEqual(expect.arrayContaining(used));
});

test('FormatName has the formats of the readers', () => {
  const text = fs.readFileSync(path.join(root, 'index.d.ts'), 'utf8');
  const [, union] = /export type FormatName =([^;]*);/.exec(text);
  const declared = [...union.matchAll(/'([\w-]+)'/g)].map(([, name]) => name);
  expect(declared.sort()).toEqual(addon.formatNames().sort());
});

test('errors of the addon, thrown and rejected, are KnowledgePulseErrors of the class that they have in the language', async () => {
  // In a process of its own, because the modules of Jest are of another realm than the addon.
  const { result } = await runForResult(`
    const of = (error) => [error instanceof kp.KnowledgePulseError, error instanceof Error, error.name, error.code];
    const thrown = (call) => {
      try {
        return call();
      } catch (error) {
        return of(error);
      }
    };
    console.log(JSON.stringify([
      thrown(() => new kp.VectorCache().add(new Float32Array(1))),
      thrown(() => new kp.Scorer({ weights: { x: { complexity: 2, novelty: 0, toolDiversity: 0, outcomeConfidence: 0 } } })),
      await new kp.Scorer({ embed: false }).score({}).catch(of),
      await kp.TraceMemory.load('/nowhere/memory').catch(of),
    ]));
  `);
  expect(result).toEqual([
    [true, true, 'RangeError', 'ERR_INVALID_INPUT'],
    [true, true, 'RangeError', 'ERR_INVALID_OPTION'],
    [true, true, 'TypeError', 'ERR_INVALID_TRACE'],
    [true, true, 'Error', 'ERR_MEMORY_NOT_FOUND'],
  ]);
});
