'use strict';

// Loads the addon: a `.node` file in a package for each platform, or the package for WebAssembly.

const fs = require('node:fs');
const path = require('node:path');

const { attempt, codedError } = require('./calls/errors.js');

// npm installs the package that fits. Package managers that ignore `libc` install both packages for Linux, which are tried in turn.
/** @type {Record<string, string[]>} */
const PLATFORMS = {
  'darwin-arm64': ['darwin-arm64'],
  'darwin-x64': ['darwin-x64'],
  'linux-arm64': ['linux-arm64-gnu', 'linux-arm64-musl'],
  'linux-x64': ['linux-x64-gnu', 'linux-x64-musl'],
  'win32-arm64': ['win32-arm64-msvc'],
  'win32-x64': ['win32-x64-msvc'],
};

/** The package for other platforms: the addon in WebAssembly. */
const WEBASSEMBLY = 'wasm32';

/** The environment variable with the addon to load: a file, or `wasm32`. */
const OVERRIDE = 'KNOWLEDGEPULSE_NATIVE_ADDON';

/**
 * A package of a platform or a file to load; the file of a package is null in a compiled program.
 *
 * @typedef {{ name: string, file: string | null, platform?: string }} Candidate
 */

/** @returns {Candidate[]} */
function candidates() {
  const override = process.env[OVERRIDE];
  if (override && override !== WEBASSEMBLY) return [{ name: OVERRIDE, file: path.resolve(override) }];
  // A WebContainer claims to be Linux, but loads no library.
  const isNative = !override && !('webcontainer' in process.versions);
  const platforms = (isNative && PLATFORMS[`${process.platform}-${process.arch}`]) || [WEBASSEMBLY];
  return platforms.flatMap((platform) => {
    const name = `@knowledgepulse/native-${platform}`;
    const installed = { name, file: attempt(() => require.resolve(name), null), platform };
    // A checkout builds the addon here; published packages lack this directory.
    const directory = path.join(__dirname, '..', 'npm', platform);
    const built = path.join(
      directory,
      platform === WEBASSEMBLY ? 'node.cjs' : `knowledgepulse.${platform}.node`,
    );
    return fs.existsSync(built) ? [installed, { name: directory, file: built }] : [installed];
  });
}

/**
 * Loads a candidate. Bundlers and `bun build --compile` follow literal names only, and accept a missing package only within `try`.
 *
 * @param {Candidate} candidate
 * @returns {{ addon?: typeof import('./binding.js'), error?: unknown }}
 */
function load({ file, platform }) {
  try {
    switch (platform) {
      case 'darwin-arm64':
        return { addon: require('@knowledgepulse/native-darwin-arm64') };
      case 'darwin-x64':
        return { addon: require('@knowledgepulse/native-darwin-x64') };
      case 'linux-arm64-gnu':
        return { addon: require('@knowledgepulse/native-linux-arm64-gnu') };
      case 'linux-arm64-musl':
        return { addon: require('@knowledgepulse/native-linux-arm64-musl') };
      case 'linux-x64-gnu':
        return { addon: require('@knowledgepulse/native-linux-x64-gnu') };
      case 'linux-x64-musl':
        return { addon: require('@knowledgepulse/native-linux-x64-musl') };
      case WEBASSEMBLY:
        return { addon: require('@knowledgepulse/native-wasm32') };
      case 'win32-arm64-msvc':
        return { addon: require('@knowledgepulse/native-win32-arm64-msvc') };
      case 'win32-x64-msvc':
        return { addon: require('@knowledgepulse/native-win32-x64-msvc') };
      default:
        return { addon: require(String(file)) };
    }
  } catch (error) {
    return { error };
  }
}

/** Returns the addon, its file and its directory, which are null in a compiled program. */
function find() {
  const reasons = [];
  let cause;
  for (const candidate of candidates()) {
    const { file, name } = candidate;
    const { addon, error } = load(candidate);
    if (addon !== undefined) return { addon, file, directory: file && path.dirname(file) };
    cause = error;
    // Node.js lists the requiring modules after the first line.
    reasons.push(`  ${name}: ${String(/** @type {Error} */ (error)?.message ?? error).split('\n', 1)[0]}`);
  }
  const override = process.env[OVERRIDE];
  const remedy = override
    ? `Correct or unset ${OVERRIDE}, which is ${JSON.stringify(override)}.`
    : 'Remove node_modules and reinstall with optional dependencies, on the platform that it will run on, or set ' +
      `${OVERRIDE} to the .node file. There are binaries for ${Object.keys(PLATFORMS).join(', ')}; elsewhere install ` +
      '@knowledgepulse/native-wasm32.';
  const summary = `@knowledgepulse/native cannot load its addon on ${process.platform}-${process.arch}.`;
  throw codedError(Error, 'ERR_ADDON_LOAD', [summary, ...reasons, remedy].join('\n'), cause);
}

module.exports = find();
