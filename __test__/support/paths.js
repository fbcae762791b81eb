'use strict';

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', '..');
const modelDirectory = path.join(root, 'npm', 'all-minilm-l6-v2');

const loader = require('../../lib/loader.js');

/** The addon that is loaded: a file, outside of compiled programs. */
const addon = /** @type {string} */ (loader.file);

/** An ONNX Runtime, for the tests of that engine. */
const runtimeLibrary = path.join(
  path.dirname(addon),
  fs.readdirSync(path.dirname(addon)).find((name) => /^(lib)?knowledgepulse_onnxruntime\./.test(name)) ??
    'none',
);

/** Real agent traces, which are not part of the repository; the tests that need them are skipped without them. */
const sharedTraces =
  process.env.KNOWLEDGEPULSE_TRACES || path.join(root, '..', 'shared', 'traces', 'tau-airline.jsonl');

/**
 * @param {string} file
 * @returns {Array<import('../../index.js').ReasoningTrace>}
 */
function readTraces(file) {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line));
}

module.exports = { addon, modelDirectory, readTraces, root, runtimeLibrary, sharedTraces };
