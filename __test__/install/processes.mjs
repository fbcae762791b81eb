// Programs run by the tests: each in an environment as empty as a new machine's.

import { spawn } from 'node:child_process';
import { performance } from 'node:perf_hooks';

/** After how many milliseconds a process that hangs is killed, and its case fails. */
const PATIENCE = 120_000;

/**
 * The environment of a user who has set nothing. What npm, the tests or the developer have set must not reach the
 * programs under test.
 */
function emptyEnvironment(home) {
  const kept = ['PATH', 'PATHEXT', 'SystemRoot', 'ComSpec'].map((name) => [name, process.env[name]]);
  return { ...Object.fromEntries(kept), HOME: home, USERPROFILE: home, TMPDIR: home, TEMP: home, TMP: home };
}

/**
 * Runs a program to its end.
 *
 * @param {string[]} command
 * @param {{ cwd: string, home: string, env?: Record<string, string | undefined> }} options `home`: where the program
 * may keep what it likes
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string, milliseconds: number }>}
 */
export async function run([program, ...args], { cwd, home, env = {} }) {
  const start = performance.now();
  const child = spawn(program, args, {
    cwd,
    env: { ...emptyEnvironment(home), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const [code, signal] = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (...how) => resolve(how));
  });
  return { code, signal, stdout, stderr, milliseconds: performance.now() - start };
}

/** As {@link run}, for a program that must succeed. */
export async function runSuccessfully(command, options) {
  const result = await run(command, options);
  if (result.code !== 0) {
    const how = result.signal ?? `code ${result.code}`;
    throw new Error(`${command.join(' ')} ended with ${how}:\n${result.stdout}${result.stderr}`);
  }
  return result;
}
