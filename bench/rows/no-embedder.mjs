// One evaluation where nothing embeds: reading the trace, and arithmetic.

import { scoreOf } from '../../__test__/oracle/score.js';
import { temporaryDirectory } from '../../scripts/platform.mjs';
import { below, bounded, summarize } from '../measure.mjs';
import { interleave, Side, withSides } from '../side.mjs';
import { makeTrace } from '../workload.mjs';
import { assertClose } from './scorers.mjs';

/** @typedef {{ name: string, trace: import('../workload.mjs').Description, target?: import('../measure.mjs').Target }} Case */

/** @type {Case[]} */
const traces = [
  { name: 'no embedder: 5 short steps', trace: { kind: 'short' }, target: below(20, ' µs') },
  { name: 'no embedder: real trace', trace: { kind: 'long' } },
];

/** @param {import('../run.mjs').Bench} bench */
export async function noEmbedder(bench) {
  const wanted = traces.filter(({ name }) => bench.wants(name));
  if (wanted.length === 0) return [];
  bench.say('no embedder');
  // An empty directory where the model should be.
  const env = { KNOWLEDGEPULSE_MODEL_DIR: temporaryDirectory('bench') };
  const side = new Side('no embedder', 'ours.mjs', { env });
  return withSides([side], async () => {
    const rows = [];
    for (const each of wanted) rows.push(await measure(side, each, bench));
    return rows;
  });
}

/**
 * @param {Side} side
 * @param {Case} case
 * @param {import('../run.mjs').Bench} bench
 */
async function measure(side, { name, trace, target }, bench) {
  const { score } = await side.ask('load', { trace });
  const { available } = await side.ask('about');
  if (available) throw new Error('there is an embedder where none should be');
  assertClose(side.name, [score], [scoreOf(makeTrace(trace), 0.5)], 1e-9);
  const samples = await interleave([side], bench.rounds(20, 6), async () => {
    const milliseconds = await side.ask('repeat', { trace, calls: 500, batches: 10 });
    return milliseconds.map((/** @type {number} */ each) => each * 1000);
  });
  return bounded({ name, unit: 'µs', ours: summarize(samples[side.name]), target });
}
