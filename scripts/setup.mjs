// Prepares a checkout: dependencies, models, ONNX Runtime, report, addon. Each step prints its task, is skipped when it is
// up to date, and runs beside steps that do not need it.
//
//   node scripts/setup.mjs              every step
//   node scripts/setup.mjs STEP...      these steps alone, one after another

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  addonName,
  hostPlatform,
  hostTriple,
  isProgram,
  platformDirectory,
  root,
  venvPython,
} from './platform.mjs';
import { carriesRuntime, hasRuntime, isStaged, runtimeDirectory, stageRuntime } from './stage-runtime.mjs';

const platform = hostPlatform();

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {string} doing
 * @property {string[]} [inputs] files and folders
 * @property {string} [stamp] the file that keeps the hash of the inputs
 * @property {string} [within] a step with the same inputs and stamp that does what this one does, and more
 * @property {string[]} [needs] names of the steps of the set-up that come before it
 * @property {() => boolean | undefined} done
 * @property {() => void} run
 */

const BUILD_PACKAGES = 'build packages';
const DEPENDENCIES = 'dependencies';
export const INT8_MODEL = 'int8 model';
const READERS = 'python readers';
const RUNTIME = 'ONNX Runtime';

const ADDON = 'addon';
const CRATES = 'crates';
/** The step of benchmarks, in place of the addon that a checkout builds for itself. */
const PUBLISHED_ADDON = 'addon as it is published';
/** The step that `npm test` alone has. */
const RUST_TESTS = 'tests in Rust';

/** The options of cargo for the tests in Rust: with the features of the whole workspace, they share their crates with the addon. */
export const RUST_TEST_OPTIONS = ['--workspace', '--locked', '--quiet', '--target', 'host-tuple'];

/** What a checkout builds: the addon, and the tool that makes the int8 weights (see model/build.py), which names the tests' features. */
const CHECKOUT_PACKAGES = ['knowledgepulse-native', 'knowledgepulse-quantize'].flatMap((name) => [
  '--package',
  name,
]);

/** Which steps are left out, by what a checkout is set up for. */
export const WITHOUT = {
  tools: [BUILD_PACKAGES, PUBLISHED_ADDON, RUST_TESTS],
  tests: [BUILD_PACKAGES, PUBLISHED_ADDON],
  benchmarks: [BUILD_PACKAGES, CRATES, ADDON, RUST_TESTS],
  // The built-in engine and fp32 weights are enough for the first scores.
  start: [
    ...[DEPENDENCIES, PUBLISHED_ADDON, INT8_MODEL, READERS, RUST_TESTS],
    ...(carriesRuntime(platform) ? [] : [RUNTIME]),
  ],
};

/** What both steps that install packages of npm share; the later one replaces what the other has installed. */
const packages = {
  inputs: ['package-lock.json'],
  stamp: 'node_modules/.knowledgepulse-dependencies',
};

/** What both steps that build an addon share; the later one replaces what the other has built. */
const addon = {
  inputs: [
    'Cargo.toml',
    'Cargo.lock',
    '.cargo',
    'build.rs',
    'rust-toolchain.toml',
    'crates',
    'src',
    'dist/report.html.gz',
    'package.json',
    'npm/THIRD-PARTY-LICENSES',
  ],
  stamp: 'target/.knowledgepulse-addon',
  done: () =>
    existsSync(path.join(platformDirectory(), addonName())) && existsSync(path.join(root, declarations)),
};

/**
 * The steps, each after the steps that it needs. `inputs` are files and folders whose contents, hashed with the name into a stamp, decide
 * whether the step has to run again; `done` is a cheap check that its result is still there.
 *
 * @type {Step[]}
 */
const steps = [
  {
    ...packages,
    name: BUILD_PACKAGES,
    doing: 'installing the npm packages that build the addon',
    within: DEPENDENCIES,
    done: () => existsSync(path.join(root, 'node_modules', 'esbuild')),
    // Without those of __test__/package.json, which are nine tenths of all.
    run: () => npm(['ci', '--no-workspaces', '--loglevel=error']),
  },
  {
    ...packages,
    name: DEPENDENCIES,
    doing: 'installing the npm packages of package-lock.json',
    done: () => existsSync(path.join(root, 'node_modules', 'jest')),
    run: installDependencies,
  },
  {
    name: 'python tools',
    doing: 'installing the packages of model/requirements.txt into model/.venv',
    inputs: ['model/requirements.txt'],
    stamp: 'model/.venv/.knowledgepulse-requirements',
    done: () => existsSync(venvPython),
    run: installPythonTools,
  },
  {
    name: READERS,
    doing: 'installing the packages of scripts/readers.txt, which read what we write, into model/.venv',
    needs: ['python tools'],
    inputs: ['scripts/readers.txt'],
    stamp: 'model/.venv/.knowledgepulse-readers',
    done: () => true,
    run: () => pipInstall('scripts/readers.txt'),
  },
  {
    name: 'model',
    doing: 'building npm/all-minilm-l6-v2 from the official weights',
    needs: ['python tools'],
    done: () => isModelBuilt('fp32'),
    run: () => run(venvPython, ['model/build.py', '--dtype', 'fp32']),
  },
  {
    name: INT8_MODEL,
    doing: 'building npm/all-minilm-l6-v2-q8 from the official weights',
    needs: ['model'],
    done: () => isModelBuilt('q8'),
    run: () => run(venvPython, ['model/build.py', '--dtype', 'q8']),
  },
  {
    name: RUNTIME,
    needs: ['python tools'],
    doing: `staging the library into ${path.relative(root, runtimeDirectory(platform))}`,
    done: () => !hasRuntime(platform) || isStaged(platform),
    run: () => stageRuntime(platform),
  },
  {
    name: 'report',
    needs: [BUILD_PACKAGES, DEPENDENCIES],
    doing: 'bundling the page of report/ into dist/report.html.gz, which the addon carries',
    inputs: ['report', 'scripts/build-report.mjs', 'scripts/notices.mjs', 'package-lock.json'],
    stamp: 'dist/.knowledgepulse-report',
    done: () => existsSync(path.join(root, 'dist', 'report.html.gz')),
    run: () => run(process.execPath, ['scripts/build-report.mjs']),
  },
  {
    name: CRATES,
    doing: 'compiling the crates of the addon that need no page of the report',
    // With a page, the addon's own step compiles them.
    done: () => existsSync(path.join(root, 'dist', 'report.html.gz')),
    run: compileWithoutPage,
  },
  {
    ...addon,
    name: ADDON,
    needs: ['report', CRATES],
    doing: 'building the Rust addon (a minute or two the first time)',
    run: () => buildAddon(platform, { napi: [], cargo: ['--lib', ...CHECKOUT_PACKAGES] }),
  },
  {
    ...addon,
    name: PUBLISHED_ADDON,
    needs: ['report'],
    doing: 'building the Rust addon with all optimisations (some minutes)',
    run: () => buildAddon(platform),
  },
  {
    name: RUST_TESTS,
    doing: 'compiling them',
    // Before it they would wait for each other's crates.
    needs: [ADDON],
    // Cargo knows what is up to date.
    done: () => false,
    run: () => run('cargo', ['test', ...RUST_TEST_OPTIONS, '--no-run']),
  },
];

/**
 * Runs the steps that are not up to date, side by side where neither needs the other: each in a process of its own.
 *
 * @param {string[]} [without] names of steps to leave out
 */
export async function setup(without = WITHOUT.tools) {
  /** @type {Map<string, Promise<void>>} */
  const begun = new Map();
  /** @param {Step} step */
  const begin = async (step) => {
    await Promise.all((step.needs ?? []).map((name) => begun.get(name)));
    if (isUpToDate(step)) return;
    const args = [fileURLToPath(import.meta.url), step.name];
    const [status] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
    if (status !== 0) throw new Error(`${step.name}: failed`);
  };
  for (const step of steps) if (!without.includes(step.name)) begun.set(step.name, begin(step));
  await Promise.all(begun.values());
}

/**
 * Runs the steps of these names that are not up to date, one after another.
 *
 * @param {string[]} names
 */
export function setupSteps(names) {
  prepare(steps.filter(({ name }) => names.includes(name)));
}

/** @param {'fp32' | 'q8'} dtype */
function isModelBuilt(dtype) {
  const args = ['model/build.py', '--check', '--dtype', dtype];
  return spawnSync(venvPython, args, { cwd: root, stdio: 'ignore' }).status === 0;
}

/** @param {Step[]} steps */
export function prepare(steps) {
  for (const step of steps) {
    if (isUpToDate(step)) continue;
    console.log(`${step.name}: ${step.doing} …`);
    // Before the step, because it may change its inputs.
    const hash = hashOf(step);
    const start = Date.now();
    step.run();
    if (step.stamp) {
      mkdirSync(path.dirname(path.join(root, step.stamp)), { recursive: true });
      writeFileSync(path.join(root, step.stamp), hash);
    }
    console.log(`${step.name}: done in ${((Date.now() - start) / 1000).toFixed(1)} s`);
  }
}

/**
 * Returns whether a step need not run, and tells so.
 *
 * @param {Step} step
 */
function isUpToDate(step) {
  const { name, stamp, within = name, done } = step;
  if (stamp) {
    const file = path.join(root, stamp);
    const stamped = existsSync(file) && readFileSync(file, 'utf8');
    if (stamped !== hashOf(step) && stamped !== hashOf({ ...step, name: within })) return false;
  }
  if (!done()) return false;
  console.log(`${name}: up to date`);
  return true;
}

/** @param {Step} step */
function hashOf({ name, inputs = [] }) {
  const hash = createHash('sha256').update(name).update('\0');
  for (const input of inputs) {
    for (const file of filesOf(path.join(root, input))) {
      hash.update(path.relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
    }
  }
  return hash.digest('hex');
}

/**
 * @param {string} input
 * @returns {string[]}
 */
function filesOf(input) {
  if (!statSync(input).isDirectory()) return [input];
  return readdirSync(input)
    .sort()
    .flatMap((name) => filesOf(path.join(input, name)));
}

function installDependencies() {
  npm(['ci', '--loglevel=error']);
  // The bun package fetches its program through an optional dependency, and its script only puts it in place.
  run(process.execPath, ['node_modules/bun/install.js']);
}

function installPythonTools() {
  const python = findPython();
  run(python, ['-m', 'venv', '--clear', 'model/.venv']);
  pipInstall('model/requirements.txt');
}

/**
 * Installs the packages of a file of requirements into model/.venv.
 *
 * @param {string} file
 */
export function pipInstall(file) {
  run(venvPython, [
    // What is imported is compiled then: the packages are large, and few of their modules are used.
    ...['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile'],
    ...['--require-hashes', '--no-deps', '--requirement', file],
  ]);
}

function findPython() {
  for (const python of ['python3', 'python']) {
    const version = spawnSync(python, ['-c', 'import sys; print(sys.version_info >= (3, 10))'], {
      encoding: 'utf8',
    });
    if (version.stdout?.trim() === 'True') return python;
  }
  throw new Error('Python 3.10 or newer is needed to build the model package, and was not found in PATH');
}

/** Compiles what can be compiled while npm installs. A failure comes again in the addon's step, which tells it. */
function compileWithoutPage() {
  const options = ['--locked', '--keep-going', '--target', hostTriple(), '--lib'];
  const env = { ...process.env, KNOWLEDGEPULSE_PAGE: 'required' };
  spawnSync('cargo', ['build', ...options, ...CHECKOUT_PACKAGES], { cwd: root, env, stdio: 'ignore' });
}

/** The declarations of the binding, which napi generates. */
const declarations = 'lib/binding.d.ts';

/**
 * Builds the addon of a platform into its package.
 *
 * @param {string} platform
 * @param {{ napi?: string[], cargo?: string[], env?: NodeJS.ProcessEnv }} [options] options of `napi build` and of cargo, and the
 *   environment of the compiler
 */
export function buildAddon(platform, { napi = ['--release'], cargo = [], env = process.env } = {}) {
  mkdirSync(platformDirectory(platform), { recursive: true });
  const output = ['--output-dir', `npm/${platform}`, '--no-js', '--dts', `../../${declarations}`];
  const cli = 'node_modules/@napi-rs/cli/dist/cli.js';
  run(process.execPath, [cli, 'build', '--platform', ...napi, ...output, '--', '--locked', ...cargo], {
    env,
  });
  // The licences of the linked libraries travel with the addon.
  const licences = 'THIRD-PARTY-LICENSES';
  copyFileSync(path.join(root, 'npm', licences), path.join(platformDirectory(platform), licences));
}

/**
 * Installs a tool from crates.io into target/tools, unless this version is there; returns its program.
 *
 * @param {string} name
 * @param {string} version
 */
export function installTool(name, version) {
  const tools = path.join(root, 'target', 'tools');
  run('cargo', ['install', '--locked', '--quiet', '--root', tools, '--version', version, name]);
  return path.join(tools, 'bin', name);
}

/**
 * Adds Rust's standard library for targets of another platform; does nothing where it is there.
 *
 * @param {string[]} targets
 */
export function addRustTargets(...targets) {
  const added = spawnSync('rustup', ['target', 'add', ...targets], { cwd: root, encoding: 'utf8' });
  if (added.status === 0) return;
  const cause = (added.error?.message ?? added.stderr).trim().split('\n').at(-1);
  throw new Error(`Rust's library for ${targets.join(', ')} is missing, and rustup cannot add it: ${cause}`);
}

/**
 * Runs npm; returns its output if `options` pipe it.
 *
 * @param {string[]} args
 * @param {import('node:child_process').ExecFileSyncOptions} [options]
 */
export function npm(args, options = {}) {
  // Within `npm start` this is the npm that runs it; a bare name would need a shell on Windows.
  const cli = process.env.npm_execpath;
  if (cli) return run(process.execPath, [cli, ...args], options);
  return run('npm', args, { shell: process.platform === 'win32', ...options });
}

/**
 * Runs a command in the checkout; returns its output if `options` pipe it.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').ExecFileSyncOptions} [options]
 */
export function run(command, args, options = {}) {
  return execFileSync(command, args, { cwd: root, stdio: 'inherit', ...options, encoding: 'utf8' });
}

/**
 * Runs `main`, and ends with the error's message alone if a command has explained its failure.
 *
 * @param {() => void | Promise<void>} main
 */
export async function runScript(main) {
  try {
    await main();
  } catch (cause) {
    const error = /** @type {Error & { status?: number }} */ (cause);
    console.error(error.message);
    process.exitCode = typeof error.status === 'number' ? error.status : 1;
  }
}

if (isProgram(import.meta)) {
  const names = process.argv.slice(2);
  await runScript(() => (names.length > 0 ? setupSteps(names) : setup()));
}
