// win32-x64: built with MinGW for this test alone, because the published addon needs Microsoft's tools, and run under Wine.

import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { pack } from '../pack.mjs';
import { addonName, platformDirectory, readManifest } from '../platform.mjs';
import { npm } from '../setup.mjs';
import { isStaged, runtimeFiles, runtimePath, stageRuntime } from '../stage-runtime.mjs';
import { crateChecks } from './crates.mjs';
import { aloneCheck, hostKernels, makeProject, smokeChecks } from './smoke.mjs';
import { debianCompiler, execute, fetchNode, installDebianPackages, logFile, workshop } from './tools.mjs';

const platform = 'win32-x64';
/** The package that the addon is tried in. */
const published = 'win32-x64-msvc';
const target = 'x86_64-pc-windows-gnu';
const WINE = '/usr/lib/wine/wine64';
const directory = path.join(workshop, platform);

/** @type {import('./smoke.mjs').Runner & { project: string }} */
let runner;

/** Wine writes its settings here, and is silent about missing parts. */
const wine = {
  WINEPREFIX: path.join(directory, 'wine'),
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml=',
  WINEPATH: inWine(path.join(directory, 'libraries')),
  // Wine says that it is Windows 7.
  NODE_SKIP_PLATFORM_CHECK: '1',
  // The package carries none; this is for the checks of that engine.
  KNOWLEDGEPULSE_ONNXRUNTIME: inWine(runtimePath(published)),
};

/** @param {string} file */
function inWine(file) {
  return `Z:${file.replaceAll('/', '\\')}`;
}

function compiler() {
  installDebianPackages(['gcc-mingw-w64-x86-64-posix', 'wine64']);
  randomNumbers();
  return {
    ...debianCompiler({ sources: true }),
    ...wine,
    CARGO_TARGET_DIR: path.join(directory, 'target'),
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER: 'x86_64-w64-mingw32-gcc-posix',
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER: WINE,
    // For a test, compiling sooner is better than running faster.
    CARGO_PROFILE_RELEASE_LTO: 'off',
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
    LIBNODE_PATH: emptyNode(),
  };
}

/** napi-rs links with a `libnode.dll`, but looks its functions up in the program as it is loaded; so the library may be empty. */
function emptyNode() {
  const source = 'int knowledgepulse_empty(void) { return 0; }';
  return path.dirname(makeLibrary('node', 'libnode.dll', source, ['-nostdlib', '-Wl,--entry=0']));
}

/** Debian's Wine lacks the library from which Rust takes random numbers; another one of Wine's has them too. */
function randomNumbers() {
  const source = `
    #include <windows.h>
    BOOLEAN WINAPI SystemFunction036(PVOID, ULONG);
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
      return SystemFunction036(data, (ULONG)length);
    }
  `;
  makeLibrary('libraries', 'bcryptprimitives.dll', source, ['-ladvapi32']);
}

/**
 * @param {string} folder
 * @param {string} name
 * @param {string} code in C
 * @param {string[]} options
 */
function makeLibrary(folder, name, code, options) {
  const library = path.join(directory, folder, name);
  const source = `${library}.c`;
  mkdirSync(path.dirname(library), { recursive: true });
  writeFileSync(source, code);
  const args = ['-shared', '-o', library, source, ...options];
  execute('x86_64-w64-mingw32-gcc-posix', args, { log: logFile(`${platform}-build`) });
  return library;
}

/** Packs a copy of the published package with this addon: the folder of the package itself is for the real one. */
function packWithAddon() {
  const staging = path.join(directory, 'package');
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { recursive: true });
  if (!isStaged(published)) stageRuntime(published);
  const files = ['package.json', 'README.md', 'LICENSE', ...runtimeFiles(published)];
  for (const file of files)
    copyFileSync(path.join(platformDirectory(published), file), path.join(staging, file));
  const dll = path.join(directory, 'target', target, 'release', 'knowledgepulse_native.dll');
  copyFileSync(dll, path.join(staging, addonName(published)));
  const tarballs = path.join(directory, 'tarballs');
  rmSync(tarballs, { recursive: true, force: true });
  const { name } = readManifest();
  const main = pack(tarballs, [name]);
  npm(['pack', '--silent', '--pack-destination', tarballs], {
    cwd: staging,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const file = readdirSync(tarballs).find((file) => file.includes(published));
  if (file === undefined) throw new Error(`npm has packed nothing of ${staging}`);
  return { ...main, [`${name}-${published}`]: path.join(tarballs, file) };
}

/** @type {import('./tools.mjs').Platform} */
export default {
  platform,
  checks: [
    {
      name: 'build and pack, with MinGW',
      essential: true,
      run: () => {
        const log = logFile(`${platform}-build`);
        const args = ['build', '--locked', '--release', '--lib', '--target', target];
        execute('cargo', args, { env: compiler(), log, minutes: 60 });
        const project = makeProject(platform, packWithAddon());
        runner = { command: WINE, args: [fetchNode('win32-x64')], env: wine, project };
      },
    },
    ...smokeChecks(platform, () => runner, { kernels: hostKernels }),
    aloneCheck(platform, () => runner),
    ...crateChecks({ platform, target, env: compiler, emulated: false }),
  ],
};
