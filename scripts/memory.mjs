// `npm run test:memory`: looks for memory errors of ours with the installed tools, and says which checks it skips.
//
//   Miri               the core's and the encoder's unit tests in an interpreter that knows Rust's rules
//   AddressSanitizer   the same tests compiled, with the SIMD kernels
//   Valgrind           the addon in Node.js, at hostile calls

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { addonName, hostTriple, root, temporaryDirectory } from './platform.mjs';
import { run, runScript } from './setup.mjs';
import { runWhatIsThere } from './suites.mjs';

/**
 * The tests of each crate that an interpreter can run: they load no library, wait for no library's thread, and do not try
 * every character.
 */
const PLAIN_MODULES = {
  'knowledgepulse-error': [],
  'knowledgepulse-trace': [],
  'knowledgepulse-index': [],
  'knowledgepulse-score': ['dimensions::', 'engine::queue::', 'overrides::', 'tests::', 'weights::'],
  'knowledgepulse-encoder': ['kernels::', 'thread_pool::', 'tokenizer::tests::'],
};

/** @type {Record<string, import('./suites.mjs').Tool>} */
const tools = {
  miri: {
    missing: () =>
      succeeds('cargo', ['+nightly', 'miri', '--version'])
        ? null
        : '`rustup toolchain install nightly --component miri,rust-src`',
    run: () => {
      for (const [crate, modules] of Object.entries(PLAIN_MODULES)) {
        runWith('cargo', ['+nightly', 'miri', 'test', '--locked', '-p', crate, '--lib', '--', ...modules], {
          // Files and clocks are the tests' own business. The cache relies on exact powers of two.
          MIRIFLAGS: '-Zmiri-disable-isolation -Zmiri-no-extra-rounding-error',
          PROPTEST_CASES: '4',
        });
      }
    },
  },
  asan: {
    missing: () =>
      process.platform === 'linux'
        ? null
        : 'is set up for Linux here; `npm run fuzz:core` uses it on macOS too',
    run: () =>
      runWith(
        'cargo',
        ['test', '--locked', '--workspace', '--lib', '--target', hostTriple(), '--target-dir', 'target/asan'],
        {
          // The compiler brings the sanitizer, but its flag is not stable yet.
          RUSTC_BOOTSTRAP: '1',
          RUSTFLAGS: '-Zsanitizer=address',
        },
      ),
  },
  valgrind: {
    missing: () => (succeeds('valgrind', ['--version']) ? null : 'is not installed'),
    run: runValgrind,
  },
};

/** Where an error is found if a wrong pointer is handed to the system's libraries. */
const SYSTEM = /vgpreload|ld-linux|ld-musl|lib(c|m|pthread|stdc\+\+|gcc_s)\.so/;

/** Node.js has findings of its own: only the addon's count. Memory that is never freed is none: the model stays to the end. */
function runValgrind() {
  const directory = temporaryDirectory('valgrind');
  const options = [
    ...['--quiet', '--error-limit=no', '--num-callers=40'],
    ...['--xml=yes', `--xml-file=${path.join(directory, '%p.xml')}`],
    `--suppressions=${path.join(root, 'scripts', 'valgrind.supp')}`,
  ];
  // Valgrind does not follow code that changes while it runs.
  const calls = ['__test__/fuzz/hostile.mjs', '--calls', '300'];
  runWith('valgrind', [...options, process.execPath, '--jitless', ...calls], {
    // It runs one thread at a time, so waiting threads would only burn time.
    KNOWLEDGEPULSE_THREADS: '1',
  });
  const reports = readdirSync(directory).map((name) => readFileSync(path.join(directory, name), 'utf8'));
  const errors = reports
    .flatMap((report) => report.match(/<error>[\s\S]*?<\/error>/g) ?? [])
    .filter((error) => !error.includes('<kind>Leak_'));
  const ours = errors.filter(isOurs);
  console.log(`${errors.length} findings, ${ours.length} of the addon`);
  if (ours.length > 0) throw new Error(ours.join('\n'));
}

/**
 * Returns whether the innermost function that is not the system's is the addon's.
 *
 * @param {string} error
 */
function isOurs(error) {
  const [stack] = error.match(/<stack>[\s\S]*?<\/stack>/) ?? [''];
  const objects = [...stack.matchAll(/<obj>(.*?)<\/obj>/g)].map(([, object]) => object);
  return objects.find((object) => !SYSTEM.test(path.basename(object)))?.endsWith(addonName()) ?? false;
}

/**
 * @param {string} command
 * @param {string[]} args
 */
function succeeds(command, args) {
  return spawnSync(command, args, { cwd: root }).status === 0;
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
const runWith = (command, args, env) => run(command, args, { env: { ...process.env, ...env } });

await runScript(() => runWhatIsThere(tools));
