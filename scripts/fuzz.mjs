// `npm run fuzz:core`: feeds the Rust core with hostile inputs, guided by coverage, by cargo-fuzz.
//
//   npm run fuzz:core -- TARGET [SECONDS]      one target, an hour by default
//   npm run fuzz:core -- smoke                 a few seconds of each, with a fixed seed
//
// Inputs that reach new code go to fuzz/found, inputs that fail to fuzz/artifacts.

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

import { root } from './platform.mjs';
import { installTool, run, runScript, setup } from './setup.mjs';

const VERSION = '0.13.2';
const SMOKE_SECONDS = 5;

const fuzz = path.join(root, 'fuzz');
const targets = readdirSync(path.join(fuzz, 'fuzz_targets')).map((file) => path.parse(file).name);

/** The seeds of targets without a folder in fuzz/corpus: what agents have written. */
const RECORDINGS = path.join(root, '__test__', 'formats');

/** The address sanitizer comes with every compiler, but its flag is not stable yet; Windows has none. */
const SANITIZER = process.platform === 'win32' ? 'none' : 'address';

/**
 * Runs a target on its seeds and their mutations; inputs that reach new code go to `found`.
 *
 * @param {string} program
 * @param {string} target
 * @param {string} found
 * @param {string[]} flags
 */
function search(program, target, found, flags) {
  mkdirSync(found, { recursive: true });
  const dictionary = path.join(fuzz, 'dictionaries', `${target}.txt`);
  if (existsSync(dictionary)) flags.push(`-dict=${dictionary}`);
  const corpus = path.join(fuzz, 'corpus', target);
  const folders = [found, existsSync(corpus) ? corpus : RECORDINGS];
  const args = ['run', '--sanitizer', SANITIZER, target, ...folders];
  run(program, [...args, '--', '-timeout=20', '-max_len=8192', ...flags], {
    env: { ...process.env, RUSTC_BOOTSTRAP: '1', CARGO_ENCODED_RUSTFLAGS: undefined },
  });
}

await runScript(async () => {
  const [name, seconds = '3600'] = process.argv.slice(2);
  if (name !== 'smoke' && !targets.includes(name)) {
    throw new Error(`usage: npm run fuzz:core -- smoke | TARGET [SECONDS]\ntargets: ${targets.join(', ')}`);
  }
  await setup();
  const program = installTool('cargo-fuzz', VERSION);
  if (name !== 'smoke') {
    search(program, name, path.join(fuzz, 'found', name), [`-max_total_time=${seconds}`]);
    return;
  }
  // Begins with the seeds alone each time.
  const found = path.join(fuzz, 'found', 'smoke');
  rmSync(found, { recursive: true, force: true });
  for (const target of targets) {
    console.log(`\n── ${target}`);
    const quiet = ['-verbosity=0', '-print_funcs=0'];
    search(program, target, path.join(found, target), [
      '-seed=1',
      `-max_total_time=${SMOKE_SECONDS}`,
      ...quiet,
    ]);
  }
});
