// `npm test`: sets up missing parts, then runs the tests, two suites at a time. Tests that depend on the JavaScript engine
// run on Node.js and on Bun, everything else once; see `specsByEngine`.
//
//   npm run test:all                          the same, and the searches at length, which takes an hour or two
//   npm run test:install                      the packages in empty projects, as users install them
//   npm run test:site [-- PATTERN]            the site in Chromium: by keyboard, in dark mode, on a narrow screen, with 50 MB, with garbage
//   npm run test:wasm                         specs, transcripts and scores in WebAssembly, on Node.js and in Chromium
//
// `test:site` and `test:wasm` build what they test; `-- --built` takes what was built before.
// `test:install` takes `-- --test-name-pattern=PATTERN`, as Node.js does.

import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { prepareNeighbours } from '../__test__/coexistence/neighbours.mjs';
import { prepareTools } from '../__test__/install/tools.mjs';
import { root, venvPython } from './platform.mjs';
import { setupPostgres } from './postgres.mjs';
import { RUST_TEST_OPTIONS, runScript, setup, WITHOUT } from './setup.mjs';
import { onBun, onNode, runSuites, specsByEngine, transcripts } from './suites.mjs';

/** @import { Suite } from './suites.mjs' */

const [wanted = 'short', ...options] = process.argv.slice(2);

/**
 * @param {string} name
 * @param {string[]} args
 */
const program = (name, ...args) => ({ name, command: process.execPath, args });

const core = {
  name: 'the Rust core',
  command: 'cargo',
  args: ['test', ...RUST_TEST_OPTIONS],
};
const modelBuilder = {
  name: 'the model builder',
  command: venvPython,
  args: ['-m', 'unittest', 'discover', '--start-directory', 'model'],
};

const neighbours = program(
  'its neighbours in one process',
  '--test-reporter=spec',
  '__test__/coexistence/main.mjs',
);

/**
 * The packages as they are installed, cut off from all other machines if that is permitted.
 *
 * @param {string[]} flags of Node.js
 */
function installed(...flags) {
  const isolation = [
    'unshare',
    '--net',
    '--map-root-user',
    'sh',
    '-c',
    'ip link set lo up && exec "$@"',
    'sh',
  ];
  const isPermitted = spawnSync(isolation[0], [...isolation.slice(1), 'true']).status === 0;
  const cases = [process.execPath, '--test-reporter=spec', ...flags, '__test__/install/main.mjs'];
  const [command, ...args] = isPermitted ? [...isolation, ...cases] : cases;
  return { name: `the packages, installed ${isPermitted ? 'without' : 'with'} a network`, command, args };
}

/** Every way to exit, again and again. */
function exits() {
  const specs = ['./__test__/exits.spec.js'];
  const env = { KNOWLEDGEPULSE_TEST_REPETITIONS: '30' };
  return [
    { ...onNode(specs, 'every way to exit'), env },
    { ...onBun(specs, 30 * 40_000), env },
  ];
}

/** The specs about results, inputs and memories of the addon. */
const IN_WASM = ['clean', 'invalid-traces.node', 'scorer', 'trace-memory', 'vector-cache'];
/** The tests of behaviour that differs in WebAssembly, where a call ends before the next begins: see docs/installing.md. */
const DIFFERENT = [
  'clean leaves the event loop free',
  'refuses steps: a (proxy of a )?revoked proxy',
  'score that is aborted leaves nothing in the memory',
];
/** The transcripts of what the command asks of the system; what it computes is in the specs. */
const TOPICS_IN_WASM = ['formats', 'input', 'output', 'report', 'sessions', 'share'];

function inWebAssembly() {
  const env = { KNOWLEDGEPULSE_NATIVE_ADDON: 'wasm32' };
  const specs = onNode(
    IN_WASM.map((name) => `./__test__/${name}.spec.js`),
    'the specs in WebAssembly',
  );
  const args = [...specs.args, '--testNamePattern', `^(?!.*(${DIFFERENT.join('|')})).*$`];
  const command = path.join(root, 'bin', 'kp-score.js');
  const topics = TOPICS_IN_WASM.map((topic) => `${topic}.md`);
  const ofCommand = transcripts(command, 'the transcripts of kp-score in WebAssembly', topics);
  return [
    program('WebAssembly and the native addon', '__test__/wasm/main.mjs'),
    { ...specs, args, env },
    { ...ofCommand, env: { ...env, ...ofCommand.env } },
  ];
}

/** What `npm test` runs: the longest first, so that the last two end at about the same time. */
function everyday() {
  const { runOnBoth, runOnce } = specsByEngine();
  return [
    onNode(runOnce, 'what does not depend on the JavaScript engine'),
    core,
    onNode(runOnBoth),
    installed(),
    onBun(runOnBoth),
    neighbours,
    modelBuilder,
  ];
}

const isBuilt = options[0] === '--built';
const patterns = isBuilt ? options.slice(1) : options;
// Loaded late: both need packages that the set-up installs.
const buildWasm = async () => isBuilt || (await import('./build-wasm.mjs')).buildWasm();
const buildSite = async () => isBuilt || (await import('./site.mjs')).buildSite();

/** @type {Record<string, { prepare: Array<() => unknown>, suites: () => Suite[], sideBySide?: number }>} */
const runs = {
  short: {
    prepare: [setupPostgres, prepareTools],
    suites: everyday,
    sideBySide: 2,
  },
  // At length some are timed or make a machine as busy as it can be.
  all: {
    prepare: [setupPostgres, prepareTools, prepareNeighbours],
    suites: () => [
      ...everyday(),
      ...exits(),
      program('hostile calls', '__test__/fuzz/hostile.mjs', '--calls', '200000'),
      {
        ...onNode(['./__test__/clean.spec.js'], 'hostile texts'),
        env: { KNOWLEDGEPULSE_TEST_REPETITIONS: '40' },
      },
      program('hostile files', '__test__/fuzz/command.mjs', '--runs', '2000'),
      program('hostile input to the core', 'scripts/fuzz.mjs', 'smoke'),
      program('errors of memory', 'scripts/memory.mjs'),
    ],
  },
  install: { prepare: [prepareTools], suites: () => [installed(...options)] },
  site: {
    prepare: [buildSite],
    suites: () => [program('the site in Chromium', '__test__/site/main.mjs', ...patterns)],
  },
  wasm: { prepare: [buildWasm], suites: inWebAssembly },
};

await runScript(async () => {
  const run = runs[wanted];
  if (!run) throw new Error(`there are no tests ${wanted}; there are ${Object.keys(runs).join(', ')}`);
  await setup(['short', 'all'].includes(wanted) ? WITHOUT.tests : WITHOUT.tools);
  for (const prepare of run.prepare) await prepare();
  // No landing is refused by chance: the random inputs are the same ones each time, and others in `test:all`.
  if (wanted !== 'all') Object.assign(process.env, { KNOWLEDGEPULSE_TEST_SEED: '1', PROPTEST_RNG_SEED: '1' });
  await runSuites(run.suites(), run);
});
