// Runs the cases of a file of `__test__`, one line for each.
//
//   --only PATTERN     cases whose names match a regular expression

import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { root } from './platform.mjs';

/**
 * Runs `file` with the arguments of this process; `wrapper` is a command that runs the one that follows it.
 *
 * @param {string} file
 * @param {string[]} [wrapper]
 */
export function runCases(file, wrapper = []) {
  const cases = [process.execPath, '--test-reporter=spec', path.join('__test__', file)];
  const [command, ...args] = [...wrapper, ...cases, ...process.argv.slice(2)];
  process.exitCode = spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status ?? 1;
}
