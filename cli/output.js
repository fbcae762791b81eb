'use strict';

const { randomBytes } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { pipeline } = require('node:stream/promises');
const { promisify } = require('node:util');
const { createGzip } = require('node:zlib');

const { CommandError, EXIT, reasonOf } = require('./errors.js');
const { identityOf } = require('./input.js');

const [close, open, sync] = [fs.close, fs.open, fs.fsync].map(promisify);

/** Temporary files that are to be removed however the process ends. */
const temporaryFiles = new Set();
process.on('exit', removeTemporaryFiles);

function removeTemporaryFiles() {
  for (const file of temporaryFiles) {
    try {
      fs.rmSync(file, { force: true });
    } catch {
      // There is nobody to tell.
    }
  }
}

/**
 * A file that appears with all its contents or not at all: they go to a temporary file beside it, which takes its place when
 * it is on the disk. What is no ordinary file, such as a pipe or a device, is written to directly.
 */
class OutputFile {
  /** How it was named. */
  name;
  #path;
  #temporary;
  #descriptor;
  #first;
  #done;
  #failure;

  /**
   * Opens it; compressed if the name ends in `.gz`.
   *
   * @param {string} name
   * @throws {CommandError}
   */
  static async open(name) {
    const file = new OutputFile();
    file.name = name;
    try {
      await file.#open();
    } catch (error) {
      await file.discard().catch(() => {});
      throw cannotWrite(name, error);
    }
    return file;
  }

  async #open() {
    const existing = await fs.promises.stat(this.name).catch(ignoreMissing);
    if (existing?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    if (existing === undefined || existing.isFile()) {
      // What a link points to is replaced, not the link.
      this.#path = existing ? await fs.promises.realpath(this.name) : path.resolve(this.name);
      // Where the old file may not be written to, it may not be replaced either.
      if (existing) await fs.promises.access(this.#path, fs.constants.W_OK);
      this.#temporary = temporaryBeside(this.#path);
      temporaryFiles.add(this.#temporary);
      this.#descriptor = await open(this.#temporary, 'wx', existing?.mode);
      // Without what the umask takes away.
      if (existing) await fs.promises.chmod(this.#temporary, existing.mode);
    } else {
      this.#descriptor = await open(this.name, 'w');
    }
    // Not a FileHandle: that cannot be closed while a stream of its own has not been destroyed.
    const writer = fs.createWriteStream(this.name, { fd: this.#descriptor, autoClose: false });
    const streams = this.name.endsWith('.gz') ? [createGzip(), writer] : [writer];
    this.#first = streams[0];
    this.#done = streams.length === 1 ? once(writer, 'finish') : pipeline(streams);
    this.#done.catch(() => {});
    for (const stream of streams) {
      stream.on('error', (error) => {
        this.#failure ??= error;
      });
    }
  }

  /** Writes text; settles when there is room for more. */
  async write(text) {
    if (!this.#failure && this.#first.write(text)) return;
    if (!this.#failure) await roomIn(this.#first);
    if (this.#failure) throw cannotWrite(this.name, this.#failure);
  }

  /** Settles when all that was written is on the disk. */
  async finish() {
    try {
      this.#first.end();
      await this.#done;
      if (this.#temporary) await sync(this.#descriptor);
      await close(this.#descriptor);
      this.#descriptor = undefined;
    } catch (error) {
      throw cannotWrite(this.name, error);
    }
  }

  /** Puts it in its place; after `finish`. */
  async publish() {
    if (!this.#temporary) return;
    try {
      await fs.promises.rename(this.#temporary, this.#path);
      temporaryFiles.delete(this.#temporary);
      await syncDirectory(path.dirname(this.#path));
    } catch (error) {
      throw cannotWrite(this.name, error);
    }
  }

  /** Leaves the old file as it was. */
  async discard() {
    if (!this.#temporary) return;
    if (this.#descriptor !== undefined) {
      this.#first?.destroy();
      await close(this.#descriptor).catch(() => {});
    }
    await fs.promises.rm(this.#temporary, { force: true });
    temporaryFiles.delete(this.#temporary);
  }
}

/** The name does not depend on that of the file, which may be as long as names can be. */
function temporaryBeside(file) {
  return path.join(path.dirname(file), `.kp-score-${randomBytes(6).toString('hex')}.tmp`);
}

/**
 * Makes sure that a file can be made where this one is to be written at last.
 *
 * @param {string} name
 * @throws {CommandError}
 */
async function requireRoomFor(name) {
  const temporary = temporaryBeside(identityOf(name));
  temporaryFiles.add(temporary);
  try {
    await close(await open(temporary, 'wx'));
    await fs.promises.rm(temporary, { force: true });
  } catch (error) {
    throw cannotWrite(name, error);
  } finally {
    temporaryFiles.delete(temporary);
  }
}

/** Settles when a stream takes more, or never will. Not by `Promise.race`: what it waits for would keep each of its calls. */
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

function ignoreMissing(error) {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}

/** So that the new name survives a loss of power; Windows has no such thing. */
async function syncDirectory(directory) {
  if (process.platform === 'win32') return;
  const handle = await fs.promises.open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

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
  #failure;

  constructor(onClose) {
    this.#stream.on('error', (error) => {
      if (error.code === 'EPIPE') {
        this.isClosed = true;
        onClose();
      } else {
        this.#failure = new CommandError(EXIT.file, `cannot write to standard output: ${reasonOf(error)}`);
      }
    });
  }

  /** Writes text; settles when there is room for more. */
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

module.exports = { OutputFile, removeTemporaryFiles, requireRoomFor, StandardOutput };
