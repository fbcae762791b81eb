// `npm run test:platforms`: builds and runs the packages of other platforms, as far as one Linux x64 machine can, with
// packages of Debian, PyPI and npm, which it installs. docs/platforms.md lists the coverage.
//
//   npm run test:platforms
//   npm run test:platforms -- --only linux-arm64-gnu     one of them; may be repeated

import { parseArgs } from 'node:util';

import bigEndian from './platforms/big-endian.mjs';
import darwin from './platforms/darwin.mjs';
import linuxArm64 from './platforms/linux-arm64-gnu.mjs';
import linuxX64Musl from './platforms/linux-x64-musl.mjs';
import { Impossible, removeLogs } from './platforms/tools.mjs';
import win32X64 from './platforms/win32-x64.mjs';
import { runScript, setup } from './setup.mjs';

/** @import { Platform } from './platforms/tools.mjs' */

/** @type {Platform[]} */
const platforms = [linuxArm64, linuxX64Musl, win32X64, darwin, bigEndian];

/** @typedef {{ platform: string, name: string, outcome: 'passed' | 'failed' | 'not done', seconds: number, text: string }} Row */

/** @param {Platform} platform */
async function test({ platform, checks }) {
  /** @type {Row[]} */
  const rows = [];
  let obstacle = '';
  removeLogs(platform);
  for (const { name, essential, run } of checks) {
    const start = Date.now();
    /** @type {Pick<Row, 'outcome' | 'text'>} */
    let result;
    try {
      if (obstacle) throw new Impossible(obstacle);
      result = { outcome: 'passed', text: (await run()) ?? '' };
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      result = { outcome: error instanceof Impossible ? 'not done' : 'failed', text: message };
      if (essential && !obstacle) obstacle = `needs “${name}”`;
    }
    const row = { platform, name, seconds: (Date.now() - start) / 1000, ...result };
    console.log(describe(row));
    rows.push(row);
  }
  return rows;
}

/** @param {Row} row */
function describe({ platform, name, outcome, seconds, text }) {
  const head = `${outcome.padEnd(8)}  ${platform}: ${name} (${seconds.toFixed(1)} s)`;
  return text ? `${head}\n            ${text.replaceAll('\n', '\n            ')}` : head;
}

/** @param {Row[]} rows */
function printTable(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  let current = '';
  for (const { platform, name, outcome, seconds, text } of rows) {
    if (platform !== current) console.log(`\n${platform}`);
    current = platform;
    const first = text.split('\n', 1)[0];
    console.log(
      `  ${outcome.padEnd(8)}  ${name.padEnd(width)}  ${seconds.toFixed(0).padStart(4)} s  ${first}`,
    );
  }
  /** @param {Row['outcome']} outcome */
  const count = (outcome) => rows.filter((row) => row.outcome === outcome).length;
  console.log(`\n${count('passed')} passed, ${count('failed')} failed, ${count('not done')} not done`);
}

await runScript(async () => {
  const { values } = parseArgs({ options: { only: { type: 'string', multiple: true } } });
  const names = platforms.map(({ platform }) => platform);
  const unknown = values.only?.filter((name) => !names.includes(name)) ?? [];
  if (unknown.length > 0) throw new Error(`no platform ${unknown.join(', ')}; there are ${names.join(', ')}`);
  await setup();
  const rows = [];
  for (const platform of platforms) {
    if (values.only && !values.only.includes(platform.platform)) continue;
    rows.push(...(await test(platform)));
  }
  printTable(rows);
  if (rows.some(({ outcome }) => outcome === 'failed')) process.exitCode = 1;
});
