// The package in WebAssembly: its scores are those of the native addon, on Node.js and in a page.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { temporaryDirectory } from '../../scripts/platform.mjs';
import { serve } from '../../scripts/site.mjs';
import { test } from '../support/steps.mjs';

const require = createRequire(import.meta.url);
const { findChromium, launchChromium, openPage } = require('../support/browser.js');
const { CHROMIUM, skipped } = require('../support/needs.js');
const { readTraces, recordedTraces, root } = require('../support/paths.js');

const here = path.dirname(fileURLToPath(import.meta.url));
const MODELS = { fp32: 'all-minilm-l6-v2', q8: 'all-minilm-l6-v2-q8' };

/** In single precision; int8 is the same to the bit. */
const TOLERANCE = 1e-6;

const command = path.join(root, 'bin', 'kp-score.js');
const examples = path.join(root, 'examples', 'traces.jsonl');
const files = [
  { file: examples, count: 20 },
  {
    file: recordedTraces(path.join(temporaryDirectory('wasm'), 'recorded.jsonl')),
    count: 8,
  },
];

/** What scoring has printed, by its arguments. @type {Map<string, string>} */
const outcomes = new Map();

/**
 * What scoring the first traces of a file gives in a process of its own.
 *
 * @param {'fp32' | 'q8'} dtype
 * @param {{ file: string, count: number }} traces
 * @param {Record<string, string>} env
 */
function onNode(dtype, { file, count }, env = {}) {
  const key = JSON.stringify([dtype, file, count, env]);
  const script = path.join(here, 'child.mjs');
  const all = { ...process.env, KNOWLEDGEPULSE_DTYPE: dtype, ...env };
  const printed =
    outcomes.get(key) ??
    execFileSync(process.execPath, [script, file, `${count}`], { encoding: 'utf8', env: all });
  outcomes.set(key, printed);
  return JSON.parse(printed);
}

const IN_WASM = { KNOWLEDGEPULSE_NATIVE_ADDON: 'wasm32' };

/**
 * The largest difference of two outcomes, number by number; everything else must be the same.
 *
 * @param {unknown} a
 * @param {unknown} b
 * @returns {number}
 */
function difference(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b);
  if (a === null || typeof a !== 'object' || b === null || typeof b !== 'object') {
    assert.deepEqual(a, b);
    return 0;
  }
  assert.deepEqual(Object.keys(a), Object.keys(b));
  const parts = Object.entries(a).map(([key, value]) => difference(value, /** @type {any} */ (b)[key]));
  return Math.max(0, ...parts);
}

for (const traces of files) {
  for (const dtype of /** @type {const} */ (['fp32', 'q8'])) {
    await test(`${dtype} scores of ${path.basename(traces.file)} on Node.js`, () => {
      const { kernel, ...native } = onNode(dtype, traces);
      const { kernel: ofWasm, ...found } = onNode(dtype, traces, IN_WASM);
      assert.notEqual(kernel, 'simd128');
      assert.equal(ofWasm, 'simd128');
      const distance = difference(native, found);
      assert.ok(distance <= (dtype === 'q8' ? 0 : TOLERANCE), `${distance} from the native addon's`);
      return `at most ${distance.toExponential(1)} from ${kernel}`;
    });
  }
}

await test('the portable kernel in WebAssembly gives the same bits', () => {
  for (const dtype of /** @type {const} */ (['fp32', 'q8'])) {
    const few = { file: examples, count: 8 };
    const { kernel, ...vectors } = onNode(dtype, few, IN_WASM);
    const { kernel: plain, ...portable } = onNode(dtype, few, {
      ...IN_WASM,
      KNOWLEDGEPULSE_KERNEL: 'portable',
    });
    assert.deepEqual([kernel, plain], ['simd128', 'portable']);
    assert.deepEqual(portable, vectors);
  }
});

/**
 * The files that two runs of `kp-score` with the int8 model write, and their standard output, by name. The second run replaces
 * them.
 *
 * @param {string[]} args
 * @param {Record<string, string>} env
 */
function outputsOf(args, env) {
  const directory = temporaryDirectory('wasm');
  const run = () =>
    execFileSync(process.execPath, [command, ...args, '--format', 'jsonl', '--quiet'], {
      cwd: directory,
      encoding: 'latin1',
      env: { ...process.env, KNOWLEDGEPULSE_DTYPE: 'q8', ...env },
      input: readFileSync(examples),
    });
  /** @type {Record<string, string>} */
  const outputs = { first: run(), second: run() };
  for (const name of readdirSync(directory))
    outputs[name] = readFileSync(path.join(directory, name), 'latin1');
  return outputs;
}

// The transcripts run in WebAssembly too, without a model.
for (const line of [
  'score - --novelty prefix --explain --out out.jsonl',
  'select 5 - --novelty full --out out.jsonl --report report.html',
]) {
  const args = line.split(' ');
  await test(`kp-score ${line} writes the same bytes in WebAssembly`, () => {
    const native = outputsOf(args, {});
    assert.ok(native.first.length > 0);
    const found = outputsOf(args, IN_WASM);
    assert.deepEqual(Object.keys(found), Object.keys(native));
    for (const name of Object.keys(native)) assert.ok(found[name] === native[name], `${name} differs`);
    return Object.keys(native).join(', ');
  });
}

await test('kp-score --out follows a link in WebAssembly', () => {
  const directory = temporaryDirectory('wasm');
  const [link, target] = ['link', 'target'].map((name) => path.join(directory, name));
  writeFileSync(target, '');
  symlinkSync('target', link);
  const args = [command, 'score', '--quiet', '--out', link, examples];
  execFileSync(process.execPath, args, { env: { ...process.env, ...IN_WASM } });
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.ok(lstatSync(target).size > 0);
  assert.deepEqual(readdirSync(directory), ['link', 'target']);
});

const chromium = findChromium();
if (!chromium) {
  skipped(CHROMIUM);
} else {
  // The package, the tests and the models, without headers that isolate a page.
  const { address, close } = await serve(root);
  const isOwn = (/** @type {string} */ url) => url.startsWith(address);
  const browser = await launchChromium(chromium);

  try {
    for (const dtype of /** @type {const} */ (['fp32', 'q8'])) {
      await test(`${dtype} scores in Chromium`, async () => {
        const { page, faults, context } = await openPage(browser, `${address}examples/`, isOwn, {});
        const traces = readTraces(examples).slice(0, 20);
        const { found, isolated } = await page.evaluate(inPage, { traces, model: MODELS[dtype] });
        assert.deepEqual(faults, []);
        assert.equal(isolated, false);
        // To the bit: it is the same program.
        const { model, ...expected } = onNode(dtype, { file: examples, count: 20 }, IN_WASM);
        assert.match(found.model, /^sha256:/);
        assert.deepEqual({ ...found, model: undefined }, { ...expected, model: undefined });
        await context.close();
        return model;
      });
    }
  } finally {
    await browser.close();
    close();
  }
}

/** @param {{ traces: any[], model: string }} given */
async function inPage({ traces, model }) {
  const api = await import(/** @type {any} */ ('/npm/wasm32/browser.js'));
  const { scoresOf } = await import(/** @type {any} */ ('/__test__/wasm/score.mjs'));
  const bytes = async (/** @type {string} */ name) =>
    new Uint8Array(await (await fetch(`/npm/${model}/${name}`)).arrayBuffer());
  const [weights, tokenizer] = await Promise.all([bytes('model.safetensors'), bytes('tokenizer.json')]);
  api.configureEmbedder({ model: { weights, tokenizer } });
  await api.embedderStatus();
  const found = JSON.parse(JSON.stringify(await scoresOf(api, traces)));
  return { found, isolated: globalThis.crossOriginIsolated };
}
