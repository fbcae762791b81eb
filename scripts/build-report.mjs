// Makes dist/report.html.gz: the page of report/ with its code, the charting library and the style in it, and a place for
// the figures, which crates/command/src/report fills.

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { readManifest, root } from './platform.mjs';

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
 * Returns the licences of the packages that code was taken from, each text once.
 *
 * @param {import('esbuild').Metafile} metafile
 */
function licencesOf({ outputs }) {
  const [{ inputs }] = Object.values(outputs);
  const used = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const folders = used.map(([file]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  const titlesByText = new Map();
  for (const folder of [...new Set(folders)].filter((name) => name !== undefined).sort()) {
    const directory = path.join(root, folder);
    const { name, version, license } = readManifest(directory);
    const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} (${license}) has no text of its licence`);
    const text = readFileSync(path.join(directory, file), 'utf8').replace(/\r\n/g, '\n').trim();
    titlesByText.set(text, [...(titlesByText.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  const sections = [...titlesByText].map(([text, titles]) => `${titles.join('\n')}\n\n${text}`);
  const all = ['What is inlined into this page, and its licences.', ...sections].join('\n\n\n');
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
