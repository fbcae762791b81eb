// `npm run bench -- --record`: records this machine's measurements, and writes the table of all machines.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { root } from '../scripts/platform.mjs';
import { alignedTable, digits, quantity } from './measure.mjs';

/** @typedef {import('./measure.mjs').Row} Row */

/**
 * The measurements of a machine: for each row that has a target, the number that the target is for.
 *
 * @typedef {object} Machine
 * @property {string} machine
 * @property {string} versions
 * @property {string} date
 * @property {boolean} quick whether some of the rows come from a run with fewer rounds
 * @property {Record<string, { value: string, verdict: string }>} rows
 */

const FILE = path.join(root, 'bench', 'machines.json');
const PAGE = path.join(root, 'bench', 'machines.md');
const [BEGIN, END] = ['<!-- machines: npm run bench -- --record -->', '<!-- machines end -->'];

/**
 * Keeps a run: it replaces the rows of an earlier one on the same machine with the same kernel.
 *
 * @param {{ machine: string, versions: string, quick: boolean }} report
 * @param {Row[]} rows
 */
export function record({ machine, versions, quick }, rows) {
  /** @type {Machine[]} */
  const machines = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : [];
  const before = machines.find((each) => each.machine === machine);
  const measured = rows
    .filter(({ target, ours }) => target !== undefined && ours !== undefined)
    .map(({ name, ratio, ours, unit, verdict = '' }) => {
      const value = ratio === undefined ? quantity(ours?.median, unit) : digits(ratio);
      return [name, { value, verdict }];
    });
  // A part of the rows replaces that part.
  const replaced = Object.fromEntries(measured);
  const keepsQuick = before?.quick === true && Object.keys(before.rows).some((name) => !(name in replaced));
  const now = {
    machine,
    versions,
    date: new Date().toISOString().slice(0, 10),
    quick: quick || keepsQuick,
    rows: { ...before?.rows, ...replaced },
  };
  const all = before ? machines.map((each) => (each === before ? now : each)) : [...machines, now];
  writeFileSync(FILE, `${JSON.stringify(all, null, 2)}\n`);
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${PAGE} has no place for the table: ${BEGIN} … ${END}`);
  writeFileSync(PAGE, `${page.slice(0, from)}${BEGIN}\n\n${table(all)}\n\n${page.slice(to)}`);
  for (const file of [FILE, PAGE]) console.log(`recorded in ${path.relative(process.cwd(), file)}`);
}

/** @param {Machine[]} machines */
function table(machines) {
  const names = [...new Set(machines.flatMap(({ rows }) => Object.keys(rows)))];
  const cell = (/** @type {Machine} */ { rows }, /** @type {string} */ name) => {
    const { value = '', verdict = '' } = rows[name] ?? {};
    return verdict === 'missed' ? `${value} \\*` : value;
  };
  const numbers = machines.map((_, index) => `(${index + 1})`);
  const lines = [
    ['what', ...numbers],
    ...names.map((name) => [name, ...machines.map((machine) => cell(machine, name))]),
  ];
  const legend = machines.map(
    ({ machine, versions, date, quick }, index) =>
      `${index + 1}. ${machine}; ${versions}; ${date}${quick ? ', a quick run' : ''}`,
  );
  return `${legend.join('\n')}\n\n${alignedTable(lines)}`;
}
