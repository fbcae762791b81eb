// Programs run by the tests: each in an environment as empty as a new machine's.

import { run as runCommand, success } from '../support/run-script.js';

/** After how many milliseconds a process that hangs is killed, and its case fails. */
const PATIENCE = 300_000;

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
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string }>}
 */
export function run([program, ...args], { cwd, home, env = {} }) {
  const unset = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));
  const own = { ...unset, ...emptyEnvironment(home), ...env };
  return runCommand(program, args, own, cwd, (child) => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
    child.on('close', () => clearTimeout(timer));
  });
}

/** As {@link run}, for a program that must succeed. */
export const runSuccessfully = (command, options) => success(run(command, options), command.join(' '));

/** A function that makes something when it is first asked for it, and gives the same thing from then on. */
export function once(make) {
  let made;
  return () => {
    made ??= make();
    return made;
  };
}
