// `npm test`: sets up missing parts, then runs the tests, two suites at a time. Tests that depend on the JavaScript engine
// run on Node.js and on Bun, everything else once; see `specsByEngine`.
//
// `npm run test:all`: every spec on both, and the searches at length, which takes an hour or two.

import { prepareTools } from '../__test__/install/tools.mjs';
import rust from '../__test__/support/rust.js';
import { venvPython } from './platform.mjs';
import { setupPostgres } from './postgres.mjs';
import { runScript, setup } from './setup.mjs';
import { onBun, onNode, runSuites, specsByEngine, specsIn } from './suites.mjs';

/**
 * @param {string} name
 * @param {string} file
 * @param {string[]} args
 */
const program = (name, file, ...args) => ({ name, command: process.execPath, args: [file, ...args] });

const core = {
  name: 'the Rust core',
  command: 'cargo',
  args: ['test', '--quiet', ...rust.BUILD_OPTIONS],
};
const modelBuilder = {
  name: 'the model builder',
  command: venvPython,
  args: ['-m', 'unittest', 'discover', '--start-directory', 'model'],
};
/** @param {string[]} args */
const neighbours = (...args) =>
  program('its neighbours in one process', 'scripts/test-coexistence.mjs', ...args);
const installed = program('the packages, installed', 'scripts/test-install.mjs');

/** The longest first, so that the last two end at about the same time. */
function short() {
  const { runOnBoth, runOnce } = specsByEngine();
  return [
    onNode(runOnce, 'what does not depend on the JavaScript engine'),
    core,
    onNode(runOnBoth),
    installed,
    onBun(runOnBoth),
    neighbours('--installed'),
    modelBuilder,
  ];
}

const atLength = () => [
  core,
  modelBuilder,
  onNode(specsIn('__test__')),
  onBun(specsIn('__test__')),
  neighbours(),
  installed,
  program('every way to exit', 'scripts/test-exits.mjs'),
  program('hostile calls', '__test__/fuzz/hostile.mjs', '--calls', '200000'),
  program('hostile texts', '__test__/fuzz/clean.mjs', '--texts', '20000'),
  program('hostile files', '__test__/fuzz/command.mjs', '--runs', '2000'),
  program('a heavy load', '__test__/load/run.mjs'),
  program('hostile input to the core', 'scripts/fuzz.mjs', 'smoke'),
  program('errors of memory', 'scripts/memory.mjs'),
];

await runScript(async () => {
  const isAtLength = process.argv.includes('--all');
  await setup({ without: [] });
  setupPostgres();
  prepareTools();
  // At length some are timed or make a machine as busy as it can be.
  await (isAtLength ? runSuites(atLength()) : runSuites(short(), { sideBySide: 2 }));
});
