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

/** Real agent traces, which are not part of the repository, for benchmarks. */
const sharedTraces =
  process.env.KNOWLEDGEPULSE_TRACES || path.join(root, '..', 'shared', 'traces', 'tau-airline.jsonl');

/**
 * Writes a hundred traces that were read from sessions of agents and from platforms, those of the most steps; returns the file.
 *
 * @param {string} file
 */
function recordedTraces(file) {
  const folder = path.join(root, '__test__', 'formats', 'expected');
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  /** @type {Array<{ output?: Array<{ trace?: any }>, trace?: any }>} */
  const rows = files.flatMap((name) => /** @type {any} */ (readTraces(path.join(folder, name))));
  const traces = rows
    .flatMap((row) => row.output ?? [row])
    .flatMap(({ trace }) => (trace?.steps ? [trace] : []));
  traces.sort((one, other) => other.steps.length - one.steps.length);
  fs.writeFileSync(
    file,
    traces
      .slice(0, 100)
      .map((trace) => `${JSON.stringify(trace)}\n`)
      .join(''),
  );
  return file;
}

/**
 * @param {string} file
 * @returns {Array<import('../../index.js').ReasoningTrace>}
 */
function readTraces(file) {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line));
}

module.exports = {
  ONNXRUNTIME,
  modelDirectory,
  readTraces,
  recordedTraces,
  root,
  runtimeLibrary,
  sharedTraces,
};
