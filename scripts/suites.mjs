// The suites of tests: how the specs run on Node.js and on Bun, and how suites run beside each other.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import path from 'node:path';

import { skipped } from '../__test__/support/needs.js';
import jest from '../jest.config.js';
import { bun, root } from './platform.mjs';
import { RUST_TEST_OPTIONS, setup } from './setup.mjs';

/**
 * How the name of a spec ends that runs on Node.js alone, because no other JavaScript engine would give it another
 * outcome: it looks at a command as a process, a page in a browser, a PostgreSQL server, a package, the core or wrong arguments.
 */
const NODE_ALONE = '.node.spec.js';

/**
 * @typedef {object} Suite
 * @property {string} name
 * @property {string} command
 * @property {string[]} args
 * @property {Record<string, string>} [env] variables to add to this process's
 */

/**
 * @param {string[]} specs
 * @returns {Suite}
 */
export function onNode(specs, name = 'the package on Node.js') {
  const args = ['node_modules/jest/bin/jest.js', '--runTestsByPath', ...specs];
  return { name, command: process.execPath, args };
}

/**
 * The transcripts of `kp-score` with this program.
 *
 * @param {string} program
 * @param {string} name
 * @param {string[]} [topics] files of transcripts; all without them
 * @returns {Suite}
 */
export function transcripts(program, name, topics = []) {
  const filters = topics.map((topic) => `trycmd=${topic}`);
  const args = ['test', ...RUST_TEST_OPTIONS, '--test', 'transcripts'];
  return {
    name,
    command: 'cargo',
    args: [...args, '--', ...filters],
    env: { KNOWLEDGEPULSE_COMMAND: program },
  };
}

/**
 * These specs on Bun; each test may take `milliseconds`.
 *
 * @param {string[]} specs
 * @returns {Suite}
 */
export function onBun(specs, milliseconds = jest.testTimeout) {
  const args = ['test', '--only-failures', '--timeout', String(milliseconds), ...specs];
  return { name: 'the package on Bun', command: bun, args };
}

/** Returns all specs, as paths that Bun takes for files, by whether their outcome depends on the JavaScript engine. */
export function specsByEngine() {
  const specs = readdirSync(path.join(root, '__test__'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.spec.js') && !name.includes('node_modules'))
    .map((name) => `./__test__/${name.replaceAll(path.sep, '/')}`)
    .sort();
  const runOnce = specs.filter((spec) => spec.endsWith(NODE_ALONE));
  return { runOnBoth: specs.filter((spec) => !runOnce.includes(spec)), runOnce };
}

/**
 * Tests for which a machine may lack something: `missing` says what, and null if it lacks nothing.
 *
 * @typedef {{ missing: () => string | null, run: () => void }} Tool
 */

/**
 * Runs tools. Says which it skips, and what they need.
 *
 * @param {Record<string, Tool>} tools
 */
export async function runWhatIsThere(tools) {
  await setup();
  for (const [name, { missing, run }] of Object.entries(tools)) {
    const needed = missing();
    console.log(`\n── ${name}`);
    if (needed) skipped(needed);
    else run();
  }
}

/**
 * Runs suites in their order, to the end of the last one; throws if one failed. With `sideBySide` above 1, that many run at
 * a time, and each prints its output when it has ended.
 *
 * @param {Suite[]} suites
 * @param {{ sideBySide?: number }} [options]
 */
export async function runSuites(suites, { sideBySide = 1 } = {}) {
  const waiting = [...suites];
  /** @type {string[]} */
  const failed = [];
  const oneAfterAnother = async () => {
    for (let suite = waiting.shift(); suite !== undefined; suite = waiting.shift()) {
      if (!(await succeeds(suite, sideBySide > 1))) failed.push(suite.name);
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, oneAfterAnother));
  if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);
}

/**
 * @param {Suite} suite
 * @param {boolean} isBuffered its output comes in one piece, so that it does not mix with that of others
 */
async function succeeds({ name, command, args, env }, isBuffered) {
  console.log(isBuffered ? `${name} …` : `\n── ${name}`);
  const start = Date.now();
  /** @type {Buffer[]} */
  const output = [];
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = isBuffered ? ['ignore', 'pipe', 'pipe'] : 'inherit';
  const child = spawn(command, args, { cwd: root, stdio, env: { ...process.env, ...env } });
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => output.push(chunk));
  const [code, signal] = await once(child, 'close');
  if (isBuffered) {
    const how = code === 0 ? '' : ` failed with ${signal ?? `code ${code}`}`;
    console.log(`\n── ${name}${how} (${Math.round((Date.now() - start) / 1000)} s)`);
    process.stdout.write(Buffer.concat(output));
  }
  return code === 0;
}
