// `npm run test:mutants`: breaks the Rust code of a crate in small ways, one at a time, and counts the changes that no test of it sees.
//
//   npm run test:mutants -- score                        the crate knowledgepulse-score
//   npm run test:mutants -- score --file '**/weights.rs' one file of it
//   npm run test:mutants -- score --shard 3/8            every eighth of the mutants, from the fourth on: a sample of all files
//
// What follows the crate are options of cargo-mutants; .cargo/mutants.toml has the others. The results lie in
// target/mutants/CRATE/mutants.out. The process fails if more than one in ten of the viable mutants survives.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { root } from './platform.mjs';
import { installTool, runScript } from './setup.mjs';

const VERSION = '27.1.0';
const MOST_SURVIVORS = 0.1;

await runScript(() => {
  const [crate, ...options] = process.argv.slice(2);
  if (!crate) throw new Error('usage: npm run test:mutants -- CRATE [OPTION of cargo-mutants]...');
  const program = installTool('cargo-mutants', VERSION);
  const output = path.join(root, 'target', 'mutants', crate);
  mkdirSync(output, { recursive: true });
  const args = ['mutants', '--package', `knowledgepulse-${crate}`, '--output', output, '--no-shuffle'];
  const limits = ['--minimum-test-timeout', '60', '--cargo-arg=--locked', '--cargo-arg=--lib'];
  if (options.includes('--shard')) limits.push('--sharding', 'round-robin');
  const { status } = spawnSync(program, [...args, ...limits, ...options], { cwd: root, stdio: 'inherit' });
  // Its status also tells of mutants that survive, so its output is read instead.
  if (![0, 2, 3].includes(status ?? 1)) throw new Error(`cargo mutants failed with status ${status}`);
  const outcomes = path.join(output, 'mutants.out', 'outcomes.json');
  const { caught, missed, timeout } = JSON.parse(readFileSync(outcomes, 'utf8'));
  const viable = caught + missed + timeout;
  console.log(`${crate}: ${missed} of ${viable} viable mutants survive`);
  if (missed > viable * MOST_SURVIVORS) throw new Error('too many mutants survive');
});
