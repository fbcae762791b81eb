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

// Bundlers and `bun build --compile` follow only literal names, and load nothing before the call.
const PACKAGES = {
  'darwin-arm64': () => require('@knowledgepulse/native-darwin-arm64'),
  'darwin-x64': () => require('@knowledgepulse/native-darwin-x64'),
  'linux-arm64-gnu': () => require('@knowledgepulse/native-linux-arm64-gnu'),
  'linux-arm64-musl': () => require('@knowledgepulse/native-linux-arm64-musl'),
  'linux-x64-gnu': () => require('@knowledgepulse/native-linux-x64-gnu'),
  'linux-x64-musl': () => require('@knowledgepulse/native-linux-x64-musl'),
  'win32-arm64-msvc': () => require('@knowledgepulse/native-win32-arm64-msvc'),
  'win32-x64-msvc': () => require('@knowledgepulse/native-win32-x64-msvc'),
};

/**
 * The addon and the directory that it came from, which is null where that cannot be told (in a compiled
 * program).
 */
function load() {
  const override = process.env.KNOWLEDGEPULSE_NATIVE_ADDON;
  if (override) {
    const file = path.resolve(override);
    return attempt([{ name: file, file: () => file, load: () => require(file) }]);
  }
  const platform = `${process.platform}-${process.arch}`;
  return attempt((PLATFORMS[platform] ?? []).flatMap(candidates));
}

function candidates(platform) {
  const directory = path.join(__dirname, '..', 'npm', platform);
  const file = path.join(directory, `knowledgepulse.${platform}.node`);
  const name = `@knowledgepulse/native-${platform}`;
  return [
    { name, file: () => require.resolve(name), load: PACKAGES[platform] },
    // A checkout of the repository has built it here; a published package has no such directory.
    { name: directory, file: () => file, load: () => require(file) },
  ];
}

function attempt(candidates) {
  const failures = [];
  for (const candidate of candidates) {
    try {
      const file = fileOf(candidate);
      if (file !== null) refuseTruncated(file);
      return { addon: candidate.load(), directory: file && path.dirname(file) };
    } catch (error) {
      failures.push({ name: candidate.name, error });
    }
  }
  throw loadError(failures);
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
  const lines = [`@knowledgepulse/native cannot load its addon on ${platform}.`];
  for (const { name, error } of failures) {
    // The first line says it; Node.js lists the modules that required it below.
    lines.push(`  ${name}: ${String(error?.message ?? error).split('\n', 1)[0]}`);
  }
  if (failures.length === 0) {
    lines.push(
      `There is no package for this platform; there is one for ${Object.keys(PLATFORMS).join(', ')}.`,
    );
  } else {
    lines.push(
      'Install with optional dependencies (no --omit=optional), on the platform that it will run on,',
      'or set KNOWLEDGEPULSE_NATIVE_ADDON to the .node file.',
    );
  }
  const error = codedError(Error, 'ERR_ADDON_LOAD', lines.join('\n'), failures.at(-1)?.error);
  error.attempts = failures.map(({ name, error }) => ({ name, error }));
  return error;
}

module.exports = load();
