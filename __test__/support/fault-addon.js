'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./paths.js');

/**
 * Builds the addon with the feature `fault-injection`, which no published build has, and returns its file. A stage named
 * in `KNOWLEDGEPULSE_FAULT` panics there; see crates/error/src/fault.rs. It is built by the tool and for the target of the set-up, so
 * that cargo finds everything it depends on built already.
 */
function buildFaultAddon() {
  const directory = path.join(root, 'target', 'fault-injection');
  const built = path.join(directory, 'built');
  const napi = path.join(root, 'node_modules', '@napi-rs', 'cli', 'dist', 'cli.js');
  const args = [napi, 'build', '--platform', '--release', '--features', 'fault-injection'];
  const output = ['--output-dir', built, '--no-js', '--dts', 'binding.d.ts'];
  fs.mkdirSync(built, { recursive: true });
  execFileSync('node', [...args, ...output, '--', '--locked', '--quiet'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [name] = fs.readdirSync(built).filter((file) => file.endsWith('.node'));
  const addon = path.join(directory, name);
  // A new file: another process may have the old one loaded.
  fs.copyFileSync(path.join(built, name), `${addon}.tmp`);
  fs.renameSync(`${addon}.tmp`, addon);
  return addon;
}

module.exports = { buildFaultAddon };
