// Makes dist/report.html.gz: the page of report/ with its code, the charting library and the style in it, and a place for
// the figures, which crates/command/src/desk fills.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { notices } from './notices.mjs';
import { root } from './platform.mjs';

/** @param {string} name */
const source = (name) => path.join(root, 'report', name);

/** The targets: browsers since 2024, which the colours of the page need anyway. */
const TARGET = ['chrome123', 'firefox120', 'safari17.5'];

/** @param {string} entry */
async function bundle(entry) {
  const { outputFiles, metafile } = await build({
    entryPoints: [source(entry)],
    bundle: true,
    minify: true,
    format: 'iife',
    target: TARGET,
    charset: 'utf8',
    legalComments: 'none',
    metafile: true,
    write: false,
    absWorkingDir: root,
  });
  return { text: outputFiles[0].text.trim(), metafile };
}

/**
 * Returns the licences of the packages that code was taken from, for a comment.
 *
 * @param {import('esbuild').Metafile} metafile
 */
function licencesOf({ outputs }) {
  const [{ inputs }] = Object.values(outputs);
  const used = Object.keys(inputs).filter((file) => inputs[file].bytesInOutput > 0);
  const all = notices('this page', used);
  if (all.includes('--')) throw new Error('a licence would end the comment that it stands in');
  return all;
}

const [script, style] = await Promise.all([bundle('page.mjs'), bundle('style.css')]);
const parts = {
  "'sha256-0'": `'sha256-${createHash('sha256').update(script.text).digest('base64')}'`,
  '<!-- STYLE -->': `<style>${style.text}</style>`,
  '<!-- FIGURES -->': '<script type="application/json" id="figures">__KNOWLEDGEPULSE_REPORT__</script>',
  '<!-- SCRIPT -->': `<script>${script.text}</script>`,
  '<!-- LICENCES -->': `<!--\n${licencesOf(script.metafile)}\n-->`,
};
let page = readFileSync(source('page.html'), 'utf8').replace(/\r\n/g, '\n');
for (const [place, part] of Object.entries(parts)) {
  const [before, after, ...others] = page.split(place);
  if (after === undefined || others.length > 0) throw new Error(`page.html must have one ${place}`);
  page = before + part + after;
}
mkdirSync(path.join(root, 'dist'), { recursive: true });
// Compressed, because it is the larger part of the installed package.
writeFileSync(path.join(root, 'dist', 'report.html.gz'), gzipSync(page, { level: 9 }));
