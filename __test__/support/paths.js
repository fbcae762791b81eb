'use strict';

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', '..');
const modelDirectory = path.join(root, 'npm', 'all-minilm-l6-v2');

/**
 * The ONNX Runtime that the set-up has staged for the tests: where no package carries one, or in that of this platform. Undefined
 * before the set-up.
 */
const runtimeLibrary = [path.join(root, 'target', 'onnxruntime'), path.join(root, 'npm')]
  .flatMap(platformDirectories)
  .flatMap((directory) => fs.readdirSync(directory).map((name) => path.join(directory, name)))
  .find((file) => /^(lib)?knowledgepulse_onnxruntime\.(so|dll|dylib)$/.test(path.basename(file)));

/**
 * The folders in `directory` that belong to this machine's platforms.
 *
 * @param {string} directory
 */
function platformDirectories(directory) {
  const names = fs.existsSync(directory) ? fs.readdirSync(directory) : [];
  return names
    .filter((name) => name.startsWith(`${process.platform}-${process.arch}`))
    .map((name) => path.join(directory, name));
}

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

module.exports = { ONNXRUNTIME, modelDirectory, readTraces, root, runtimeLibrary, sharedTraces };
