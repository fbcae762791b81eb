'use strict';

// Reports, made by the example `report` of the crate of the command.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { gunzipSync } = require('node:zlib');

const { root } = require('./paths.js');
const { buildPrograms, target } = require('../../scripts/rust.js');

/** @type {string | undefined} */
let program;

/** The page without figures. */
const readTemplate = () => gunzipSync(fs.readFileSync(path.join(root, 'dist', 'report.html.gz'))).toString();

const OPTIONS = {
  threshold: /** @type {number | null} */ (0.6),
  sources: ['traces.jsonl'],
  novelty: 'prefix',
  dtype: 'fp32',
  version: '1.2.3',
};

const RUN = { finishedAt: '2026-01-02T03:04:05.000Z', seconds: 12, interrupted: false };

/**
 * @typedef {object} Described a run that is described
 * @property {Partial<typeof OPTIONS>} [options]
 * @property {Partial<typeof RUN>} [run]
 * @property {Array<{ source: string, line: number, index?: number, message: string }>} [errors]
 */

/**
 * The page of a report.
 *
 * @param {object[]} traces each as `makeScored` returns it
 * @param {Described} [described]
 * @returns {string} HTML
 */
function renderReport(traces, described) {
  const template = path.join(target, 'report.html');
  fs.writeFileSync(template, readTemplate());
  return runProgram([template], traces, described);
}

/**
 * The figures of a report.
 *
 * @param {object[]} traces each as `makeScored` returns it
 * @param {Described} [described]
 * @returns {import('../../report/data.js').Report}
 */
function summaryOf(traces, described) {
  return JSON.parse(runProgram([], traces, described));
}

/**
 * @param {string[]} args
 * @param {object[]} traces
 * @param {Described} [described]
 */
function runProgram(args, traces, { options = {}, run = {}, errors = [] } = {}) {
  program ??= buildPrograms().report;
  const records = [
    { ...OPTIONS, ...options },
    ...traces.map((trace) => ({ add: trace })),
    ...errors.map((error) => ({ error })),
    { run: { ...RUN, ...run } },
  ];
  const input = records.map((record) => `${JSON.stringify(record)}\n`).join('');
  return execFileSync(program, args, { input, encoding: 'utf8', maxBuffer: 2 ** 28 });
}

module.exports = { readTemplate, renderReport, summaryOf };
