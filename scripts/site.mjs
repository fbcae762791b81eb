// Builds the site, dist/site: the documentation, and the page to try the package.
//
//   npm run site                   builds it; the package for WebAssembly too, where that was not built
//   npm run site -- --base /PATH/  to be served from this folder of a host, not from its root
//   npm run site -- --serve        builds it, serves it on a free port of this machine, and prints the address

import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { build, context } from 'esbuild';
import * as vitepress from 'vitepress';

import { buildWasm, bundleWithPackage } from './build-wasm.mjs';
import { notices } from './notices.mjs';
import { isProgram, root } from './platform.mjs';
import { runScript } from './setup.mjs';

export const site = path.join(root, 'dist', 'site');
const wasm = path.join(root, 'npm', 'wasm32');

/** @param {string} file @param {string | Buffer} content */
function write(file, content) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

async function buildPage() {
  await build({
    ...{ absWorkingDir: root, bundle: true, minify: true, logLevel: 'warning' },
    entryPoints: ['wasm/page/page.css'],
    outfile: 'dist/site/try/page.css',
  });
  const page = path.join(site, 'try');
  const worker = await bundleWithPackage({
    entryPoints: ['wasm/page/worker.mjs'],
    outfile: 'dist/site/try/page-worker.js',
  });
  const main = await bundleWithPackage({
    entryPoints: ['wasm/page/main.mjs'],
    outfile: 'dist/site/try/page.js',
    inject: [],
  });
  write(
    path.join(page, 'page.licenses.txt'),
    notices('the page to try @knowledgepulse/native', [...worker, ...main]),
  );
  for (const name of ['knowledgepulse.wasm', 'THIRD-PARTY-LICENSES'])
    copyFileSync(path.join(wasm, name), path.join(page, name));
  copyFileSync(path.join(root, 'wasm', 'page', 'page.html'), path.join(page, 'index.html'));
  copyFileSync(path.join(root, 'examples', 'traces.jsonl'), path.join(page, 'examples.jsonl'));
}

/** Builds the site to be served from a folder of a host. */
export async function buildSite(base = '/') {
  rmSync(site, { recursive: true, force: true });
  // It fails at links to pages that do not exist.
  await vitepress.build(path.join(root, 'docs'), { base });
  if (!existsSync(path.join(wasm, 'knowledgepulse.wasm'))) await buildWasm();
  await buildPage();
}

/**
 * Serves a folder on a free port of this machine.
 *
 * @param {string} servedir
 * @returns {Promise<{ address: string, close: () => Promise<void> }>}
 */
export async function serve(servedir) {
  const server = await context({});
  const { port } = await server.serve({ host: '127.0.0.1', servedir });
  return { address: `http://127.0.0.1:${port}/`, close: () => server.dispose() };
}

if (isProgram(import.meta)) {
  await runScript(async () => {
    const { values } = parseArgs({
      options: { base: { type: 'string' }, serve: { type: 'boolean' } },
    });
    await buildSite(values.base);
    console.log(`built ${path.relative(root, site)}`);
    if (!values.serve) return;
    const { address } = await serve(site);
    console.log(
      `the site is at ${address}, and the page to try it at ${address}try/index.html; Ctrl+C ends it`,
    );
  });
}
