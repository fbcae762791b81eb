// `npm run bench`: this package side by side with its alternatives.
//
//   npm run bench                        about five minutes
//   npm run bench -- --quick             about one, with fewer rounds
//   npm run bench -- --only q8           only the rows whose name, or whom they are against, contains that
//   npm run bench -- --record            keeps the ratios in bench/machines.json, and writes the table in bench/machines.md
//   npm run bench -- --json FILE         the results go there instead of bench/results/
//   KNOWLEDGEPULSE_KERNEL=avx2 npm run bench   as on a processor that has no more than these instructions
//
// Each side has a process of its own, and only one is busy at a time. Before anything is timed, the sides
// must agree.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { bun, root } from '../scripts/platform.mjs';
import { runScript, setup } from '../scripts/setup.mjs';
import { record } from './machines.mjs';
import { markdownTable, writeResults } from './measure.mjs';

/** @typedef {ReturnType<typeof makeBench>} Bench */

const LEGEND = `Times are medians. A ratio is the median over the rounds of ours to theirs in the same round; where the target
is a lower bound, of how many times faster we are. Event loop: by how much a timer of 1 ms comes too late.`;

await runScript(main);

async function main() {
  const options = readOptions();
  await setup();
  // The traces and the oracle's arithmetic need the dependencies that the set-up installs.
  const sections = await loadSections();
  const bench = makeBench(options);
  const report = {
    machine: describeMachine(bench),
    versions: await describeVersions(),
    quick: options.quick,
  };
  console.log(`\n${report.machine}\n${report.versions}\n`);

  /** @type {import('./measure.mjs').Row[]} */
  const rows = [];
  for (const section of sections) rows.push(...(await section(bench)));
  const shown = rows.filter(({ name, against, unavailable }) =>
    bench.wants(`${name} ${against?.name ?? unavailable ?? ''}`),
  );
  if (shown.length === 0) throw new Error(`no row has ${JSON.stringify(options.only)} in its name`);

  console.log(`\n${markdownTable(shown)}\n`);
  console.log(LEGEND);
  console.log(summary(shown));
  const { enginesLine } = await import('./rows/engines.mjs');
  const line = enginesLine(rows);
  if (line) console.log(`\n${report.machine}; ${line}`);
  // Named after the machine, so that a later run of the same kind replaces it.
  const parts = [process.platform, process.arch, options.quick && 'quick', options.only && 'part'];
  writeResults({ ...report, rows: shown }, parts.filter(Boolean).join('-'), options.json);
  if (options.record) record(report, shown);
}

function readOptions() {
  return parseArgs({
    options: {
      json: { type: 'string' },
      only: { type: 'string', default: '' },
      quick: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
    },
  }).values;
}

/**
 * Loads the files in rows/, each of which exports a function of its name that measures its rows.
 *
 * @returns {Promise<Array<(bench: Bench) => Promise<import('./measure.mjs').Row[]>>>}
 */
function loadSections() {
  const names = ['scoring', 'engines', 'cores', 'search', 'clean', 'files', 'formats'];
  return Promise.all(
    [...names, 'noEmbedder', 'startUp', 'footprint'].map(async (name) => {
      const file = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return (await import(`./rows/${file}.mjs`))[name];
    }),
  );
}

/** @param {{ only: string, quick: boolean }} options */
function makeBench({ only, quick }) {
  const kernel = findKernel();
  return {
    quick,
    kernel,
    // Whether the targets for the widest instructions apply, or those for AVX2.
    wide: kernel === 'avx512-vnni',
    bun: findBun(),
    usearchProblem: findUsearchProblem(),
    rounds: (/** @type {number} */ full, /** @type {number} */ few) => (quick ? few : full),
    say: (/** @type {string} */ what) => console.error(`measuring: ${what} …`),
    wants: (/** @type {string} */ name) => name.toLowerCase().includes(only.toLowerCase()),
  };
}

function findKernel() {
  const code = "require('.').embedderStatus().then(({ kernel }) => console.log(kernel))";
  const env = { ...process.env, KNOWLEDGEPULSE_ENGINE: 'builtin', KNOWLEDGEPULSE_DTYPE: 'q8' };
  return execFileSync(process.execPath, ['--eval', code], { cwd: root, env, encoding: 'utf8' }).trim();
}

/** Returns the Bun of the development dependencies, if there is one for this platform. */
function findBun() {
  try {
    execFileSync(bun, ['--version'], { stdio: 'ignore' });
    return bun;
  } catch {
    return undefined;
  }
}

/** Why usearch cannot be compared with: it has no prebuilt library for some platforms. */
function findUsearchProblem() {
  try {
    createRequire(import.meta.url)('usearch');
    return undefined;
  } catch (error) {
    return `usearch does not load: ${/** @type {Error} */ (error).message.split('\n', 1)[0]}`;
  }
}

/** @param {Bench} bench */
function describeMachine({ bun, kernel }) {
  const bunVersion = bun && execFileSync(bun, ['--version'], { encoding: 'utf8' }).trim();
  return [
    os.cpus()[0]?.model.trim() ?? 'unknown processor',
    `${os.availableParallelism()} cores`,
    `${os.type()} ${os.release()} ${os.arch()}`,
    `Node.js ${process.versions.node}`,
    bunVersion ? `Bun ${bunVersion}` : 'no Bun',
    `kernel ${kernel}`,
  ].join(', ');
}

async function describeVersions() {
  const { tracesName } = await import('./workload.mjs');
  const versionOf = (/** @type {string} */ name) => {
    const file = path.join(root, 'node_modules', name, 'package.json');
    return existsSync(file) ? `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}` : `no ${name}`;
  };
  const others = ['@huggingface/transformers', 'usearch'].map(versionOf).join(', ');
  return `against ${others}; traces of ${tracesName}`;
}

/** @param {import('./measure.mjs').Row[]} rows */
function summary(rows) {
  const count = (/** @type {string} */ verdict) =>
    rows.filter((row) => row.verdict?.startsWith(verdict)).length;
  const absent = rows.filter((row) => row.unavailable !== undefined).length;
  return `targets: ${count('ok')} ok, ${count('missed')} missed${absent ? `; ${absent} rows not available` : ''}`;
}
