// What an instance on Node.js asks the system for: the files of the process, its environment, its terminal.

import fs from 'node:fs';
import os from 'node:os';

import { WASI } from '@tybys/wasm-util';

/**
 * Absolute paths mean what they mean to the process; those are all that lib/ gives. Of a second directory, the process's own, the
 * libc would make no difference to the first.
 */
export function systemInterface() {
  return new WASI({
    version: 'preview1',
    // The command finds relative paths and temporary files by these.
    env: { .../** @type {Record<string, string>} */ (process.env), PWD: workingDirectory(), TMPDIR: os.tmpdir() },
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
