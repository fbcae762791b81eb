'use strict';

// `kp-score doctor`: checks an installation and gives remedies, even if the rest of the package does not run. Loading happens in
// another process, because a damaged library can end it.

const { spawnSync } = require('node:child_process');
const os = require('node:os');
const path = require('node:path');

const { version } = require('../../package.json');

/** @import { EmbedderStatus } from '../../index.js' */

/** @typedef {{ code: string, message: string, remedy?: string }} Problem `remedy`: what to do about it */

/**
 * What the examination finds: unknown parts are absent.
 *
 * @typedef {object} Findings
 * @property {string | null} [addon] its file; null in a compiled program
 * @property {EmbedderStatus} [embedder]
 * @property {Record<string, string>} [checksums] the SHA-256 of each file of the model, which is that of its manifest
 * @property {{ text: string, loadMilliseconds: number, milliseconds: number, largestDifference: number, tolerance: number }} [embedding]
 * of a known text, with the largest difference from the published values
 * @property {number} [residentBytes] memory of a process with the model loaded
 */

/**
 * A message of the examination, a line of JSON: its next step, its end, its problem, all of its warnings, or findings.
 *
 * @typedef {{ stage?: string, finished?: boolean, problem?: Problem, warnings?: Array<{ code?: string, message: string }> } & Findings} Message
 */

/** @typedef {ReturnType<typeof diagnose>} Report */

const USAGE = `Usage: npx @knowledgepulse/native doctor [--json]

Checks this installation and says what to do about anything wrong. --json prints JSON.
Exit code: 0 healthy, 1 not healthy, 2 wrong usage
`;

/** The time limit. Loading and embedding normally take a second. */
const TIME_LIMIT_MS = 60_000;

/** What to do if no process can be started, if the examination takes too long, and about all other problems. */
const NO_PROCESS =
  'Let this process start another one: look at its limits and its memory; the permission model of Node.js wants --allow-child-process and --allow-addons.';
const TRY_AGAIN = 'Is the machine overloaded, or a file on a slow network drive? Try again.';
const REINSTALL =
  'Reinstall @knowledgepulse/native and its model package with optional dependencies. If that does not help, please report it with the output of doctor --json.';

/** Examines this installation. Never throws. */
function diagnose() {
  const name = ['bun', 'deno'].find((other) => process.versions[other] !== undefined) ?? 'node';
  const { stage: _, finished: __, warnings = [], problem, ...findings } = examine();
  const problems = problem === undefined ? [] : [problem];
  return {
    healthy: problems.length === 0,
    version,
    directory: path.join(__dirname, '..', '..'),
    platform: { os: process.platform, arch: process.arch },
    engine: { name, version: process.versions[name] },
    ...findings,
    freeBytes: os.freemem(),
    warnings,
    problems: problems.map(({ remedy = REINSTALL, ...told }) => ({ ...told, remedy: remedyWith(remedy) })),
  };
}

/**
 * Runs the examination in a process of its own. Returns its messages as one, with a problem if there was no such process, or it ended early.
 *
 * @returns {Message}
 */
function examine() {
  const code = 'ERR_INTERNAL';
  const words = [...process.execArgv, path.join(__dirname, 'examination.js')];
  let child;
  try {
    const limit = /** @type {const} */ ({ timeout: TIME_LIMIT_MS, killSignal: 'SIGKILL' });
    child = spawnSync(process.execPath, words, { ...limit, encoding: 'utf8' });
    if (child.error !== undefined && child.signal === null) throw child.error;
  } catch (error) {
    const message = `no process to examine it in: ${/** @type {Error} */ (error).message}`;
    return { problem: { code, message, remedy: NO_PROCESS } };
  }
  // The last line may be cut off, and what is loaded may print others.
  const lines = child.stdout.split('\n').slice(0, -1);
  const messages = lines.filter((line) => line.startsWith('{'));
  /** @type {Message} */
  const found = Object.assign({}, ...messages.map((line) => JSON.parse(line)));
  const { stage = 'starting', finished = false } = found;
  if (finished) return found;
  if (child.error !== undefined) {
    const message = `${stage} took longer than ${TIME_LIMIT_MS / 1000} seconds`;
    return { ...found, problem: { code, message, remedy: TRY_AGAIN } };
  }
  const how = child.signal === null ? `with code ${child.status}` : `by ${child.signal}`;
  const lastWords = child.stderr.trim().slice(-2000);
  return {
    ...found,
    problem: { code, message: `${stage} ended the process ${how}${lastWords && `: ${lastWords}`}` },
  };
}

/** @param {string} remedy */
function remedyWith(remedy) {
  const names = Object.keys(process.env).filter((name) => name.startsWith('KNOWLEDGEPULSE_'));
  const values = names.map((name) => `${name}, which is ${JSON.stringify(process.env[name])}`);
  const correct = values.length > 0 ? [`Correct or unset ${values.join(', and ')}.`] : [];
  return [...correct, remedy].join(' ');
}

/**
 * Returns a report as text: a line for each field, then warnings and problems.
 *
 * @param {Report} report
 */
function render({ warnings, problems, healthy, ...fields }) {
  const lines = linesOf(fields, '');
  for (const { code, message } of warnings) lines.push('', `${code ?? 'Warning'}: ${message}`);
  for (const { code, message, remedy } of problems) {
    lines.push('', `${code}: ${message}`, `What to do: ${remedy}`);
  }
  return [...lines, '', healthy ? 'Healthy.' : 'Not healthy.'].join('\n');
}

/**
 * @param {object} fields
 * @param {string} indent
 * @returns {string[]}
 */
function linesOf(fields, indent) {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === null || value === undefined) return [];
    if (typeof value !== 'object') return [`${indent}${name}: ${value}`];
    return [`${indent}${name}:`, ...linesOf(value, `${indent}  `)];
  });
}

/** Runs the command: exit code 0 healthy, 1 not healthy or not written, 2 wrong usage. */
function runProcess() {
  const words = process.argv.slice(3);
  if (words.some((word) => word !== '--json')) {
    const isHelp = words.every((word) => ['--help', '-h', '--json'].includes(word));
    process.exitCode = isHelp ? 0 : 2;
    (isHelp ? process.stdout : process.stderr).write(USAGE);
    return;
  }
  const report = diagnose();
  process.exitCode = report.healthy ? 0 : 1;
  process.stdout.on('error', (/** @type {NodeJS.ErrnoException} */ { code, message }) => {
    // A reader that has closed the pipe wants no more.
    if (code === 'EPIPE') return;
    console.error(`kp-score doctor: the report could not be written: ${message}`);
    process.exitCode = 1;
  });
  process.stdout.write(`${words.length > 0 ? JSON.stringify(report, null, 2) : render(report)}\n`);
}

module.exports = { render, runProcess };
