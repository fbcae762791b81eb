// darwin-arm64 and darwin-x64: linked with zig, which has macOS's system library but no frameworks. Nothing here runs them.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { debianCompiler, execute, installDebianPackages, installZig, logFile, workshop } from './tools.mjs';

const platform = 'darwin';
const TARGETS = ['aarch64-apple-darwin', 'x86_64-apple-darwin'];
const directory = path.join(workshop, platform);

/** The libraries that an addon may need: every macOS has them. The functions of Node.js are looked up as it is loaded. */
const SYSTEM = /^\/usr\/lib\/(libSystem\.B|libiconv\.2|libcharset\.1)\.dylib$/;

/** @param {string} target */
function link(target) {
  installDebianPackages(['llvm-14']);
  const log = logFile(`${platform}-${target}`);
  const env = {
    ...debianCompiler({ sources: true }),
    CARGO_TARGET_DIR: path.join(directory, 'target'),
    PATH: `${installZig()}${path.delimiter}${process.env.PATH}`,
    // Of the standard library's own; zig does not have it.
    [`CARGO_TARGET_${target.toUpperCase().replaceAll('-', '_')}_RUSTFLAGS`]: `-L native=${iconv()}`,
    // It takes a program that Debian's compiler does not bring.
    CARGO_PROFILE_RELEASE_STRIP: 'none',
    // Nothing runs it, and an unoptimised build needs no less of the system.
    CARGO_PROFILE_RELEASE_OPT_LEVEL: '0',
    CARGO_PROFILE_RELEASE_LTO: 'off',
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
  };
  const args = ['zigbuild', '--locked', '--release', '--lib', '--target', target];
  execute('cargo-zigbuild', args, { env, log, minutes: 60 });
  const library = path.join(directory, 'target', target, 'release', 'libknowledgepulse_native.dylib');
  const headers = execFileSync('llvm-objdump-14', ['--macho', '--dylibs-used', library], {
    encoding: 'utf8',
  });
  const needed = [...headers.matchAll(/^\t(\S+) \(compat/gm)].map(([, name]) => name);
  const other = needed.filter(
    (name) => !SYSTEM.test(name) && !name.endsWith('libknowledgepulse_native.dylib'),
  );
  if (needed.length === 0 || other.length > 0) throw new Error(`it needs ${other.join(', ') || 'nothing'}`);
  return `linked, not run; needs ${needed.filter((name) => SYSTEM.test(name)).join(' and ')}`;
}

/** Returns the name of a library that every macOS has, for the linker alone. */
function iconv() {
  const folder = path.join(directory, 'libraries');
  mkdirSync(folder, { recursive: true });
  const stub = `--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/usr/lib/libiconv.2.dylib'
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ _iconv, _iconv_open, _iconv_close ]
...
`;
  writeFileSync(path.join(folder, 'libiconv.tbd'), stub);
  return folder;
}

/** @type {import('./tools.mjs').Platform} */
export default {
  platform,
  checks: TARGETS.map((target) => ({ name: `link for ${target}`, run: () => link(target) })),
};
