// `npm run bench:novelty`: what `novelty: 'full'` tells apart, and the prefix does not: the table in docs/novelty.md. Needs
// the real traces.

import fs from 'node:fs';

import cases from '../__test__/support/novelty-cases.js';
import { readTraces, sharedTraces } from '../__test__/support/paths.js';
import { runScript, setup } from '../scripts/setup.mjs';
import { median } from './measure.mjs';

/** @typedef {import('../index.js').ReasoningTrace} ReasoningTrace */

const METHODS = /** @type {const} */ (['prefix', 'full']);

await runScript(main);

async function main() {
  if (!fs.existsSync(sharedTraces))
    throw new Error(`there are no traces: KNOWLEDGEPULSE_TRACES names a file`);
  setup();
  const { Scorer } = await import('../index.js');
  const traces = readTraces(sharedTraces);
  const logs = cases.logsOf(traces);

  await print('trace', traces, 60, cases.tracesOfSteps);
  await print('log', logs, 13, cases.tracesOfLogs);

  /**
   * @param {string} what
   * @param {ReasoningTrace[]} all
   * @param {number} count
   * @param {(remembered: ReasoningTrace[], unknown: ReasoningTrace[]) => Record<string, ReasoningTrace[]>} rowsOf
   */
  async function print(what, all, count, rowsOf) {
    const [remembered, unknown] = [all.slice(0, count), all.slice(count)];
    const scorers = Object.fromEntries(METHODS.map((novelty) => [novelty, new Scorer({ novelty })]));
    for (const scorer of Object.values(scorers)) await scorer.evaluateValues(remembered);
    const windows = scorers.full.cache.size / count;
    console.log(
      `\n${count} remembered, ${unknown.length} others, ${windows.toFixed(1)} windows in the mean\n`,
    );
    console.log(`| a ${what} | ${METHODS.join(' | ')} |\n| --- | ---: | ---: |`);
    for (const [name, traces] of Object.entries(rowsOf(remembered, unknown))) {
      const medians = [];
      for (const scorer of Object.values(scorers)) medians.push(median(await noveltiesOf(scorer, traces)));
      console.log(`| ${name} | ${medians.map((novelty) => Math.abs(novelty).toFixed(4)).join(' | ')} |`);
    }
  }
}

/**
 * @param {import('../index.js').Scorer} scorer
 * @param {ReasoningTrace[]} traces
 */
async function noveltiesOf(scorer, traces) {
  const breakdowns = await Promise.all(traces.map((trace) => scorer.explain(trace, { remember: false })));
  return breakdowns.map(({ dimensions }) => dimensions.novelty);
}
