// From samples to rows, and from rows to text.
//
// Samples come in rounds: `[[1.2, 1.3], [1.1, 1.4], …]`, one array for each turn that a side had. A row is plain
// data, so that it can be written as JSON.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { root } from '../scripts/platform.mjs';

/** @typedef {{ median: number, p95?: number, samples?: number }} Figures */

/** @typedef {{ text: string, verdict(value: number): string }} Target */

/**
 * A row of the table: one that has no figures says by `unavailable` why.
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {string} [unavailable]
 * @property {string} [unit]
 * @property {Figures} [ours]
 * @property {Partial<Figures> & { name: string }} [against]
 * @property {number} [ratio]
 * @property {string} [target]
 * @property {string} [verdict]
 */

/**
 * Returns the `q`-quantile of `samples`, interpolated.
 *
 * @param {number[]} samples
 * @param {number} q
 */
export function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b);
  const position = (sorted.length - 1) * q;
  const low = Math.floor(position);
  const high = Math.ceil(position);
  return sorted[low] + (sorted[high] - sorted[low]) * (position - low);
}

/** @param {number[]} samples */
export const median = (samples) => quantile(samples, 0.5);

/** @param {number[]} values */
export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** @param {number[][]} rounds */
export function summarize(rounds) {
  const samples = rounds.flat();
  return { median: median(samples), p95: quantile(samples, 0.95), samples: samples.length };
}

/**
 * Returns the median over the rounds of how `a` relates to `b` in that round. The two turns of a round follow each other, so
 * that a machine which slows down for a while slows both.
 *
 * @param {number[][]} a
 * @param {number[][]} b
 */
export function pairedRatio(a, b) {
  return median(a.map((samples, round) => median(samples) / median(b[round])));
}

/**
 * Returns a target for a number: `unit` is printed behind it.
 *
 * @param {number} limit
 * @param {string} unit
 * @param {number} [stretch]
 * @returns {Target}
 */
export const atMost = (limit, unit, stretch) => ({
  text: `<= ${limit}${unit}${stretch === undefined ? '' : ` (stretch ${stretch}${unit})`}`,
  verdict(value) {
    if (value > limit) return 'missed';
    return stretch !== undefined && value <= stretch ? 'ok, stretch too' : 'ok';
  },
});

/**
 * @param {number} limit
 * @param {string} unit
 * @returns {Target}
 */
export const atLeast = (limit, unit) => ({
  text: `>= ${limit}${unit}`,
  verdict: (value) => (value < limit ? 'missed' : 'ok'),
});

/**
 * @param {number} limit
 * @param {string} unit
 * @returns {Target}
 */
export const below = (limit, unit) => ({
  text: `< ${limit}${unit}`,
  verdict: (value) => (value >= limit ? 'missed' : 'ok'),
});

/**
 * Both sides' samples and how they relate. `better: 'higher'` turns the ratio of times into a speed-up.
 *
 * @param {{ name: string, unit: string, ours: number[][], against: string, theirs: number[][], target?: Target,
 *   better?: 'higher' | 'lower' }} measured
 * @returns {Row}
 */
export function comparison({ name, unit, ours, against, theirs, target, better = 'lower' }) {
  const ratio = better === 'higher' ? pairedRatio(theirs, ours) : pairedRatio(ours, theirs);
  return {
    name,
    unit,
    ours: summarize(ours),
    against: { name: against, ...summarize(theirs) },
    ratio,
    ...judged(target, ratio),
  };
}

/**
 * Returns a number that has to stay within bounds by itself. `theirs` is shown beside it.
 *
 * @param {{ name: string, unit: string, ours: Figures, against?: string, theirs?: Figures, target?: Target }} measured
 * @returns {Row}
 */
export function bounded({ name, unit, ours, against, theirs, target }) {
  const beside = against === undefined ? {} : { against: { name: against, ...theirs } };
  return { name, unit, ours, ...beside, ...judged(target, ours.median) };
}

/**
 * @param {string} name
 * @param {string | undefined} reason
 * @returns {Row}
 */
export const unavailable = (name, reason) => ({ name, unavailable: reason });

/**
 * @param {Target | undefined} target
 * @param {number} value
 */
function judged(target, value) {
  return target === undefined ? {} : { target: target.text, verdict: target.verdict(value) };
}

/**
 * Writes the results of a benchmark to a file, or into bench/results/.
 *
 * @param {object} results
 * @param {string} name
 * @param {string} [file]
 */
export function writeResults(results, name, file = path.join(root, 'bench', 'results', `${name}.json`)) {
  mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  console.log(`written to ${path.relative(process.cwd(), file)}`);
}

const HEADINGS = ['what', 'ours', 'p95', 'against', 'theirs', 'p95', 'ratio', 'target', ''];
const IS_NUMBER = [false, true, true, false, true, true, true, false, false];

/**
 * @param {Row} row
 * @returns {string[]}
 */
function cellsOf(row) {
  if (row.ours === undefined) return [row.name, `not available: ${row.unavailable}`];
  const { name, unit, ours, against, ratio, target = '', verdict = '' } = row;
  return [
    name,
    quantity(ours.median, unit),
    quantity(ours.p95, unit),
    against?.name ?? '',
    quantity(against?.median, unit),
    quantity(against?.p95, unit),
    ratio === undefined ? '' : `${digits(ratio)}x`,
    target,
    verdict,
  ];
}

/**
 * @param {number | undefined} value
 * @param {string | undefined} unit
 */
export function quantity(value, unit) {
  return value === undefined ? '' : `${digits(value)} ${unit}`;
}

/**
 * Three significant digits, without an exponent.
 *
 * @param {number} value
 */
export function digits(value) {
  if (value === 0) return '0';
  const decimals = 2 - Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.min(4, Math.max(0, decimals)));
}

/**
 * Returns the rows as an aligned table in Markdown.
 *
 * @param {Row[]} rows
 */
export function markdownTable(rows) {
  return alignedTable([HEADINGS, ...rows.map(cellsOf)], IS_NUMBER);
}

/**
 * Returns lines of cells, the headings first, as an aligned table in Markdown.
 *
 * @param {string[][]} lines
 * @param {boolean[]} [isNumber] which columns are aligned to the right
 */
export function alignedTable(lines, isNumber = []) {
  // The reason of an unavailable row runs over the columns.
  const widths = lines[0].map((_, column) =>
    Math.max(
      ...lines
        .filter((cells) => cells.length === lines[0].length || column === 0)
        .map((cells) => cells[column].length),
      2,
    ),
  );
  const rule = widths.map((width, at) => (isNumber[at] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)));
  const aligned = (/** @type {string[]} */ cells) =>
    widths.map((width, at) => (cells[at] ?? '')[isNumber[at] ? 'padStart' : 'padEnd'](width));
  return [aligned(lines[0]), rule, ...lines.slice(1).map(aligned)]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}
