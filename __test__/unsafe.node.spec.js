'use strict';

// docs/unsafe.md lists every unsafe block of the core and of the encoder.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');

/** Every block, as its file and the first call in it. */
function blocksOf(file, source) {
  const code = source.replace(/\/\/.*/g, '');
  const calls = [...code.matchAll(/\bunsafe\s*\{\s*([\w:.$]+)/g)].map(([, call]) => call);
  // The type of a foreign function and the signature that a trait of napi's asks for are the other places for the word.
  const others = code.match(/\bunsafe\b(?!\s*\{|\s*extern "C" fn\(|\s*fn to_napi_value\()/g) ?? [];
  expect({ file, others }).toEqual({ file, others: [] });
  return calls.map((call) => `${file} ${call.replace(/:+$/, '')}`);
}

test('every unsafe block has a line in docs/unsafe.md, and every line a block', () => {
  const filesIn = (folder) => {
    const names = fs.readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' });
    return names.map((name) => `${folder}/${name.replaceAll(path.sep, '/')}`);
  };
  const blocks = [...filesIn('src'), ...filesIn('crates')]
    .filter((name) => name.endsWith('.rs'))
    .flatMap((file) => blocksOf(file, fs.readFileSync(path.join(root, file), 'utf8')));
  const page = fs.readFileSync(path.join(root, 'docs', 'unsafe.md'), 'utf8');
  const lines = page.split(/^## /m).flatMap((section) => {
    const file = /^`([^`]+)`/.exec(section)?.[1];
    return [...section.matchAll(/^- `([^`]+)`: /gm)].map(([, call]) => `${file} ${call}`);
  });
  expect(lines.sort()).toEqual(blocks.sort());
});
