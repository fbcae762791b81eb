'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./paths.js');

const LIBRARIES = {
  darwin: 'libknowledgepulse_native.dylib',
  linux: 'libknowledgepulse_native.so',
  win32: 'knowledgepulse_native.dll',
};

/**
 * Builds the addon with the feature `fault-injection`, which no published build has, and returns its file. A stage named
 * in `KNOWLEDGEPULSE_FAULT` panics there; see src/fault.rs. What it depends on is built already, by the set-up.
 */
function buildFaultAddon() {
  const options = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] };
  const profile = ['build', '--release', '--locked', '--quiet'];
  execFileSync('cargo', [...profile, '--features', 'fault-injection'], options);
  const directory = path.join(root, 'target', 'fault-injection');
  const addon = path.join(directory, 'knowledgepulse.node');
  fs.mkdirSync(directory, { recursive: true });
  // A new file: another process may have the old one loaded.
  fs.copyFileSync(path.join(root, 'target', 'release', LIBRARIES[process.platform]), `${addon}.tmp`);
  fs.renameSync(`${addon}.tmp`, addon);
  return addon;
}

module.exports = { buildFaultAddon };
