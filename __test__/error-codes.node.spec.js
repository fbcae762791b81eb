'use strict';

// The codes of errors: `Error::code` in crates/error owns those of the core, `ErrorCode` in index.d.ts those that callers see, which the
// compiler holds lib/ to. Those in the code, on the page about errors and in the declarations are the same.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');

const SOURCES = ['lib', 'src', 'crates', 'wasm'];

/** What a call that was cancelled fails with inside: its caller gets the reason of the signal. */
const INTERNAL = ['ERR_ABORTED'];

/** The codes in a text, each between two quotation marks of the given kinds. */
const codesIn = (text, quotes) =>
  [...text.matchAll(new RegExp(`([${quotes}])(ERR_[A-Z_]*[A-Z])\\1`, 'g'))].map(([, , code]) => code);

const unique = (codes) => [...new Set(codes)].sort();

const codesOfFile = (file, quotes) => unique(codesIn(fs.readFileSync(path.join(root, file), 'utf8'), quotes));

/** The codes in the code, as literals. */
function codesOfSources() {
  const files = SOURCES.flatMap((folder) =>
    fs
      .readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(
        (name) => /\.(js|mjs|rs)$/.test(name) && !/(^|[\\/])(tests|target|node_modules)[\\/]/.test(name),
      )
      .map((name) => path.join(folder, name)),
  );
  const codes = files.flatMap((file) => codesOfFile(file, `'"`));
  return unique(codes).filter((code) => !INTERNAL.includes(code));
}

const codes = codesOfSources();

test('the sources have codes', () => {
  expect(codes).toEqual(expect.arrayContaining(['ERR_INVALID_TRACE', 'ERR_STORE', 'ERR_CRASHED']));
});

test.each([
  ['docs/errors.md', '`'],
  ['index.d.ts', `'`],
])('%s has the codes of the sources, and no other', (file, quotes) => {
  expect(codesOfFile(file, quotes)).toEqual(codes);
});

test.each(['index.d.ts', 'postgres.d.ts'])('the comments of %s name none but those', (file) => {
  const named = fs.readFileSync(path.join(root, file), 'utf8').match(/\bERR_[A-Z_]+[A-Z]\b/g);
  expect(codes).toEqual(expect.arrayContaining(named));
});
