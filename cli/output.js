'use strict';

const { randomBytes } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pipeline } = require('node:stream/promises');
const { promisify } = require('node:util');
const { createGzip } = require('node:zlib');

const { CommandError, EXIT, reasonOf } = require('./errors.js');
const { targetOf } = require('./input.js');

const [close, open, sync] = [promisify(fs.close), promisify(fs.open), promisify(fs.fsync)];

/** Of temporary files: what is left of a process that was killed is known by it. */
const [PREFIX, SUFFIX] = ['.kp-score-', '.tmp'];

const STDOUT = 1;
const STDERR = 2;

/**
 * What removes the temporary files and the locks of this process, however it ends.
 *
 * @type {Set<() => void>}
 */
const removals = new Set();
process.on('exit', removeTemporaryFiles);

function removeTemporaryFiles() {
  for (const remove of removals) {
    try {
      remove();
    } catch {
      // The process is ending, so an error can no longer be reported.
    }
  }
}

/** Locks of files; only now, because help is there even where the addon cannot be loaded. */
const fileLocks = () => require('../lib/loader.js').addon.NativeFileLock;

/** A temporary file beside the one that it is to replace. While this process lives, no other one takes it for abandoned. */
class TemporaryFile {
  path;
  #remove;
  /** @type {Lock | null | undefined} */
  #lock;

  /** @param {string} target its name may be as long as names can be, so that of this one does not depend on it */
  constructor(target) {
    this.path = path.join(path.dirname(target), `${PREFIX}${randomBytes(6).toString('hex')}${SUFFIX}`);
    this.#remove = () => fs.rmSync(this.path, { force: true });
  }

  /**
   * Creates it, for writing and reading; returns its descriptor.
   *
   * @param {number} [mode]
   */
  async open(mode) {
    fileLocks().removeAbandoned(path.dirname(this.path), PREFIX, SUFFIX);
    removals.add(this.#remove);
    const descriptor = await open(this.path, 'wx+', mode);
    this.#lock = fileLocks().keep(this.path);
    return descriptor;
  }

  /**
   * Gives it the name of the file that it replaces.
   *
   * @param {string} target
   */
  async rename(target) {
    await fs.promises.rename(this.path, target);
    this.#letGo();
  }

  async remove() {
    await fs.promises.rm(this.path, { force: true });
    this.#letGo();
  }

  #letGo() {
    removals.delete(this.#remove);
    this.#lock?.release();
  }
}

/**
 * A file that appears with all its contents or not at all: they go to a temporary file beside it, which takes its place when
 * it is on the disk. Pipes and devices are written to directly.
 */
class OutputFile {
  /** How it was named. */
  name;
  /** Where the file lies that is to be replaced, and how that is called in messages. */
  #path = '';
  #shown = '';
  /** @type {TemporaryFile | undefined} */
  #temporary;
  #isStandard = false;
  /** @type {number | undefined} */
  #descriptor;
  /**
   * Owns the descriptor: closes it when it is destroyed.
   *
   * @type {fs.WriteStream | undefined}
   */
  #writer;
  /** @type {import('node:stream').Writable | undefined} */
  #first;
  /** @type {Promise<unknown> | undefined} */
  #done;
  /** @type {Error | undefined} */
  #failure;

  /** @param {string} name */
  constructor(name) {
    this.name = name;
  }

  /**
   * Opens it; compressed if the name ends in `.gz`.
   *
   * @param {string} name
   * @throws {CommandError}
   */
  static async open(name) {
    const file = new OutputFile(name);
    try {
      await file.#open();
    } catch (error) {
      await file.discard().catch(() => {});
      throw cannotWrite(name, error);
    }
    return file;
  }

  async #open() {
    /** @type {number | undefined} */
    let mode;
    const existing = await fs.promises.stat(this.name, { bigint: true }).catch(ignoreMissing);
    if (existing?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    const standard = existing?.isFile()
      ? [STDOUT, STDERR].find((stream) => isDescriptorOf(stream, existing))
      : undefined;
    if (standard !== undefined) {
      // As `/dev/stdout` is: replaced, it would lose what the shell has opened it for, and what it is appended to.
      this.#isStandard = true;
      this.#descriptor = standard;
    } else if (existing === undefined || existing.isFile()) {
      // What a link points to is replaced, not the link.
      this.#path = targetOf(this.name);
      this.#shown = isLink(this.name) ? this.#path : this.name;
      mode = existing && Number(existing.mode);
      // Where the old file may not be written to, it may not be replaced either.
      if (existing) await fs.promises.access(this.#path, fs.constants.W_OK);
      this.#temporary = new TemporaryFile(this.#path);
      this.#descriptor = await this.#temporary.open(mode);
    } else {
      this.#descriptor = await open(this.name, 'w');
    }
    // Not a FileHandle: that cannot be closed while a stream of its own has not been destroyed.
    const writer = fs.createWriteStream(this.name, { fd: this.#descriptor, autoClose: false });
    this.#writer = writer;
    const streams = /\.gz$/i.test(this.name) ? [createGzip(), writer] : [writer];
    this.#first = streams[0];
    this.#done = streams.length === 1 ? once(writer, 'finish') : pipeline(streams);
    this.#done.catch(() => {});
    for (const stream of streams) {
      stream.on('error', (/** @type {Error} */ error) => {
        this.#failure ??= error;
      });
    }
    // Without what the umask takes away.
    if (mode !== undefined && this.#temporary) await fs.promises.chmod(this.#temporary.path, mode);
  }

  /**
   * Writes text; settles when there is room for more.
   *
   * @param {string} text
   */
  async write(text) {
    const stream = /** @type {import('node:stream').Writable} */ (this.#first);
    if (!this.#failure && stream.write(text)) return;
    if (!this.#failure) await roomIn(stream);
    if (this.#failure) throw cannotWrite(this.name, this.#failure);
  }

  /** Settles when all that was written is on the disk. */
  async finish() {
    try {
      this.#first?.end();
      await this.#done;
      if (this.#temporary) await sync(/** @type {number} */ (this.#descriptor));
      if (!this.#isStandard) await closeStream(this.#writer);
    } catch (error) {
      throw cannotWrite(this.name, error);
    }
  }

  /** The name for a result that is not complete; null where it was written directly. */
  get partial() {
    return this.#temporary ? `${this.#shown}.partial` : null;
  }

  /** Puts it in its place; after `finish`. */
  async publish() {
    await this.#rename(this.#path, this.name);
  }

  /** Puts it beside its place, as {@link partial}; after `finish`. */
  async publishPartial() {
    await this.#rename(`${this.#path}.partial`, `${this.#shown}.partial`);
  }

  /**
   * @param {string} target
   * @param {string} name how the target is called in messages
   */
  async #rename(target, name) {
    if (!this.#temporary) return;
    try {
      await this.#temporary.rename(target);
      await syncDirectory(path.dirname(target));
    } catch (error) {
      throw cannotWrite(name, error);
    }
  }

  /** Leaves the old file as it was. */
  async discard() {
    if (!this.#temporary) return;
    this.#first?.destroy();
    await closeStream(this.#writer).catch(() => {});
    await this.#temporary.remove();
  }
}

/** @param {string} name */
function isLink(name) {
  return fs.lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/**
 * Destroys a stream, which closes its descriptor once, and settles when that is closed.
 *
 * @param {fs.WriteStream | undefined} stream
 */
async function closeStream(stream) {
  if (stream === undefined || stream.closed) return;
  const closed = once(stream, 'close');
  stream.destroy();
  await closed;
}

/**
 * Whether an open file is the one that this is known of.
 *
 * @param {number} descriptor
 * @param {fs.BigIntStats} stats
 */
function isDescriptorOf(descriptor, { dev, ino }) {
  try {
    const open = fs.fstatSync(descriptor, { bigint: true });
    return open.dev === dev && open.ino === ino;
  } catch {
    // It is closed.
    return false;
  }
}

/**
 * Makes sure that a file can be made where this one is to be written at last.
 *
 * @param {string} name
 * @throws {CommandError}
 */
async function requireRoomFor(name) {
  const temporary = new TemporaryFile(targetOf(name));
  try {
    await close(await temporary.open());
  } catch (error) {
    throw cannotWrite(name, error);
  } finally {
    await temporary.remove().catch(() => {});
  }
}

/** @typedef {import('../lib/binding.js').NativeFileLock} Lock */

/** Keeps other runs from a file that this one loads now and replaces later: what they add to it meanwhile would be lost. */
class FileLock {
  #path;
  /** @type {Lock | null} */
  #lock;
  #remove = () => this.#lock?.remove();

  /**
   * @param {string} name the file, which need not exist; the lock is a file beside it
   * @throws {CommandError} if another run has it
   */
  constructor(name) {
    this.#path = `${targetOf(name)}.lock`;
    const { KIND } = FileLock;
    try {
      this.#lock = fileLocks().create(this.#path, KIND, `${process.pid} on ${os.hostname()}`);
    } catch (error) {
      throw new CommandError(
        EXIT.file,
        `cannot lock ${name} by ${this.#path}: ${/** @type {Error} */ (error).message}`,
      );
    }
    if (this.#lock === null) {
      throw new CommandError(
        EXIT.file,
        `${name} is in use by ${this.#holder()}, which holds ${this.#path}: wait until it has ended, or name another file`,
      );
    }
    removals.add(this.#remove);
  }

  /** What begins a lock file, before the id of the process and the name of its machine. */
  static KIND = 'kp-score';

  #holder() {
    try {
      const text = fs.readFileSync(this.#path, 'utf8').trim();
      return text.replace(/^kp-score (\d+)/, 'kp-score, process $1') || 'another run';
    } catch {
      return 'another run';
    }
  }

  /** Lets other runs have the file. */
  release() {
    removals.delete(this.#remove);
    try {
      this.#remove();
    } catch {
      // The file of the lock stays, but unlocked: the next run takes it over.
    }
  }
}

/**
 * Settles when a stream takes more, or never will. Not by `Promise.race`: what it waits for would keep each of its calls.
 *
 * @param {import('node:stream').Writable} stream
 * @returns {Promise<void>}
 */
function roomIn(stream) {
  return new Promise((resolve) => {
    const events = ['drain', 'error', 'close'];
    const settle = () => {
      for (const event of events) stream.off(event, settle);
      resolve();
    };
    for (const event of events) stream.on(event, settle);
  });
}

/** @param {NodeJS.ErrnoException} error */
function ignoreMissing(error) {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}

/**
 * So that the new name survives a loss of power; Windows has no such thing.
 *
 * @param {string} directory
 */
async function syncDirectory(directory) {
  if (process.platform === 'win32') return;
  const handle = await fs.promises.open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * @param {string} name
 * @param {unknown} error
 */
function cannotWrite(name, error) {
  return new CommandError(
    EXIT.file,
    `cannot write ${name}: ${reasonOf(error)}; name a file in a directory that can be written to and has room`,
  );
}

/** Standard output. When its reader has gone away, `isClosed`, and what is written is lost. */
class StandardOutput {
  isClosed = false;
  #stream = process.stdout;
  /** @type {Error | undefined} */
  #failure;

  /** @param {() => void} onClose */
  constructor(onClose) {
    this.#stream.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === 'EPIPE') {
        this.isClosed = true;
        onClose();
      } else {
        this.#failure = new CommandError(EXIT.file, `cannot write to standard output: ${reasonOf(error)}`);
      }
    });
  }

  /**
   * Writes text; settles when there is room for more.
   *
   * @param {string} text
   */
  async write(text) {
    if (this.#failure) throw this.#failure;
    if (this.isClosed || this.#stream.write(text)) return;
    // An error ends the waiting too.
    await once(this.#stream, 'drain').catch(() => {});
    if (this.#failure) throw this.#failure;
  }

  /** Settles when all that was written has been taken. */
  async finish() {
    if (this.isClosed) return;
    await new Promise((resolve) => this.#stream.write('', resolve));
    if (this.#failure) throw this.#failure;
  }
}

module.exports = {
  FileLock,
  OutputFile,
  removeTemporaryFiles,
  requireRoomFor,
  StandardOutput,
  TemporaryFile,
};
