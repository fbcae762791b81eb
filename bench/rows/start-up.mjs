// From import to the first score, in fresh processes.

import { atMost, comparison } from '../measure.mjs';
import { forDtypes, load, ORACLE, rowsFor, withScorers } from './scorers.mjs';

const NAMES = forDtypes((dtype) => `import to first score, ${dtype}`);
const TARGETS = { fp32: atMost(0.3, 'x'), q8: atMost(0.12, 'x') };

/** @param {import('../run.mjs').Bench} bench */
export async function startUp(bench) {
  if (!Object.values(NAMES).some(bench.wants)) return [];
  bench.say('import to first score');
  /** @type {Record<string, number[][]>} */
  const samples = {};
  // The first round brings the files into the system's cache.
  for (let round = 0; round <= bench.rounds(10, 3); round++) {
    await withScorers(async (sides) => {
      const loaded = await load(sides);
      if (round === 0) return;
      for (const [index, { name }] of sides.entries()) {
        samples[name] ??= [];
        samples[name].push([loaded[index].milliseconds]);
      }
    });
  }
  return rowsFor(NAMES, (dtype) =>
    comparison({
      name: NAMES[dtype],
      unit: 'ms',
      ours: samples[dtype],
      against: ORACLE,
      theirs: samples[ORACLE],
      target: TARGETS[dtype],
    }),
  );
}
