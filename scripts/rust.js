'use strict';

// Programs in Rust that specs run. They come from the build that `cargo test` uses: another selection of packages, features or
// optimisations would compile every crate again.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.dirname(__dirname);

const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target');

/** The options of cargo for that build. With the feature, the stage that `KNOWLEDGEPULSE_FAULT` names panics; see crates/error. */
const BUILD_OPTIONS = ['--workspace', '--locked', '--features=knowledgepulse-native/fault-injection'];

/** @param {string} command @param {string[]} options */
function cargo(command, ...options) {
  const args = [command, '--quiet', ...BUILD_OPTIONS, ...options];
  execFileSync('cargo', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Builds everything, so that neither a spec nor `cargo test` waits for a compiler. */
function buildAll() {
  cargo('test', '--no-run');
  buildPrograms();
}

/** Builds the addon in which stages can panic, and returns its path. */
function buildPrograms() {
  cargo('build', '--lib');
  const directory = path.join(target, 'debug');
  const name = 'knowledgepulse_native';
  const [library] = [`lib${name}.so`, `lib${name}.dylib`, `${name}.dll`]
    .map((file) => path.join(directory, file))
    .filter((file) => fs.existsSync(file));
  const faultyAddon = path.join(directory, 'fault-injection.node');
  // A new file: another process may have the old one loaded.
  fs.copyFileSync(library, `${faultyAddon}.tmp`);
  fs.renameSync(`${faultyAddon}.tmp`, faultyAddon);
  return { faultyAddon };
}

module.exports = { BUILD_OPTIONS, buildAll, buildPrograms, target };
