'use strict';

// Checks an installation and gives remedies. Loading happens in another process, because a damaged library can end it.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const os = require('node:os');
const path = require('node:path');

const { version } = require('../../package.json');
const { systemLibc } = require('../installation/libc.js');

/** @import { EmbedderStatus } from '../../index.js' */

/** @typedef {{ code: string, message: string, remedy?: string }} Problem `remedy`: what to do about it */

/**
 * The report of the doctor. Unknown fields are null.
 *
 * @typedef {object} Report
 * @property {boolean} healthy
 * @property {string} version of the package
 * @property {string} directory of the package
 * @property {{ os: string, arch: string, libc: 'glibc' | 'musl' | null, libcVersion: string | null }} platform
 * @property {{ name: 'bun' | 'deno' | 'node', version: string | undefined }} engine
 * @property {{ path: string | null, version: string | null, attempts: Array<{ name: string, reason: string }> }} addon
 * @property {Pick<EmbedderStatus, 'engine' | 'kernel'>} inference the engine that computes embeddings
 * @property {{ path: string | null, version: string | null }} runtime ONNX Runtime, if it is the engine
 * @property {Model} model
 * @property {number | null} threads
 * @property {Embedding | null} embedding the test embedding
 * @property {{ residentBytes: number | null, freeBytes: number, totalBytes: number }} memory
 * @property {Array<{ code?: string, message: string }>} warnings
 * @property {Problem[]} problems
 */

/**
 * `files` are those that manifest.json lists, none without a manifest or an embedder; `verified`: whether their checksums match.
 *
 * @typedef {{ directory: string | null, dtype: EmbedderStatus['dtype'], dimensions: number | null, files: ModelFile[], verified: boolean }} Model
 */

/** @typedef {{ name: string, sha256: string, expectedSha256: string }} ModelFile */

/**
 * @typedef {{ text: string, loadMilliseconds: number, milliseconds: number, largestDifference: number, tolerance: number,
 *   correct: boolean }} Embedding `largestDifference` from the published values
 */

/**
 * A message of the examination: its next step, its end, a problem, a warning, or parts of the report.
 *
 * @typedef {{ stage?: string, finished?: boolean, problem?: Problem, warning?: Report['warnings'][number] } & Partial<{
 *   [Part in 'addon' | 'inference' | 'runtime' | 'model' | 'threads' | 'embedding' | 'memory']: Partial<Report[Part]> }>} Finding
 */

/** The time limit. Loading and embedding normally take a second. */
const TIME_LIMIT_MS = 60_000;

const UNREADABLE =
  'Let the user that this process runs as read that file and search the directories that it is in, or reinstall as that user.';

/** @type {Record<string, string>} the remedies of failures that no environment variable has caused */
const REMEDIES = {
  ERR_CRASHED:
    'A file that was being loaded is damaged or made for another system: reinstall @knowledgepulse/native with optional dependencies.',
  ERR_EMBEDDING_WRONG: 'Reinstall the model package, or use the built-in engine.',
  ERR_INFERENCE: 'Is there enough memory? If so, please report it with the output of doctor --json.',
  ERR_INTERNAL: 'This is a bug: please report it with the output of doctor --json.',
  ERR_INVALID_OPTION: 'Unset KNOWLEDGEPULSE_KERNEL: the best instructions are found without it.',
  ERR_MODEL_DAMAGED: 'Remove and reinstall the model package: a file of it is incomplete or was changed.',
  ERR_MODEL_NOT_FOUND:
    'Run: npm install @knowledgepulse/all-minilm-l6-v2 (or all-minilm-l6-v2-q8, where KNOWLEDGEPULSE_DTYPE is q8).',
  ERR_MODEL_UNREADABLE: UNREADABLE,
  ERR_MODEL_UNSUPPORTED: 'Run: npm install @knowledgepulse/all-minilm-l6-v2',
  ERR_NO_PROCESS:
    'Let this process start another one: look at its limits and its memory; the permission model of Node.js wants --allow-child-process and --allow-addons.',
  ERR_OUT_OF_MEMORY: 'Free memory, or raise the limit that the process or its container has.',
  ERR_RUNTIME_NOT_FOUND:
    'Reinstall @knowledgepulse/native with optional dependencies, or use the built-in engine, which needs no ONNX Runtime. Where no package carries one, install it from elsewhere and set KNOWLEDGEPULSE_ONNXRUNTIME to the library (on Alpine Linux 3.24 and newer: apk add onnxruntime, and /usr/lib/libonnxruntime.so.1).',
  ERR_RUNTIME_TOO_OLD: 'Use a newer ONNX Runtime, or the built-in engine.',
  ERR_RUNTIME_UNREADABLE: UNREADABLE,
  ERR_RUNTIME_UNUSABLE: 'Reinstall @knowledgepulse/native with optional dependencies.',
  ERR_TIMEOUT: 'Is the machine overloaded, or a file on a slow network drive? Try again.',
  ERR_TOKENIZER: 'Remove and reinstall the model package.',
  ERR_VERSION_MISMATCH:
    'Reinstall: @knowledgepulse/native and its platform package must have the same version.',
};

/** @type {Record<string, string[]>} the environment variables that can cause a failure, by its code */
const VARIABLES = {
  ERR_CRASHED: ['KNOWLEDGEPULSE_NATIVE_ADDON', 'KNOWLEDGEPULSE_ONNXRUNTIME'],
  ERR_EMBEDDING_WRONG: ['KNOWLEDGEPULSE_MODEL_DIR', 'KNOWLEDGEPULSE_ONNXRUNTIME'],
  ERR_INVALID_OPTION: ['KNOWLEDGEPULSE_KERNEL'],
  ERR_MODEL_DAMAGED: ['KNOWLEDGEPULSE_MODEL_DIR'],
  ERR_MODEL_NOT_FOUND: ['KNOWLEDGEPULSE_MODEL_DIR'],
  ERR_MODEL_UNSUPPORTED: ['KNOWLEDGEPULSE_MODEL_DIR', 'KNOWLEDGEPULSE_ENGINE'],
  ERR_RUNTIME_NOT_FOUND: ['KNOWLEDGEPULSE_ONNXRUNTIME', 'KNOWLEDGEPULSE_NATIVE_ADDON'],
  ERR_RUNTIME_TOO_OLD: ['KNOWLEDGEPULSE_ONNXRUNTIME'],
  ERR_RUNTIME_UNUSABLE: ['KNOWLEDGEPULSE_ONNXRUNTIME'],
  ERR_TOKENIZER: ['KNOWLEDGEPULSE_MODEL_DIR'],
  ERR_VERSION_MISMATCH: ['KNOWLEDGEPULSE_NATIVE_ADDON'],
};

/**
 * Examines this installation. Never rejects; the report's keys are part of the public interface.
 *
 * @returns {Promise<Report>}
 */
async function diagnose() {
  /** @type {Report} */
  const report = {
    healthy: false,
    version,
    directory: path.join(__dirname, '..', '..'),
    platform: { os: process.platform, arch: process.arch, ...systemLibc() },
    engine: engine(),
    addon: { path: null, version: null, attempts: [] },
    inference: { engine: null, kernel: null },
    runtime: { path: null, version: null },
    model: { directory: null, dtype: null, dimensions: null, files: [], verified: false },
    threads: null,
    embedding: null,
    memory: { residentBytes: null, freeBytes: os.freemem(), totalBytes: os.totalmem() },
    warnings: [],
    problems: [],
  };
  await examine(report);
  for (const problem of report.problems) problem.remedy = remedyFor(problem);
  report.healthy = report.problems.length === 0;
  return report;
}

/**
 * Runs the examination in a process of its own, and adds its findings to `report`.
 *
 * @param {Report} report
 */
async function examine(report) {
  const fail = (/** @type {string} */ code, /** @type {string} */ message) =>
    report.problems.push({ code, message });
  let stage = 'starting';
  let finished = false;
  let lastWords = '';
  let timer;
  try {
    // Its output is no part of the report, except the last line of a crash.
    const child = fork(path.join(__dirname, 'examination.js'), {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    timer = setTimeout(() => child.kill('SIGKILL'), TIME_LIMIT_MS);
    child.on('message', (message) => {
      const { problem, warning, stage: next, finished: isEnd, ...parts } = /** @type {Finding} */ (message);
      if (problem !== undefined) report.problems.push(problem);
      if (warning !== undefined) report.warnings.push(warning);
      stage = next ?? stage;
      finished ||= isEnd ?? false;
      for (const [name, part] of Object.entries(parts)) {
        const known = /** @type {Record<string, any>} */ (report)[name];
        Object.assign(report, { [name]: typeof part === 'object' ? { ...known, ...part } : part });
      }
    });
    child.stderr?.on('data', (chunk) => {
      lastWords = (lastWords + chunk).slice(-2000);
    });
    const [code, signal] = await once(child, 'close');
    if (finished) return;
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    const words = lastWords.trim();
    if (child.killed) fail('ERR_TIMEOUT', `${stage} took longer than ${TIME_LIMIT_MS / 1000} seconds`);
    else fail('ERR_CRASHED', `${stage} ended the process ${how}${words && `: ${words}`}`);
  } catch (error) {
    fail('ERR_NO_PROCESS', `no process to examine it in: ${/** @type {Error} */ (error).message}`);
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Problem} problem */
function remedyFor({ code, remedy = REMEDIES[code] ?? REMEDIES.ERR_INTERNAL }) {
  const set = (VARIABLES[code] ?? []).filter((name) => process.env[name]);
  if (set.length === 0) return remedy;
  const values = set.map((name) => `${name}, which is ${JSON.stringify(process.env[name])}`);
  return `Correct or unset ${values.join(', or ')}.`;
}

/** @returns {Report['engine']} */
function engine() {
  const others = /** @type {const} */ (['bun', 'deno']);
  const name = others.find((other) => process.versions[other] !== undefined) ?? 'node';
  return { name, version: process.versions[name] };
}

const ENGINES = { bun: 'Bun', deno: 'Deno', node: 'Node.js' };
const COLOURS = { bold: [1, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], grey: [90, 39] };
const LABEL_WIDTH = 16;

/**
 * @param {Report} report
 * @param {{ colours: boolean }} options
 */
function render(report, { colours }) {
  const paint = (/** @type {keyof typeof COLOURS} */ colour, /** @type {string} */ text) => {
    const [on, off] = COLOURS[colour];
    return colours ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  };
  // A check that was not reached is neither passed nor failed.
  const mark = (/** @type {boolean} */ good, /** @type {RegExp} */ failures = /^$/) => {
    if (good) return paint('green', '✓');
    return report.problems.some(({ code }) => failures.test(code)) ? paint('red', '✗') : paint('grey', '–');
  };
  /**
   * @param {string} marked
   * @param {string} label
   * @param {Array<string | null | undefined>} parts
   */
  const row = (marked, label, parts) => {
    const [first = 'not known', ...others] = parts.filter((part) => typeof part === 'string');
    const indent = ' '.repeat(LABEL_WIDTH + 2);
    const lines = [first, ...others.map((part) => `${indent}${paint('grey', part)}`)];
    return `${marked} ${label.padEnd(LABEL_WIDTH)}${lines.join('\n')}`;
  };
  const { addon, embedding, engine, inference, memory, model, platform, runtime } = report;
  const libc = platform.libc && [platform.libc, platform.libcVersion].filter(Boolean).join(' ');
  const lines = [
    paint('bold', `@knowledgepulse/native ${report.version}`),
    paint('grey', report.directory),
    '',
    row(mark(true), 'platform', [`${platform.os} ${platform.arch}${libc ? `, ${libc}` : ''}`]),
    row(mark(true), ENGINES[engine.name], [engine.version]),
    row(mark(addon.version === report.version, /_(ADDON|VERSION)_/), 'addon', [
      addon.version ?? 'not loaded',
      addon.path,
      ...addon.attempts.map(({ name, reason }) => `${name}: ${reason}`),
    ]),
    inference.engine === 'builtin'
      ? row(mark(inference.kernel !== null, /_OPTION$/), 'engine', [
          `built in, ${inference.kernel ?? 'no kernel'}${inference.kernel === 'simd128' ? ', in WebAssembly' : ''}`,
        ])
      : row(mark(runtime.version !== null, /_RUNTIME_/), 'engine', [
          inference.engine && `ONNX Runtime ${runtime.version ?? ''}`.trim(),
          runtime.path,
        ]),
    row(mark(model.dtype !== null, /_(MODEL|TOKENIZER)/), 'model', [
      model.dtype && `${model.dtype}, ${model.dimensions} dimensions`,
      model.directory,
    ]),
    row(mark(embedding !== null || model.verified, /_MODEL_DAMAGED/), 'checksums', filesNotes(report)),
    row(mark(report.threads !== null, /^$/), 'threads', [report.threads?.toString()]),
    row(mark(embedding?.correct ?? false, /_(EMBEDDING|INFERENCE)/), 'test embedding', [
      embedding && `${embedding.milliseconds} ms, after ${embedding.loadMilliseconds} ms of loading`,
      embedding &&
        `differs from the published values by ${embedding.largestDifference.toExponential(1)} at most`,
    ]),
    row(mark(true), 'memory', [
      memory.residentBytes === null
        ? null
        : `${megabytes(memory.residentBytes)} in use with the model loaded`,
      `${megabytes(memory.freeBytes)} free of ${megabytes(memory.totalBytes)}`,
    ]),
    '',
  ];
  for (const { code, message } of report.warnings) {
    lines.push(`${paint('yellow', code ?? 'Warning')}: ${message}`, '');
  }
  for (const { code, message, remedy } of report.problems) {
    lines.push(`${paint('red', code)}: ${message}`, `${paint('bold', 'What to do:')} ${remedy}`, '');
  }
  lines.push(report.healthy ? paint('green', 'Healthy.') : paint('red', 'Not healthy.'));
  return lines.join('\n');
}

/** @param {Report} report */
function filesNotes({ model: { files, verified }, embedding }) {
  if (files.length === 0) return [embedding && 'not verified: the directory has no manifest.json'];
  const notes = files.map(({ name, sha256, expectedSha256 }) =>
    sha256 === expectedSha256 ? `${name} ${sha256}` : `${name} ${sha256} instead of ${expectedSha256}`,
  );
  return [verified ? 'as manifest.json says' : 'not as manifest.json says', ...notes];
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${Math.round(bytes / 1e6)} MB`;
}

module.exports = { REMEDIES, diagnose, render };
