// `npm run fuzz:core`: feeds the Rust core with hostile inputs, guided by coverage.
//
//   npm run fuzz:core -- TARGET [SECONDS]      one target, an hour by default
//   npm run fuzz:core -- smoke                 a few seconds of each, with a fixed seed
//
// The layout is cargo-fuzz's, so `cargo fuzz` works here too. This needs neither cargo-fuzz nor a nightly compiler. Inputs
// that reach new code go to fuzz/found, inputs that fail to fuzz/artifacts.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

import { hostTriple, root } from './platform.mjs';
import { runScript, setup } from './setup.mjs';

const fuzz = path.join(root, 'fuzz');
const targets = readdirSync(path.join(fuzz, 'fuzz_targets')).map((file) => path.parse(file).name);

/** The seeds of targets without a folder in fuzz/corpus: what agents have written. */
const RECORDINGS = path.join(root, '__test__', 'formats');

const SMOKE_SECONDS = 5;

/** Has the compiler count which branches an input takes, as cargo-fuzz does. */
const COVERAGE = [
  '--cfg=fuzzing',
  '-Cpasses=sancov-module',
  '-Cllvm-args=-sanitizer-coverage-level=4',
  '-Cllvm-args=-sanitizer-coverage-inline-8bit-counters',
  '-Cllvm-args=-sanitizer-coverage-pc-table',
  '-Cllvm-args=-sanitizer-coverage-trace-compares',
  '-Ccodegen-units=1',
];

/** @param {string} host */
function build(host) {
  const flags = [...COVERAGE];
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, CARGO_ENCODED_RUSTFLAGS: undefined };
  if (host.includes('linux-gnu') || host.includes('apple')) {
    // The address sanitizer comes with every compiler, but its flag is not stable yet.
    flags.push('-Zsanitizer=address');
    env.RUSTC_BOOTSTRAP = '1';
  }
  env.RUSTFLAGS = flags.join(' ');
  // With a named target the flags are for the code under test, not for build scripts.
  const args = ['build', '--release', '--locked', '--target', host];
  execFileSync('cargo', [...args, '--manifest-path', path.join(fuzz, 'Cargo.toml')], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
}

/**
 * Runs a target on its seeds and their mutations; inputs that reach new code go to `found`.
 *
 * @param {string} host
 * @param {string} target
 * @param {string} found
 * @param {string[]} flags
 */
function run(host, target, found, flags) {
  const artifacts = path.join(fuzz, 'artifacts', target);
  for (const folder of [artifacts, found]) mkdirSync(folder, { recursive: true });
  const dictionary = path.join(fuzz, 'dictionaries', `${target}.txt`);
  if (existsSync(dictionary)) flags.push(`-dict=${dictionary}`);
  const limits = ['-timeout=20', '-max_len=8192'];
  const program = path.join(fuzz, 'target', host, 'release', target);
  const corpus = path.join(fuzz, 'corpus', target);
  const folders = [found, existsSync(corpus) ? corpus : RECORDINGS];
  execFileSync(program, [`-artifact_prefix=${artifacts}${path.sep}`, ...limits, ...flags, ...folders], {
    cwd: fuzz,
    stdio: 'inherit',
  });
}

await runScript(async () => {
  const [name, seconds = '3600'] = process.argv.slice(2);
  if (name !== 'smoke' && !targets.includes(name)) {
    throw new Error(`usage: npm run fuzz:core -- smoke | TARGET [SECONDS]\ntargets: ${targets.join(', ')}`);
  }
  await setup();
  const host = hostTriple();
  build(host);
  if (name !== 'smoke') {
    run(host, name, path.join(fuzz, 'found', name), [`-max_total_time=${seconds}`]);
    return;
  }
  // Begins with the seeds alone each time.
  const found = path.join(fuzz, 'found', 'smoke');
  rmSync(found, { recursive: true, force: true });
  for (const target of targets) {
    console.log(`\n── ${target}`);
    const quiet = ['-verbosity=0', '-print_funcs=0'];
    run(host, target, path.join(found, target), ['-seed=1', `-max_total_time=${SMOKE_SECONDS}`, ...quiet]);
  }
});
