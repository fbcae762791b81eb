// Makes docs/report.png, the picture in the README: the report of a plausible run, scored with the real model. It needs an
// installed Chromium (see __test__/support/browser.js).
//
//   node scripts/picture-report.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { readManifest, root, temporaryDirectory } from './platform.mjs';
import { runScript } from './setup.mjs';

const require = createRequire(import.meta.url);
const { Scorer, explain } = require('../lib/scorer.js');
const { findChromium, launchChromium } = require('../__test__/support/browser.js');
const { makeScored, randomNumbers } = require('../__test__/support/make-breakdown.js');
const { renderReport } = require('../__test__/support/report.js');

/** @typedef {import('../index.js').ReasoningTrace} Example */

const TRACES = 420;
const WIDTH = 1280;
/** How many sections the picture shows below the header. */
const SECTIONS = 2;
const MARGIN = 48;

/**
 * Returns the examples as agents would repeat and vary them, the same ones each time.
 *
 * @returns {Example[]}
 */
function variations() {
  const lines = readFileSync(path.join(root, 'examples', 'traces.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean);
  // Only ordinary ones: the others are there to show the limits.
  const examples = lines
    .map((line) => /** @type {Example} */ (JSON.parse(line)))
    .filter(({ metadata, steps }) => steps.length >= 4 && metadata.task_domain !== 'constructor');
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
      metadata: { ...example.metadata, success },
      steps,
      outcome: { ...example.outcome, confidence: success ? 0.6 + 0.4 * random() : 0.2 + 0.5 * random() },
    };
  });
}

async function makeReport() {
  const traces = variations();
  const scorer = new Scorer();
  const start = performance.now();
  const breakdowns = await Promise.all(traces.map((trace) => explain(scorer, trace, true)));
  const seconds = (performance.now() - start) / 1000;
  const source = 'agents.jsonl';
  const scored = traces.map(({ id, metadata, task }, index) =>
    makeScored(index, {
      id,
      source,
      domain: metadata.task_domain,
      success: metadata.success,
      objective: task.objective,
      breakdown: breakdowns[index],
    }),
  );
  return renderReport(scored, {
    options: { sources: [source], version: readManifest().version },
    run: { finishedAt: new Date().toISOString(), seconds },
  });
}

await runScript(async () => {
  const chromium = findChromium();
  if (!chromium) throw new Error('there is no Chromium; install one, or name it by CHROME_BIN');
  const browser = await launchChromium(chromium);
  try {
    const file = path.join(temporaryDirectory('picture'), 'report.html');
    writeFileSync(file, await makeReport());
    const page = await browser.newPage({ viewport: { width: WIDTH, height: 1000 }, colorScheme: 'light' });
    await page.goto(pathToFileURL(file).href);
    await page.locator('.trace svg').last().waitFor({ state: 'attached' });
    const last = await page
      .locator('section')
      .nth(SECTIONS - 1)
      .boundingBox();
    if (last === null) throw new Error('the section cannot be seen');
    const height = Math.round(last.y + last.height + MARGIN);
    await page.screenshot({
      path: path.join(root, 'docs', 'report.png'),
      fullPage: true,
      clip: { x: 0, y: 0, width: WIDTH, height },
    });
  } finally {
    await browser.close();
  }
});
