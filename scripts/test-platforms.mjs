// `npm run test:platforms`: the Rust tests on other platforms, as far as one Linux x64 machine can run them, with packages of
// Debian 12 and PyPI, which it installs. docs/development.md says what runs where.
//
//   npm run test:platforms
//   npm run test:platforms -- --only linux-arm64     one of them; may be repeated

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import {
  attempt,
  debianCompiler,
  execute,
  Impossible,
  installDebianPackages,
  installZig,
  logFile,
  workshop,
} from './debian.mjs';
import { runScript, setup } from './setup.mjs';

/**
 * @typedef {object} Target
 * @property {string} triple
 * @property {string[]} packages of Debian
 * @property {boolean} [hasLibrary] whether Debian has the standard library for it
 * @property {string} [cargo]
 * @property {(directory: string) => Record<string, string>} [env] variables for cargo; the first call makes what they name
 * @property {boolean} [isEmulated] whether it is much slower than this machine
 * @property {string} [refusal] what the compiler must say, where the encoder must not compile
 */

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
    packages: [
      ...['libstd-rust-web-dev:arm64', 'gcc-aarch64-linux-gnu', 'libc6-dev-arm64-cross'],
      ...['qemu-user-static', 'libc6:arm64', 'libgcc-s1:arm64', 'libstdc++6:arm64'],
    ],
    hasLibrary: true,
    isEmulated: true,
    env: () => ({
      CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: 'aarch64-linux-gnu-gcc',
      CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: 'qemu-aarch64-static',
      QEMU_CPU: 'max,sme=off',
    }),
  },
  'linux-x64-musl': {
    triple: 'x86_64-unknown-linux-musl',
    packages: [],
    cargo: 'cargo-zigbuild',
    env: () => ({
      PATH: `${installZig()}${path.delimiter}${process.env.PATH}`,
      // zig brings the files with which a static program begins and ends; Debian's compiler expects to have its own.
      CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS: '-C link-self-contained=no',
    }),
  },
  'win32-x64': {
    triple: 'x86_64-pc-windows-gnu',
    packages: ['gcc-mingw-w64-x86-64-posix', 'wine64'],
    env: (directory) => ({
      CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER: 'x86_64-w64-mingw32-gcc-posix',
      CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER: '/usr/lib/wine/wine64',
      // Wine writes its settings here, and is silent about missing parts.
      WINEPREFIX: path.join(directory, 'wine'),
      WINEDEBUG: '-all',
      WINEDLLOVERRIDES: 'mscoree,mshtml=',
      WINEPATH: `Z:${randomNumbers(directory).replaceAll('/', '\\')}`,
    }),
  },
  'big-endian': {
    triple: 's390x-unknown-linux-gnu',
    packages: [],
    refusal: 'error: weights are read, and packed',
  },
};

const ENCODER = ['-p', 'knowledgepulse-encoder'];

/** The tests of each target, by their names. */
const SUITES = {
  'the encoder': [...ENCODER, '--lib', '--tests'],
  'the core': ['--workspace', '--exclude', 'knowledgepulse-encoder', '--lib'],
  'kp-score': ['-p', 'knowledgepulse-command', '--test', 'transcripts'],
};

/** A test with a text of 512 tokens, which takes too long under emulation. */
const LONG_TEST = 'the_official_model_gives_what_onnx_runtime_does';

/**
 * Makes a library of {@link RANDOM_NUMBERS}; returns its folder.
 *
 * @param {string} directory
 */
function randomNumbers(directory) {
  const folder = path.join(directory, 'libraries');
  mkdirSync(folder, { recursive: true });
  const source = path.join(folder, 'random.c');
  writeFileSync(source, RANDOM_NUMBERS);
  const library = path.join(folder, 'bcryptprimitives.dll');
  const args = ['-shared', '-o', library, source, '-ladvapi32'];
  execute('x86_64-w64-mingw32-gcc-posix', args, { log: logFile('win32-x64-library') });
  return folder;
}

/**
 * Runs the suites of a target; returns a line for each.
 *
 * @param {string} name
 * @param {Target} target
 */
function test(name, { triple, packages, hasLibrary = false, cargo = 'cargo', env, isEmulated, refusal }) {
  const directory = path.join(workshop, name);
  mkdirSync(directory, { recursive: true });
  installDebianPackages(packages);
  const variables = {
    ...debianCompiler({ sources: !hasLibrary }),
    CARGO_TARGET_DIR: path.join(directory, 'target'),
    // The checkout need not remember failures of this run.
    PROPTEST_DISABLE_FAILURE_PERSISTENCE: '1',
    ...(isEmulated && { PROPTEST_CASES: '4' }),
    ...env?.(directory),
  };
  const log = logFile(name);
  rmSync(log, { force: true });
  if (refusal !== undefined) {
    const args = ['check', '--locked', ...ENCODER, '--target', triple];
    const { status } = attempt(cargo, args, { env: variables, log, minutes: 60 });
    const isRefused = status !== 0 && readFileSync(log, 'utf8').includes(refusal);
    if (!isRefused) throw new Error(`cargo check ended with ${status}; see ${log}`);
    return ['the encoder does not compile'];
  }
  const skipped = isEmulated ? ['--', '--skip', LONG_TEST] : [];
  return Object.entries(SUITES).map(([suite, args]) => {
    const suiteLog = logFile(`${name}-${suite}`);
    rmSync(suiteLog, { force: true });
    const all = ['test', '--locked', '--target', triple, ...args, ...skipped];
    execute(cargo, all, { env: variables, log: suiteLog, minutes: 60 });
    return `${suite}: ${countTests(suiteLog)} tests`;
  });
}

/** @param {string} log */
function countTests(log) {
  const text = readFileSync(log, 'utf8');
  const results = [...text.matchAll(/^test result: ok\. (\d+) passed/gm)];
  const commands = [...text.matchAll(/^Testing .*:\d+ \.\.\. ok/gm)].length;
  const passed = results.reduce((sum, [, count]) => sum + Number(count), commands);
  if (passed === 0) throw new Error(`no test was run; see ${log}`);
  return passed;
}

await runScript(async () => {
  const { values } = parseArgs({ options: { only: { type: 'string', multiple: true } } });
  const names = values.only ?? Object.keys(targets);
  const unknown = names.filter((name) => !(name in targets));
  if (unknown.length > 0)
    throw new Error(`no platform ${unknown.join(', ')}; there are ${Object.keys(targets).join(', ')}`);
  await setup();
  for (const name of names) {
    try {
      for (const line of test(name, targets[name])) console.log(`passed    ${name}: ${line}`);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      const isImpossible = error instanceof Impossible;
      console.log(`${isImpossible ? 'not done' : 'failed  '}  ${name}: ${message}`);
      if (!isImpossible) process.exitCode = 1;
    }
  }
});
