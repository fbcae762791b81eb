// From samples to rows, and from rows to a table. Samples come in rounds: `[[1.2, 1.3], [1.1, 1.4], …]`, one array for each turn of
// a side. A row is plain data, so that it can be written as JSON.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { root } from '../scripts/platform.mjs';

/**
 * A limit for the ratio of a row, or for its own figure where it has no ratio.
 *
 * @typedef {{ most: number } | { least: number }} Target
 */

/**
 * A row of the table.
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {string} [unit]
 * @property {number} [ours] the median
 * @property {string} [against]
 * @property {number} [theirs] the median
 * @property {number} [ratio] ours to theirs; with a least target, how many times faster ours is
 * @property {string} [target]
 * @property {'ok' | 'missed'} [verdict]
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

/**
 * Compares both sides: the ratio is the median over the rounds. The two turns of a round follow each other, so that a machine
 * that slows down for a while slows both.
 *
 * @param {{ name: string, unit: string, ours: number[][], against: string, theirs: number[][], target?: Target }} measured
 * @returns {Row}
 */
export function comparison({ name, unit, ours, against, theirs, target }) {
  const ratios = ours.map((samples, round) => median(samples) / median(theirs[round]));
  const ratio = target && 'least' in target ? 1 / median(ratios) : median(ratios);
  const figures = { ours: median(ours.flat()), theirs: median(theirs.flat()) };
  return { name, unit, against, ...figures, ratio, ...judged(target, ratio, 'x') };
}

/**
 * Returns a figure of our own, which has to stay within its target by itself.
 *
 * @param {{ name: string, unit: string, ours: number, against?: string, theirs?: number, target?: Target }} measured
 * @returns {Row}
 */
export function bounded({ target, ...measured }) {
  return { ...measured, ...judged(target, measured.ours, ` ${measured.unit}`) };
}

/**
 * @param {Target | undefined} target
 * @param {number} value
 * @param {string} unit
 * @returns {Pick<Row, 'target' | 'verdict'>}
 */
function judged(target, value, unit) {
  if (target === undefined) return {};
  const [sign, limit, isMet] =
    'most' in target
      ? ['<=', target.most, value <= target.most]
      : ['>=', target.least, value >= target.least];
  return { target: `${sign} ${limit}${unit}`, verdict: isMet ? 'ok' : 'missed' };
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

/**
 * Prints rows as a table, with three significant digits.
 *
 * @param {Row[]} rows
 */
export function printTable(rows) {
  const digits = (/** @type {number | undefined} */ value) => value && Number(value.toPrecision(3));
  console.table(
    rows.map(({ ours, theirs, ratio, ...row }) => ({
      ...row,
      ours: digits(ours),
      theirs: digits(theirs),
      ratio: digits(ratio),
    })),
    ['name', 'unit', 'ours', 'against', 'theirs', 'ratio', 'target', 'verdict'],
  );
}

/**
 * Returns how many milliseconds some work takes, and its result.
 *
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<[milliseconds: number, result: T]>}
 */
export async function timed(work) {
  const start = performance.now();
  const result = await work();
  return [performance.now() - start, result];
}
