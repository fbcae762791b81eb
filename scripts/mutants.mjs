// `npm run test:mutants`: breaks the Rust code in small ways, one at a time, and counts the changes that no test of the crate sees.
//
//   npm run test:mutants                            the crates below
//   npm run test:mutants -- score                   one crate, or several
//   npm run test:mutants -- score --file weights.rs one file of it
//   npm run test:mutants -- --shard 3/8             every eighth of the mutants, from the fourth on: a sample of all files
//
// The results lie in target/mutants/CRATE/mutants.out. The process fails if more than one in ten of a crate's viable mutants survives.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { root } from './platform.mjs';
import { run, runScript } from './setup.mjs';

const CRATES = ['trace', 'formats', 'clean', 'index', 'score'];
const VERSION = '27.1.0';
const MOST_SURVIVORS = 0.1;

const tools = path.join(root, 'target', 'tools');
const program = path.join(tools, 'bin', process.platform === 'win32' ? 'cargo-mutants.exe' : 'cargo-mutants');

function install() {
  const found = existsSync(program)
    ? spawnSync(program, ['mutants', '--version'], { encoding: 'utf8' })
    : null;
  if (found?.stdout.trim() === `cargo-mutants ${VERSION}`) return;
  run('cargo', ['install', '--locked', '--root', tools, '--version', VERSION, 'cargo-mutants']);
}

/**
 * Tests a crate with each of its mutants. Returns whether few enough survive.
 *
 * @param {string} crate
 * @param {{ file?: string, shard?: string }} options
 */
function test(crate, { file, shard }) {
  const output = path.join(root, 'target', 'mutants', crate);
  mkdirSync(output, { recursive: true });
  const args = ['mutants', '--package', `knowledgepulse-${crate}`, '--output', output, '--no-shuffle'];
  args.push('--minimum-test-timeout', '60', '--colors', 'never', '--cargo-arg=--locked', '--cargo-arg=--lib');
  if (file) args.push('--file', `crates/${crate}/src/${file}`);
  if (shard) args.push('--sharding', 'round-robin', '--shard', shard);
  // Its status also tells of mutants that survive, so its output is read instead.
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  const OK = [0, 2, 3];
  if (!OK.includes(status ?? 1)) throw new Error(`cargo mutants failed with status ${status}`);
  const outcomes = path.join(output, 'mutants.out', 'outcomes.json');
  const { caught, missed, timeout } = JSON.parse(readFileSync(outcomes, 'utf8'));
  const viable = caught + missed + timeout;
  console.log(`${crate}: ${missed} of ${viable} viable mutants survive`);
  return missed <= viable * MOST_SURVIVORS;
}

await runScript(() => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { file: { type: 'string' }, shard: { type: 'string' } },
  });
  const unknown = positionals.find((name) => !CRATES.includes(name));
  if (unknown) throw new Error(`no crate ${unknown}; there are ${CRATES.join(', ')}`);
  install();
  const crates = positionals.length > 0 ? positionals : CRATES;
  const weak = crates.filter((crate) => !test(crate, values));
  if (weak.length > 0) throw new Error(`too many mutants survive in ${weak.join(', ')}`);
});
