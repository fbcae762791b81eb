// Builds the package for WebAssembly, npm/wasm32: the addon, compiled for wasm32-wasip1 without threads, and the JavaScript of
// wasm/ that instantiates it.
//
// The compiler is rustup's where it has that target (`rustup target add wasm32-wasip1`), as in the release workflow. Elsewhere, on
// Debian, the standard library is compiled too: its packages have the sources and a libc for the target, but not the library.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

import { build } from 'esbuild';
import { debianCompiler, installDebianPackages, installZig } from './debian.mjs';
import { notices } from './notices.mjs';
import { isProgram, root, venvPython } from './platform.mjs';
import { run } from './setup.mjs';

const TARGET = 'wasm32-wasip1';
const output = path.join(root, 'npm', 'wasm32');
/** What WebAssembly engines have had since 2021 or longer, and what makes the difference: vectors. */
const FEATURES = [
  '--enable-simd',
  '--enable-bulk-memory',
  '--enable-bulk-memory-opt',
  '--enable-nontrapping-float-to-int',
  '--enable-sign-ext',
  '--enable-mutable-globals',
  '--enable-multivalue',
  '--enable-reference-types',
];

/** The variables that have cargo compile for WebAssembly. */
export function wasmCompiler() {
  const own = { CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS: '-C target-feature=+simd128' };
  if (hasTarget()) return own;
  installDebianPackages(['lld-19', 'wasi-libc']);
  const { RUSTC_BOOTSTRAP = '' } = debianCompiler({ sources: true });
  return {
    ...own,
    RUSTC: sysroot(),
    RUSTC_BOOTSTRAP,
    CARGO_UNSTABLE_BUILD_STD: 'std,panic_abort',
    CARGO_TARGET_WASM32_WASIP1_LINKER: 'wasm-ld-19',
  };
}

/** Whether rustup's compiler has the standard library of the target. */
function hasTarget() {
  const directory = execFileSync('rustc', ['--print', 'target-libdir', '--target', TARGET], {
    cwd: root,
    encoding: 'utf8',
  });
  return existsSync(directory.trim());
}

/**
 * Debian's compiler with the libc of its package `wasi-libc` where rustup has its own, which is where napi-build looks. What that
 * libc lacks is added: see wasm/missing-libc.c. Returns the program.
 */
function sysroot() {
  const directory = path.join(root, 'target', 'wasm-sysroot');
  const program = path.join(directory, 'bin', 'rustc');
  const libraries = path.join(directory, 'lib', 'rustlib');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(path.join(directory, 'bin'), { recursive: true });
  mkdirSync(libraries, { recursive: true });
  for (const name of ['src', 'etc', 'x86_64-unknown-linux-gnu']) {
    symlinkSync(path.join('/usr/lib/rustlib', name), path.join(libraries, name));
  }
  const libc = path.join(libraries, TARGET, 'lib', 'self-contained');
  cpSync('/usr/lib/wasm32-wasi', libc, { recursive: true });
  installZig();
  const zig = (/** @type {string[]} */ ...args) =>
    run(venvPython, ['-m', 'ziglang', ...args], { cwd: directory });
  const headers = ['-nostdinc', '-isystem', '/usr/include/wasm32-wasi'];
  zig('cc', '-target', 'wasm32-wasi', ...headers, '-O2', '-c', path.join(root, 'wasm', 'missing-libc.c'));
  // Not "libc.o": the archive has one, which would be replaced.
  zig('ar', 'r', path.join(libc, 'libc.a'), 'missing-libc.o');
  writeFileSync(program, `#!/bin/sh\nexec /usr/bin/rustc --sysroot '${directory}' "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

function buildAddon() {
  const emnapi = path.join(root, 'node_modules', 'emnapi', 'lib', TARGET);
  run(
    'cargo',
    ['build', '--locked', '--release', '--target', TARGET, '--lib', '-p', 'knowledgepulse-native'],
    {
      env: {
        ...process.env,
        ...wasmCompiler(),
        EMNAPI_LINK_DIR: emnapi,
        // One instance serves all calls, so it is worth optimising as a whole.
        CARGO_PROFILE_RELEASE_LTO: 'fat',
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '1',
        CARGO_PROFILE_RELEASE_PANIC: 'abort',
      },
    },
  );
  const built = path.join(root, 'target', TARGET, 'release', 'knowledgepulse_native.wasm');
  run(process.execPath, [
    path.join(root, 'node_modules', 'binaryen', 'bin', 'wasm-opt'),
    ...['-O3', '--strip-debug', '--strip-producers', ...FEATURES],
    ...[built, '-o', path.join(output, 'knowledgepulse.wasm')],
  ]);
}

/** @type {import('esbuild').BuildOptions} */
const common = {
  absWorkingDir: root,
  bundle: true,
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
};

/** The options of esbuild for a bundle in a browser. */
const browser = /** @type {const} */ ({
  ...common,
  platform: 'browser',
  target: 'es2022',
  format: 'esm',
});

/**
 * Bundles a program for a browser that has the package in it.
 *
 * @param {import('esbuild').BuildOptions & { define?: Record<string, string> }} options
 * @returns {Promise<string[]>} the files that are in it
 */
export async function bundleWithPackage({ define, ...options }) {
  const { metafile } = await build({
    ...browser,
    inject: ['wasm/browser/globals.mjs'],
    define: { __dirname: '""', __filename: '""', ...define },
    plugins: [changedEmnapi, withoutNode],
    // The models of npm are looked for in a `try`.
    external: ['@knowledgepulse/*'],
    logOverride: { 'require-resolve-not-external': 'silent' },
    ...options,
    metafile: true,
  });
  return Object.keys(metafile.inputs);
}

async function bundle() {
  /** @type {import('esbuild').BuildOptions} */
  const node = { ...common, plugins: [changedEmnapi], platform: 'node', target: 'node20', format: 'cjs' };
  await build({
    ...node,
    entryPoints: ['wasm/node.mjs'],
    outfile: 'npm/wasm32/node.cjs',
    footer: { js: 'module.exports = module.exports.default;' },
  });
  await build({ ...node, entryPoints: ['wasm/node-worker.mjs'], outfile: 'npm/wasm32/node-worker.cjs' });
  const files = await bundleWithPackage({
    entryPoints: ['wasm/browser/main.mjs'],
    outfile: 'npm/wasm32/browser.js',
  });
  // The other bundles of the package have no more.
  const licences = notices('the JavaScript of @knowledgepulse/native-wasm32', files);
  writeFileSync(path.join(output, 'javascript.licenses.txt'), licences);
  await build({
    ...browser,
    plugins: [changedEmnapi],
    entryPoints: ['wasm/browser/worker.mjs'],
    outfile: 'npm/wasm32/browser-worker.js',
  });
}

/** @type {Array<{ file: RegExp, from: string, to: string }>} what is changed in emnapi */
const CHANGES = [
  // Node.js runs what waits for a promise before the next reply is delivered, and so do the addons. emnapi cannot run it, so it must
  // return to the event loop after each reply. Otherwise the one to a later call could be seen first.
  {
    file: /emnapi[\\/]core[\\/]dist[\\/]plugins[\\/]threadsafe-function\.js$/,
    from: 'let iterations_left = 1000;',
    to: 'let iterations_left = 2;',
  },
  // `instanceof` runs the code of a proxy, and throws an error for a revoked one, which would pass through the Rust code.
  {
    file: /emnapi[\\/]runtime[\\/]dist[\\/]emnapi\.js$/,
    from: 'value instanceof WeakRef && this.isOutOfScope(id)',
    to: 'this.isOutOfScope(id) && value instanceof WeakRef',
  },
];

/** @type {import('esbuild').Plugin} */
const changedEmnapi = {
  name: 'changed-emnapi',
  setup: ({ onLoad }) => {
    for (const { file, from, to } of CHANGES) {
      onLoad({ filter: file }, ({ path }) => {
        const parts = readFileSync(path, 'utf8').split(from);
        if (parts.length !== 2) throw new Error(`${path} no longer has one "${from}"`);
        return { contents: parts.join(to) };
      });
    }
  },
};

/**
 * What the package requires of Node.js, and its loader, are other modules in a browser.
 *
 * @type {import('esbuild').Plugin}
 */
const withoutNode = {
  name: 'without-node',
  setup: ({ onResolve }) => {
    const place = (/** @type {string} */ name) => ({ path: path.join(root, 'wasm', 'browser', name) });
    onResolve({ filter: /^node:/ }, () => place('node.mjs'));
    onResolve({ filter: /\/loader\.js$/ }, () => place('loader.js'));
  },
};

/** Builds it; with `addon: false`, the JavaScript alone. */
export async function buildWasm({ addon = true } = {}) {
  copyFileSync(path.join(root, 'npm', 'THIRD-PARTY-LICENSES'), path.join(output, 'THIRD-PARTY-LICENSES'));
  if (addon) buildAddon();
  await bundle();
}

if (isProgram(import.meta)) {
  await buildWasm({ addon: !process.argv.includes('--javascript') });
}
