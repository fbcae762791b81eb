'use strict';

// Runs the command `kp-score` in processes of its own.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { makeTrace } = require('./make-trace.js');
const { root } = require('./paths.js');
const { run } = require('./run-script.js');

const command = path.join(root, 'bin', 'kp-score.js');
const examples = path.join(root, 'examples', 'traces.jsonl');

/**
 * Runs it to its end.
 *
 * @param {string[]} args
 * @param {{ input?: string | Buffer, env?: Record<string, string> }} [options] `input` goes to standard input
 */
function kpScore(args, { input = '', env } = {}) {
  return run(process.execPath, [command, ...args], env, undefined, (child) => {
    // It may end without having read everything.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** As {@link kpScore} of `score`, for the results of a run in which all goes well. */
async function results(args, options) {
  const { code, stderr, stdout } = await kpScore(['score', '--format', 'jsonl', '--quiet', ...args], options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return linesOf(stdout).map((line) => JSON.parse(line));
}

/**
 * Runs it, and expects its exit code. `stdout` and `stderr` are texts or expressions that an output must contain or match.
 *
 * @param {string[]} args
 * @param {{ code: number, stdout?: string | RegExp, stderr?: string | RegExp }} expected
 * @param {{ input?: string | Buffer, env?: Record<string, string> }} [options]
 */
async function expectRun(args, { code, ...outputs }, options) {
  const ended = await kpScore(args, options);
  expect(ended).toMatchObject({ code });
  for (const [name, part] of Object.entries(outputs)) expect(ended[name]).toMatch(part);
  return ended;
}

/** Starts it; `ended` settles as {@link kpScore} does. Nothing of its output is read before. */
function start(args) {
  const child = spawn(process.execPath, [command, ...args]);
  child.stdin.on('error', () => {});
  const output = { stdout: '', stderr: '' };
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk;
  });
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => {
      child.stdout.on('data', (chunk) => {
        output.stdout += chunk;
      });
      child.stdout.resume();
    });
    child.on('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  return { child, ended, output };
}

function linesOf(text) {
  return text.split('\n').filter((line) => line !== '');
}

function readLines(file) {
  return linesOf(fs.readFileSync(file, 'utf8'));
}

/** Traces that score differently, by the confidence of their outcome. */
function tracesOf(...confidences) {
  return confidences.map((confidence, at) =>
    makeTrace({ id: `kp:trace:${at}`, confidence, domain: at % 2 ? 'finance' : 'code' }),
  );
}

/** Values as JSON Lines. */
function jsonLines(values) {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

module.exports = {
  command,
  examples,
  expectRun,
  jsonLines,
  kpScore,
  linesOf,
  readLines,
  results,
  start,
  tracesOf,
};
