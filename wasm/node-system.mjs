// What an instance on Node.js asks the system for: the files of the process, its environment, its terminal.

import fs from 'node:fs';
import os from 'node:os';
import { isatty } from 'node:tty';

import { WASI } from '@tybys/wasm-util';

/** The file type that no terminal has. */
const UNKNOWN = 0;

/** The numbers of the errors that Rust tells from others. */
const ERRORS = /** @type {Record<string, number>} */ ({ EAGAIN: 6, EPIPE: 64 });
const EIO = 29;

/**
 * The standard streams are those of the process. The base class reads none, writes lines to the console, and takes all for terminals.
 */
class System extends WASI {
  /** @type {WebAssembly.Memory | undefined} */
  #memory;

  /** @param {import('@tybys/wasm-util').SyncWASIOptions} options */
  constructor(options) {
    super(options);
    const imports = /** @type {Record<string, (...args: number[]) => number>} */ (this.wasiImport);
    const { fd_fdstat_get, fd_read, fd_write } = imports;
    imports.fd_fdstat_get = (descriptor, result) => {
      const status = fd_fdstat_get(descriptor, result);
      if (status === 0 && descriptor <= 2 && !isatty(descriptor)) this.#view.setUint8(result, UNKNOWN);
      return status;
    };
    imports.fd_read = (descriptor, ...where) =>
      descriptor === 0 ? this.#transfer(fs.readSync, 0, ...where) : fd_read(descriptor, ...where);
    imports.fd_write = (descriptor, ...where) =>
      descriptor <= 2 ? this.#transfer(fs.writeSync, descriptor, ...where) : fd_write(descriptor, ...where);
  }

  /** @param {WebAssembly.Instance} instance */
  initialize(instance) {
    this.#memory = /** @type {WebAssembly.Memory} */ (instance.exports.memory);
    return super.initialize(instance);
  }

  get #view() {
    return new DataView(/** @type {WebAssembly.Memory} */ (this.#memory).buffer);
  }

  /**
   * Reads or writes the first buffer that has a byte; Rust asks again for the others.
   *
   * @param {(descriptor: number, bytes: Uint8Array) => number} transfer
   * @param {number} descriptor
   * @param {number[]} where the address and number of the buffers, and the address of the result
   */
  #transfer(transfer, descriptor, ...[buffers, count, result]) {
    const view = this.#view;
    let length = 0;
    for (let at = buffers; at < buffers + 8 * count; at += 8) {
      const bytes = new Uint8Array(view.buffer, view.getUint32(at, true), view.getUint32(at + 4, true));
      if (bytes.length === 0) continue;
      try {
        length = transfer(descriptor, bytes);
        break;
      } catch (error) {
        const { code = '' } = /** @type {NodeJS.ErrnoException} */ (error);
        // The end of a pipe on Windows.
        if (code !== 'EOF') return ERRORS[code] ?? EIO;
        break;
      }
    }
    view.setUint32(result, length, true);
    return 0;
  }
}

/**
 * Absolute paths mean what they mean to the process; those are all that lib/ gives. The command finds relative paths by `PWD`, and
 * temporary files by `TMPDIR`. Of a second directory, the process's own, the libc would make no difference to the first.
 */
export function systemInterface() {
  const own = { PWD: workingDirectory(), TMPDIR: os.tmpdir() };
  return new System({
    version: 'preview1',
    env: { .../** @type {Record<string, string>} */ (process.env), ...own },
    preopens: { '/': '/' },
    // The types are those of another version.
    fs: /** @type {any} */ (fs),
  });
}

function workingDirectory() {
  try {
    return process.cwd();
  } catch {
    // It was removed.
    return '/';
  }
}
