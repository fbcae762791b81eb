'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./paths.js');

/** The first example of the README, and what it says that this prints. */
function readmeExample() {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8');
  const [, script] = /`example\.mjs`[^`]*```js\n(.*?)```/s.exec(readme);
  const [, printed] = /```console\n\$ node example\.mjs\n(.*?)```/s.exec(readme);
  return { script, printed };
}

/** The program of docs/api.md. */
function apiProgram() {
  const [, program] = /```ts\n(import \{.*?)```/s.exec(
    fs.readFileSync(path.join(root, 'docs', 'api.md'), 'utf8'),
  );
  return program;
}

module.exports = { apiProgram, readmeExample };
