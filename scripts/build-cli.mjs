// Bundles the command `kp-score` from cli/ and the packages it uses, which are not dependencies of this one, into
// dist/kp-score.js; their licences go beside it.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

import { root } from './platform.mjs';

const cli = path.join(root, 'cli');
const dist = path.join(root, 'dist');

/**
 * The modules of the package itself are required at run time, by their place beside dist/: there is one scorer per process.
 *
 * @type {import('esbuild').Plugin}
 */
const keepPackageOutside = {
  name: 'keep-package-outside',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^\.\.?\// }, ({ importer, path: imported, resolveDir }) => {
      const target = path.join(resolveDir, imported);
      const leavesCli = isWithin(cli, importer) && !isWithin(cli, target);
      if (!leavesCli) return undefined;
      return { path: path.relative(dist, target).replaceAll(path.sep, '/'), external: true };
    });
  },
};

/**
 * @param {string} directory
 * @param {string} file
 */
const isWithin = (directory, file) => file.startsWith(directory + path.sep);

/** Bundles it. */
export async function buildCli() {
  mkdirSync(dist, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['cli/main.js'],
    outfile: 'dist/kp-score.js',
    bundle: true,
    platform: 'node',
    target: 'node18',
    plugins: [keepPackageOutside],
    // Not the UMD builds, whose `require` a bundler cannot see through.
    mainFields: ['module', 'main'],
    minify: true,
    lineLimit: 120,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  writeFileSync(
    path.join(dist, 'kp-score.licenses.txt'),
    notices('kp-score.js of @knowledgepulse/native', Object.keys(metafile.inputs)),
  );
}

/**
 * The licences of the packages that these files are of, which are bundled into something.
 *
 * @param {string} bundle
 * @param {string[]} files
 */
export function notices(bundle, files) {
  const header = `What is bundled into ${bundle}, and its licences.\n`;
  const directories = files.map((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  const packages = [...new Set(directories.filter((directory) => directory !== undefined))].sort();
  return [header, ...packages.map(noticeOf)].join(`\n${'─'.repeat(80)}\n\n`);
}

/** @param {string} directory */
function noticeOf(directory) {
  const read = (/** @type {string} */ name) => readFileSync(path.join(root, directory, name), 'utf8');
  const { license, name, version } = JSON.parse(read('package.json'));
  const texts = readdirSync(path.join(root, directory)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
  if (texts.length === 0) throw new Error(`${name} ${version} (${license}) has no text of its licence`);
  const text = texts.sort().map((file) => read(file).replace(/\r\n/g, '\n').trim());
  return `${name} ${version} (${license})\n\n${text.join('\n\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildCli();
