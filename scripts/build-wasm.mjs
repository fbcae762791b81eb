// Builds the package for WebAssembly, npm/wasm32: the addon, compiled for wasm32-wasip1 without threads, and the JavaScript of
// wasm/ that instantiates it.

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { build } from 'esbuild';
import { notices } from './notices.mjs';
import { assertPublishable, isProgram, root } from './platform.mjs';
import { addRustTargets, run } from './setup.mjs';

const TARGET = 'wasm32-wasip1';
const output = path.join(root, 'npm', 'wasm32');

/** The declarations, which are those of the main package. */
const TYPES = ['index.d.ts', 'postgres.d.ts'];
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

function buildAddon() {
  addRustTargets(TARGET);
  const emnapi = path.join(root, 'node_modules', 'emnapi', 'lib', TARGET);
  run(
    'cargo',
    ['build', '--locked', '--release', '--target', TARGET, '--lib', '-p', 'knowledgepulse-native'],
    {
      env: {
        ...process.env,
        CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS: '-C target-feature=+simd128',
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
  assertPublishable(path.join(output, 'knowledgepulse.wasm'), '`knowledgepulse.wasm` (');
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
  const files = await bundleWithPackage({
    entryPoints: ['wasm/browser/main.mjs'],
    outfile: 'npm/wasm32/browser.js',
  });
  // The other bundles of the package have no more.
  const licences = notices('the JavaScript of @knowledgepulse/native-wasm32', files);
  writeFileSync(path.join(output, 'javascript.licenses.txt'), licences);
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

export async function buildWasm() {
  copyFileSync(path.join(root, 'npm', 'THIRD-PARTY-LICENSES'), path.join(output, 'THIRD-PARTY-LICENSES'));
  for (const name of TYPES) copyFileSync(path.join(root, name), path.join(output, name));
  buildAddon();
  await bundle();
}

if (isProgram(import.meta)) await buildWasm();
