'use strict';

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', '..');
const modelDirectory = path.join(root, 'npm', 'all-minilm-l6-v2');

/** The addon that is loaded: a file, outside of compiled programs. */
const addon = /** @type {string} */ (require('../../lib/loader.js').file);

/** The ONNX Runtime that the set-up has staged for the tests: in the package of this platform, or where that carries none, here. */
const runtimeLibrary = [path.join(root, 'target', 'onnxruntime'), path.dirname(addon)]
  .filter((directory) => fs.existsSync(directory))
  .flatMap((directory) => fs.readdirSync(directory).map((name) => path.join(directory, name)))
  .find((file) => /^(lib)?knowledgepulse_onnxruntime\.(so|dll|dylib)$/.test(path.basename(file)));

/** What a process is told so that it computes with ONNX Runtime. */
const ONNXRUNTIME = {
  KNOWLEDGEPULSE_ENGINE: 'onnxruntime',
  KNOWLEDGEPULSE_ONNXRUNTIME: /** @type {string} */ (runtimeLibrary),
};

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

module.exports = { ONNXRUNTIME, addon, modelDirectory, readTraces, root, runtimeLibrary, sharedTraces };
