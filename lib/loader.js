'use strict';

// Finds and loads the addon: one `.node` file for each platform, in a package of its own.

const fs = require('node:fs');
const path = require('node:path');

const { codedError } = require('./errors.js');

// `npm install` brings the one package that fits; a package manager that does not know `libc` brings both
// of Linux's, and the loader tries them in turn.
const PLATFORMS = {
  'darwin-arm64': ['darwin-arm64'],
  'darwin-x64': ['darwin-x64'],
  'linux-arm64': ['linux-arm64-gnu', 'linux-arm64-musl'],
  'linux-x64': ['linux-x64-gnu', 'linux-x64-musl'],
  'win32-arm64': ['win32-arm64-msvc'],
  'win32-x64': ['win32-x64-msvc'],
};

/** @typedef {{ addon: import('./binding') } | { error: unknown }} Attempt */

/**
 * Bundlers and `bun build --compile` follow only literal names, and put up with a missing package only within
 * `try`.
 *
 * @returns {Attempt}
 */
function requirePackage(platform) {
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
      case 'win32-arm64-msvc':
        return { addon: require('@knowledgepulse/native-win32-arm64-msvc') };
      case 'win32-x64-msvc':
        return { addon: require('@knowledgepulse/native-win32-x64-msvc') };
    }
  } catch (error) {
    return { error };
  }
}

/** @returns {Attempt} */
function requireFile(file) {
  try {
    return { addon: require(file) };
  } catch (error) {
    return { error };
  }
}

/**
 * The addon, its file and the directory that holds it, which are null where that cannot be told (in a compiled
 * program).
 */
function load() {
  const override = process.env.KNOWLEDGEPULSE_NATIVE_ADDON;
  if (override) {
    const file = path.resolve(override);
    return attempt([{ name: file, file: () => file, load: () => requireFile(file) }]);
  }
  const platform = `${process.platform}-${process.arch}`;
  return attempt((PLATFORMS[platform] ?? []).flatMap(candidates));
}

function candidates(platform) {
  // A checkout of the repository has built it here; a published package has no such directory.
  const built = path.join(__dirname, '..', 'npm', platform, `knowledgepulse.${platform}.node`);
  const name = `@knowledgepulse/native-${platform}`;
  return [
    { name, file: () => require.resolve(name), load: () => requirePackage(platform) },
    { name: path.dirname(built), file: () => built, load: () => requireFile(built) },
  ];
}

function attempt(candidates) {
  const failures = [];
  for (const candidate of candidates) {
    const file = fileOf(candidate);
    const { addon, error } = loadWhole(file, candidate.load);
    if (addon !== undefined) return { addon, file, directory: file && path.dirname(file) };
    failures.push({ name: candidate.name, error });
  }
  throw loadError(failures);
}

/** Loads what is not visibly half a file. */
function loadWhole(file, load) {
  try {
    if (file !== null) refuseTruncated(file);
  } catch (error) {
    return { error };
  }
  return load();
}

/** The file of a candidate, or null where that cannot be told. */
function fileOf(candidate) {
  try {
    return candidate.file();
  } catch {
    return null;
  }
}

/**
 * Refuses half an addon on Linux: its loader would map what is not there, and the process would die. Linkers write
 * the table of sections last, so a file that holds it is whole. Other systems look for themselves.
 */
function refuseTruncated(file) {
  const header = Buffer.alloc(64);
  const { size } = fs.statSync(file);
  const descriptor = fs.openSync(file);
  try {
    fs.readSync(descriptor, header);
  } finally {
    fs.closeSync(descriptor);
  }
  if (header.toString('latin1', 0, 4) !== '\x7fELF') return;
  // The fields e_shoff, e_shentsize and e_shnum of a 64-bit little-endian header.
  const end = Number(header.readBigUInt64LE(40)) + header.readUInt16LE(58) * header.readUInt16LE(60);
  if (size < end) throw new Error(`${file} is truncated: it has ${size} bytes instead of ${end}`);
}

function loadError(failures) {
  const platform = `${process.platform}-${process.arch}`;
  const summary = `@knowledgepulse/native cannot load its addon on ${platform}.`;
  const attempts = failures.map(
    // The first line says it; Node.js lists the modules that required it below.
    ({ name, error }) => `  ${name}: ${String(error?.message ?? error).split('\n', 1)[0]}`,
  );
  const remedy =
    failures.length === 0
      ? `There is no package for this platform; there is one for ${Object.keys(PLATFORMS).join(', ')}.`
      : 'Install with optional dependencies (no --omit=optional), on the platform that it will run on, ' +
        'or set KNOWLEDGEPULSE_NATIVE_ADDON to the .node file.';
  const message = [summary, ...attempts, remedy].join('\n');
  const error = codedError(Error, 'ERR_ADDON_LOAD', message, failures.at(-1)?.error);
  return Object.assign(error, { attempts: failures, summary, remedy });
}

module.exports = load();
