// Makes docs/report.png, the picture in the README: the report of a set that is chosen of plausible traces. It needs an installed
// Chromium (see __test__/support/browser.js).
//
//   node scripts/picture-report.mjs

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { root, temporaryDirectory } from './platform.mjs';
import { runScript } from './setup.mjs';

const require = createRequire(import.meta.url);
const { findChromium, launchChromium } = require('../__test__/support/browser.js');
const { randomNumbers } = require('../__test__/support/make-breakdown.js');

/** @typedef {import('../index.js').ReasoningTrace} Example */

const TRACES = 420;
const CHOSEN = 40;
/** @type {import('../index.js').FormatName[]} */
const AGENTS = ['claude-code', 'codex', 'openhands'];
const [WIDTH, HEIGHT] = [1280, 1120];
const LETTERS = /^[\n -\u024f\u2000-\u206f]+$/;

/**
 * Returns the examples as agents would repeat and vary them, the same ones each time.
 *
 * @returns {Example[]}
 */
function variations() {
  const lines = readFileSync(path.join(root, 'examples', 'traces.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean);
  // Only ordinary ones, in letters that every machine can draw: the others are there to show the limits.
  const examples = lines
    .map((line) => /** @type {Example} */ (JSON.parse(line)))
    .filter(
      ({ metadata, steps, task }) =>
        steps.length >= 4 && metadata.task_domain !== 'constructor' && LETTERS.test(task.objective),
    );
  const random = randomNumbers(11);
  const choose = (/** @type {Example[]} */ items) => items[Math.floor(random() * items.length)];
  return Array.from({ length: TRACES }, (_, i) => {
    const example = choose(examples);
    const other = choose(examples);
    // A part of one trace, and now and then of another, in the words of the first.
    const share = 0.35 + 0.65 * random();
    const own = example.steps.filter(() => random() < share);
    const borrowed = random() < 0.35 ? other.steps.filter(() => random() < 0.5) : [];
    const steps = random() < 0.2 ? example.steps : [...borrowed, ...own];
    const success = example.metadata.success && random() < 0.85;
    return {
      ...example,
      id: `kp:trace:${String(i).padStart(4, '0')}`,
      metadata: { ...example.metadata, success, imported: { format: AGENTS[i % AGENTS.length] } },
      steps,
      outcome: { ...example.outcome, confidence: success ? 0.6 + 0.4 * random() : 0.2 + 0.5 * random() },
    };
  });
}

await runScript(async () => {
  const chromium = findChromium();
  if (!chromium) throw new Error('there is no Chromium; install one, or name it by CHROME_BIN');
  const browser = await launchChromium(chromium);
  try {
    const directory = temporaryDirectory('picture');
    const [file, input] = ['report.html', 'agents.jsonl'].map((name) => path.join(directory, name));
    const lines = variations()
      .map((trace) => `${JSON.stringify(trace)}\n`)
      .join('');
    const command = path.join(root, 'bin', 'kp-score.js');
    const options = ['--novelty', 'lexical', '--quiet', '--report', file];
    writeFileSync(input, lines);
    execFileSync(process.execPath, [command, 'select', String(CHOSEN), input, ...options]);
    const viewport = { width: WIDTH, height: HEIGHT };
    const page = await browser.newPage({ viewport, colorScheme: 'light' });
    await page.goto(pathToFileURL(file).href);
    await page.locator('.traces .bar').first().waitFor();
    await page.screenshot({ path: path.join(root, 'docs', 'report.png') });
  } finally {
    await browser.close();
  }
});
