// Compilers of other platforms from Debian and PyPI, and commands whose output goes to a log.

import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

import { root, venvBin } from './platform.mjs';
import { pipInstall } from './setup.mjs';

/** The folder of everything that is made for other platforms; it can be removed. */
export const workshop = path.join(root, 'target', 'platforms');

/** Thrown where this machine lacks something; the message says what. */
export class Impossible extends Error {}

/**
 * Installs the missing ones of Debian's packages; a name may end in `:` and an architecture.
 *
 * @param {string[]} packages
 */
export function installDebianPackages(packages) {
  if (!existsSync('/etc/debian_version') || process.arch !== 'x64') {
    throw new Impossible('needs the packages of Debian 12 for amd64');
  }
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  const command = `apt-get install --no-install-recommends ${missing.join(' ')}`;
  if (process.getuid?.() !== 0) throw new Impossible(`needs, as root: ${command}`);
  const log = logFile('apt');
  rmSync(log, { force: true });
  for (const architecture of new Set(missing.flatMap((name) => name.split(':').slice(1)))) {
    execute('dpkg', ['--add-architecture', architecture], { log });
  }
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const update = attempt('apt-get', ['update'], { log, env });
  if (update.status !== 0) throw new Impossible(`apt-get update failed: ${errorsOfApt(log)}`);
  const install = attempt('apt-get', ['install', '--yes', '--no-install-recommends', ...missing], {
    log,
    env,
  });
  if (install.status !== 0) throw new Impossible(`${command} failed: ${errorsOfApt(log)}`);
}

/** @param {string} log */
function errorsOfApt(log) {
  const errors = readFileSync(log, 'utf8').match(/^E: .*$/gm);
  return errors?.join('; ') ?? lastLines(log);
}

/** @param {string} name */
function isInstalled(name) {
  const { stdout } = spawnSync('dpkg-query', ['--status', name], { encoding: 'utf8' });
  return /^Status: install ok installed$/m.test(stdout);
}

/**
 * Returns the variables that have cargo compile with Debian's `rustc-web`, which knows more targets than a toolchain of
 * rustup brings.
 *
 * @param {{ sources?: boolean }} [options] `sources`: the standard library is compiled too, because Debian has none for the target
 */
export function debianCompiler({ sources = false } = {}) {
  installDebianPackages(['rustc-web', ...(sources ? ['rust-web-src'] : [])]);
  const buildStd = { RUSTC_BOOTSTRAP: '1', CARGO_UNSTABLE_BUILD_STD: 'std,panic_unwind' };
  return { RUSTC: '/usr/bin/rustc', ...(sources ? buildStd : {}) };
}

/** Installs zig and cargo-zigbuild, with which the release links too; returns the directory of their programs. */
export function installZig() {
  pipInstall('scripts/zig.txt');
  return venvBin;
}

/**
 * @typedef {object} Options
 * @property {string} log the file that gets the output
 * @property {Record<string, string>} [env] variables to add to this process's
 * @property {string} [cwd] the checkout by default
 * @property {number} [minutes] how long it may take: 10 by default
 */

/**
 * Runs a command; throws an error with the end of its output if it fails.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {Options} options
 */
export function execute(command, args, options) {
  const { status, signal, error } = attempt(command, args, options);
  if (status === 0) return;
  const end = error ? error.message : (signal ?? `exit code ${status}`);
  throw new Error(`${path.basename(command)} ${args.join(' ')}: ${end}\n${lastLines(options.log)}`);
}

/**
 * Runs a command to its end, however it ends.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {Options} options
 */
export function attempt(command, args, { log, env, cwd = root, minutes = 10 }) {
  mkdirSync(path.dirname(log), { recursive: true });
  const output = openSync(log, 'a');
  try {
    return spawnSync(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', output, output],
      timeout: minutes * 60_000,
      killSignal: 'SIGKILL',
    });
  } finally {
    closeSync(output);
  }
}

/** @param {string} name */
export function logFile(name) {
  return path.join(workshop, 'logs', `${name.replaceAll(/[^\w-]+/g, '-')}.log`);
}

/** @param {string} log */
function lastLines(log) {
  return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-15).join('\n');
}
