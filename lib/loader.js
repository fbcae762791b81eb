'use strict';

// Finds and loads the addon: a `.node` file in a package for each platform.

const fs = require('node:fs');
const path = require('node:path');

const { attempt, codedError } = require('./calls/errors.js');
const { systemLibc } = require('./installation/libc.js');
const { obstacleTo, unresolvedPackage } = require('./installation/obstacle.js');

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

/** @import { Fault, LoadFailure } from './installation/obstacle.js' */

/** The package for other platforms: the addon in WebAssembly. */
const WEBASSEMBLY = 'wasm32';

/** The environment variable with the addon to load: a file, or `wasm32`. */
const OVERRIDE = 'KNOWLEDGEPULSE_NATIVE_ADDON';

/**
 * A candidate to load: a package of a platform, or a file. Only a library can be built for another system.
 *
 * @typedef {object} Candidate
 * @property {string} name
 * @property {boolean} isLibrary
 * @property {() => string | null} file
 * @property {string} [platform] the platform of a package
 */

/**
 * Bundlers and `bun build --compile` follow literal names only, and accept a missing package only within `try`.
 *
 * @param {string | null} file
 * @param {string} [platform]
 * @returns {{ addon?: typeof import('./binding.js'), error?: unknown }}
 */
function load(file, platform) {
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

/**
 * Returns the addon, its file and its directory, which are null in a compiled program.
 */
function find() {
  const override = process.env[OVERRIDE];
  if (override && override !== WEBASSEMBLY) {
    return firstOf([{ name: OVERRIDE, isLibrary: true, file: () => path.resolve(override) }]);
  }
  const platforms = override ? undefined : PLATFORMS[`${process.platform}-${process.arch}`];
  // A WebContainer claims to be Linux, but loads no library.
  const hasLibrary = platforms !== undefined && !('webcontainer' in process.versions);
  return firstOf((hasLibrary ? platforms : [WEBASSEMBLY]).flatMap(candidates));
}

/**
 * @param {string} platform
 * @returns {Candidate[]}
 */
function candidates(platform) {
  const isLibrary = platform !== WEBASSEMBLY;
  const file = isLibrary ? `knowledgepulse.${platform}.node` : 'node.cjs';
  const name = `@knowledgepulse/native-${platform}`;
  const installed = { name, isLibrary, platform, file: () => packageFile(name, file) };
  // A checkout builds the addon here; published packages lack this directory.
  const directory = path.join(__dirname, '..', 'npm', platform);
  if (!fs.existsSync(directory)) return [installed];
  const built = path.join(directory, file);
  return [installed, { name: directory, isLibrary, file: () => built }];
}

/**
 * Returns the addon's file in a package, even if unreadable or missing; null without the package.
 *
 * @param {string} name
 * @param {string} file
 */
function packageFile(name, file) {
  const resolved = attempt(() => require.resolve(name), undefined);
  if (resolved !== undefined) return resolved;
  const directory = unresolvedPackage(name);
  return directory === undefined ? null : path.join(directory, file);
}

/** @param {Candidate[]} candidates */
function firstOf(candidates) {
  /** @type {LoadFailure[]} */
  const failures = [];
  for (const candidate of candidates) {
    const file = attempt(candidate.file, null);
    const fault = file === null ? undefined : faultOf(file, candidate.isLibrary);
    const { name, isLibrary, platform } = candidate;
    const { addon, error } = fault === undefined ? load(file, platform) : { error: new Error(fault.reason) };
    if (addon !== undefined) return { addon, file, directory: file && path.dirname(file) };
    failures.push({ name, isLibrary, error, ...(fault ?? refusal(file, error, isLibrary)) });
  }
  throw loadError(failures);
}

/**
 * Returns the visible fault of an addon's file: an {@link obstacleTo} reading it, or `foreign`. Only Linux needs this, because other
 * systems check the file when they load it.
 *
 * @param {string} file
 * @param {boolean} [isLibrary]
 * @returns {Fault | undefined}
 */
function faultOf(file, isLibrary) {
  const obstacle = obstacleTo(file);
  if (obstacle !== undefined || process.platform !== 'linux' || !isLibrary) return obstacle;
  try {
    return elfFault(file);
  } catch (error) {
    return { kind: 'unreadable', reason: `${file} cannot be read: ${/** @type {Error} */ (error).message}` };
  }
}

/**
 * Returns the fault of a library for Linux. Loading a truncated one would crash the process. Linkers write the section table last, so a
 * file that contains it is complete. For another processor, the system would claim that the file does not exist.
 *
 * @param {string} file
 * @returns {Fault | undefined}
 */
function elfFault(file) {
  const header = Buffer.alloc(ELF_HEADER_BYTES);
  const { size } = fs.statSync(file);
  const descriptor = fs.openSync(file, 'r');
  try {
    fs.readSync(descriptor, header);
  } finally {
    fs.closeSync(descriptor);
  }
  /** @returns {Fault} */
  const damaged = (/** @type {string} */ what) => ({ kind: 'damaged', reason: `${file} ${what}` });
  const truncated = (/** @type {number | string} */ end) =>
    damaged(`is truncated: it has ${size} bytes instead of ${end}`);
  if (header.toString('latin1', 0, 4) !== '\x7fELF') return damaged('is no addon for Linux');
  if (size < ELF_HEADER_BYTES) return truncated(`${ELF_HEADER_BYTES} or more`);
  // The field e_machine, then e_shoff, e_shentsize and e_shnum of a 64-bit little-endian header.
  const machine = header.readUInt16LE(18);
  const expected = ELF_MACHINES[process.arch];
  if (expected !== undefined && machine !== expected) {
    const arch = Object.keys(ELF_MACHINES).find((name) => ELF_MACHINES[name] === machine);
    const reason = `${file} is for ${arch ?? 'another processor'}, and this process is ${process.arch}`;
    return { kind: 'foreign', reason };
  }
  const end = Number(header.readBigUInt64LE(40)) + header.readUInt16LE(58) * header.readUInt16LE(60);
  return size < end ? truncated(end) : undefined;
}

const ELF_HEADER_BYTES = 64;

/** @type {Record<string, number>} the field e_machine of a library by `process.arch` */
const ELF_MACHINES = { arm64: 183, x64: 62 };

/**
 * Classifies why an addon without a visible fault was not loaded.
 *
 * @param {string | null} file
 * @param {unknown} thrown
 * @param {boolean} [isLibrary]
 * @returns {Fault}
 */
function refusal(file, thrown, isLibrary) {
  const error = /** @type {NodeJS.ErrnoException | undefined} */ (thrown);
  // Node.js lists the requiring modules after the first line.
  const reason = String(error?.message ?? thrown).split('\n', 1)[0];
  if (file === null) return { kind: 'missing', reason };
  if (error?.code === 'MODULE_NOT_FOUND') {
    // The file exists, but not the package.json of its package.
    const manifest = obstacleTo(path.join(path.dirname(file), 'package.json'));
    return { kind: 'damaged', reason: manifest?.reason ?? reason };
  }
  if (!isLibrary) return { kind: 'refused', reason };
  const { libc } = systemLibc();
  // Only glibc has symbol versions, which contain its name.
  const madeFor = fs.readFileSync(file).includes('GLIBC_2.') ? 'glibc' : 'musl';
  if (libc === null || madeFor === libc) return { kind: 'refused', reason };
  return { kind: 'foreign', reason: `${file} is for ${madeFor}, and this system has ${libc}: ${reason}` };
}

/**
 * The remedies for an addon that was not loaded, by fault; the most telling first.
 *
 * @type {Record<Fault['kind'], string>}
 */
const REMEDIES = {
  unreadable:
    'Let the user that this process runs as read that file and search the directories that it is in, or reinstall as ' +
    'that user, with optional dependencies,',
  damaged: 'Remove node_modules and reinstall with optional dependencies,',
  refused:
    'Provide what the reason above asks for, or remove node_modules and reinstall with optional dependencies,',
  foreign:
    'Remove node_modules and reinstall with optional dependencies, on the platform that it will run on,',
  missing: 'Install with optional dependencies (no --omit=optional), on the platform that it will run on,',
};

/** @param {LoadFailure[]} failures */
function remedyFor(failures) {
  if (failures.every(({ kind, isLibrary }) => kind === 'missing' && !isLibrary)) {
    const platforms = Object.keys(PLATFORMS).join(', ');
    return `Install @knowledgepulse/native-wasm32, the same in WebAssembly; there are binaries for ${platforms}.`;
  }
  const kinds = /** @type {Array<Fault['kind']>} */ (Object.keys(REMEDIES));
  const kind = kinds.find((each) => failures.some((failure) => failure.kind === each)) ?? 'missing';
  const override = process.env[OVERRIDE];
  if (!override) return `${REMEDIES[kind]} or set ${OVERRIDE} to the .node file.`;
  const wrong = `${OVERRIDE}, which is ${JSON.stringify(override)}.`;
  return kind === 'unreadable' ? `${REMEDIES[kind]} or correct ${wrong}` : `Correct or unset ${wrong}`;
}

/** @param {LoadFailure[]} failures */
function loadError(failures) {
  const platform = `${process.platform}-${process.arch}`;
  const summary = `@knowledgepulse/native cannot load its addon on ${platform}.`;
  const attempts = failures.map(({ name, reason }) => `  ${name}: ${reason}`);
  const remedy = remedyFor(failures);
  const message = [summary, ...attempts, remedy].join('\n');
  const error = codedError(Error, 'ERR_ADDON_LOAD', message, failures[failures.length - 1]?.error);
  return Object.assign(error, { attempts: failures, summary, remedy });
}

module.exports = find();
