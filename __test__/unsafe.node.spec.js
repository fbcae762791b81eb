'use strict';

// docs/unsafe.md lists every unsafe block of the core.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');

/** Every block, as its file and the first call in it. */
function blocksOf(file, source) {
  const code = source.replace(/\/\/.*/g, '');
  const calls = [...code.matchAll(/\bunsafe\s*\{\s*([\w:.]+)/g)].map(([, call]) => call);
  // The type of a foreign function and the signature that a trait of napi's asks for are the other places for the word.
  const others = code.match(/\bunsafe\b(?!\s*\{|\s*extern "C" fn\(|\s*fn to_napi_value\()/g) ?? [];
  expect({ file, others }).toEqual({ file, others: [] });
  return calls.map((call) => `${file} ${call.replace(/:+$/, '')}`);
}

test('every unsafe block has a line in docs/unsafe.md, and every line a block', () => {
  const files = fs.readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const blocks = files
    .filter((name) => name.endsWith('.rs'))
    .map((name) => `src/${name.replaceAll(path.sep, '/')}`)
    .flatMap((file) => blocksOf(file, fs.readFileSync(path.join(root, file), 'utf8')));
  const lines = fs
    .readFileSync(path.join(root, 'docs', 'unsafe.md'), 'utf8')
    .matchAll(/^\| `(src\/[^`]+)`\s*\| `([^`]+)`\s*\|/gm);
  expect([...lines].map(([, file, call]) => `${file} ${call}`).sort()).toEqual(blocks.sort());
});
