// `npm run test:platforms`: the Rust tests on other platforms, as far as one Linux x64 machine can run them, with the targets of
// rustup and the compilers and emulators of Debian or Ubuntu. It says which it skips and what they need.

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { root } from './platform.mjs';
import { addRustTargets, run, runScript } from './setup.mjs';
import { runWhatIsThere } from './suites.mjs';

/**
 * @typedef {object} Target
 * @property {string} triple
 * @property {string[]} packages of Debian
 * @property {() => Record<string, string>} [env] variables for cargo; makes what they name
 * @property {boolean} [isEmulated] whether it is much slower than this machine
 */

/** The folder of everything that is made for other platforms; it can be removed. */
const workshop = path.join(root, 'target', 'platforms');

/** Debian's Wine lacks the library from which Rust takes random numbers; another one of Wine's has them too. */
const RANDOM_NUMBERS = `
  #include <windows.h>
  BOOLEAN WINAPI SystemFunction036(PVOID, ULONG);
  __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return SystemFunction036(data, (ULONG)length);
  }
`;

/** @type {Record<string, Target>} */
const targets = {
  'linux-arm64': {
    triple: 'aarch64-unknown-linux-gnu',
    packages: ['gcc-aarch64-linux-gnu', 'libc6-dev-arm64-cross', 'qemu-user-static'],
    isEmulated: true,
    env: () => ({
      CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: 'aarch64-linux-gnu-gcc',
      CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: 'qemu-aarch64-static -L /usr/aarch64-linux-gnu',
      QEMU_CPU: 'max,sme=off',
    }),
  },
  'linux-x64-musl': { triple: 'x86_64-unknown-linux-musl', packages: ['musl-tools'] },
  'win32-x64': {
    triple: 'x86_64-pc-windows-gnu',
    packages: ['gcc-mingw-w64-x86-64-posix', 'wine64'],
    env: () => ({
      CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER: 'x86_64-w64-mingw32-gcc-posix',
      CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER: '/usr/lib/wine/wine64',
      // Wine writes its settings here, and is silent about missing parts.
      WINEPREFIX: path.join(workshop, 'wine'),
      WINEDEBUG: '-all',
      WINEDLLOVERRIDES: 'mscoree,mshtml=',
      WINEPATH: `Z:${randomNumbers().replaceAll('/', '\\')}`,
    }),
  },
};

/** The tests of each target. */
const SUITES = [
  ['-p', 'knowledgepulse-encoder', '--lib', '--tests'],
  ['--workspace', '--exclude', 'knowledgepulse-encoder', '--lib'],
  ['-p', 'knowledgepulse-command', '--test', 'transcripts'],
];

/** A test with a text of 512 tokens, which takes too long under emulation. */
const LONG_TEST = 'the_official_model_gives_what_onnx_runtime_does';

/** Makes a library of {@link RANDOM_NUMBERS}; returns its folder. */
function randomNumbers() {
  const folder = path.join(workshop, 'libraries');
  mkdirSync(folder, { recursive: true });
  const source = path.join(folder, 'random.c');
  writeFileSync(source, RANDOM_NUMBERS);
  const library = path.join(folder, 'bcryptprimitives.dll');
  run('x86_64-w64-mingw32-gcc-posix', ['-shared', '-o', library, source, '-ladvapi32']);
  return folder;
}

/**
 * Returns what this machine lacks for a target beside Rust's library; null if it lacks nothing.
 *
 * @param {Target} target
 */
function missing({ packages }) {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'Linux on x64';
  const lacking = packages.filter((name) => spawnSync('dpkg-query', ['--status', name]).status !== 0);
  return lacking.length > 0 ? `apt-get install ${lacking.join(' ')}` : null;
}

/**
 * Runs the suites of a target.
 *
 * @param {Target} target
 */
function test({ triple, env, isEmulated }) {
  addRustTargets(triple);
  const variables = {
    CARGO_TARGET_DIR: workshop,
    // The checkout need not remember failures of this run.
    PROPTEST_DISABLE_FAILURE_PERSISTENCE: '1',
    ...(isEmulated && { PROPTEST_CASES: '4' }),
    ...env?.(),
  };
  const skipped = isEmulated ? ['--', '--skip', LONG_TEST] : [];
  for (const suite of SUITES) {
    const args = ['test', '--locked', '--quiet', '--target', triple, ...suite, ...skipped];
    run('cargo', args, { env: { ...process.env, ...variables } });
  }
}

const tools = Object.entries(targets).map(([name, target]) => [
  ...[name, { missing: () => missing(target), run: () => test(target) }],
]);
await runScript(() => runWhatIsThere(Object.fromEntries(tools)));
