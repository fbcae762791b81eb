#!/usr/bin/env node

// Runs the program of this machine's package, with a model if one is installed.

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const path = require('node:path');

/** The exit code for what prevents a run, as of the program itself. */
const FAILED = 3;
const MODELS = ['all-minilm-l6-v2', 'all-minilm-l6-v2-q8'];

/** Returns the packages with a program for this machine, the best one first. */
function candidates() {
  const machine = `@knowledgepulse/kp-score-${process.platform}-${process.arch}`;
  if (process.platform === 'win32') return [`${machine}-msvc`];
  if (process.platform !== 'linux') return [machine];
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  const libcs = report.header.glibcVersionRuntime === undefined ? ['musl', 'gnu'] : ['gnu', 'musl'];
  return libcs.map((libc) => `${machine}-${libc}`);
}

/**
 * Returns the folder of an installed package.
 *
 * @param {string} name
 */
function folderOf(name) {
  try {
    return path.dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

/** Returns the variables for the program, which looks for a model in Python's folders alone. */
function environment() {
  if (process.env.KNOWLEDGEPULSE_MODEL_DIR) return process.env;
  const wanted = process.env.KNOWLEDGEPULSE_DTYPE === 'q8' ? MODELS.slice(1) : MODELS;
  const model = wanted.map((name) => folderOf(`@knowledgepulse/${name}`)).find((folder) => folder);
  return model === undefined ? process.env : { ...process.env, KNOWLEDGEPULSE_MODEL_DIR: model };
}

/** @param {string} message */
function fail(message) {
  console.error(`kp-score: ${message}`);
  process.exitCode = FAILED;
}

/** @param {string} program */
function run(program) {
  // A terminal sends Ctrl-C to the program too, and a second one would end it at once.
  process.on('SIGINT', () => {});
  // Before the program begins, so that no signal finds this process without them.
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => child.kill(signal));
  }
  const child = spawn(program, process.argv.slice(2), { stdio: 'inherit', env: environment() });
  child.once('error', (error) => fail(`cannot run ${program}: ${error.message}; install kp-score again`));
  child.once('close', (code, signal) => {
    process.exitCode ??= code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  });
}

const names = candidates();
const folder = names.map(folderOf).find((found) => found);
if (folder === undefined) {
  fail(
    `${names.join(' or ')} is not installed; install kp-score with its optional dependencies, or where npm has no program ` +
      'for this machine, @knowledgepulse/native with @knowledgepulse/native-wasm32, which has the same command as kp-score-native',
  );
} else {
  run(path.join(folder, 'bin', process.platform === 'win32' ? 'kp-score.exe' : 'kp-score'));
}
