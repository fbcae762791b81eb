// The memory and the idle load of a process after a hundred traces.

import { atMost, below, bounded, comparison, summarize } from '../measure.mjs';
import { assertScores, forDtypes, load, ORACLE, rowsFor, withScorers } from './scorers.mjs';

const MEMORY = forDtypes((dtype) => `memory after 100 traces, ${dtype}`);
const IDLE = forDtypes((dtype) => `idle CPU after 100 traces, ${dtype}`);
const MEMORY_TARGETS = { fp32: atMost(0.5, 'x'), q8: atMost(0.3, 'x') };

const TRACES = Array.from({ length: 100 }, (_, index) => ({ kind: 'real', index }));
const IDLE_MS = 2000;

/** @typedef {import('./scorers.mjs').Dtype} Dtype */

/** @param {import('../run.mjs').Bench} bench */
export async function footprint(bench) {
  if (![...Object.values(MEMORY), ...Object.values(IDLE)].some(bench.wants)) return [];
  bench.say('memory and idle CPU after 100 traces');
  /** @type {Record<string, number[][]>} */
  const memory = {};
  /** @type {Record<string, number[][]>} */
  const idle = {};
  /**
   * @param {Record<string, number[][]>} samples
   * @param {string} name
   * @param {number} sample
   */
  const record = (samples, name, sample) => {
    samples[name] ??= [];
    samples[name].push([sample]);
  };
  for (let round = 0; round < bench.rounds(3, 1); round++) {
    await withScorers(async (sides) => {
      await load(sides);
      const scores = [];
      for (const side of sides) {
        await side.ask('clear');
        scores.push((await side.ask('score', { traces: TRACES })).scores);
        record(memory, side.name, (await side.ask('memory')) / 1e6);
      }
      assertScores(sides, scores);
      // All at once: none of them should have any work.
      await Promise.all(
        sides.map(async (side) =>
          record(idle, side.name, 100 * (await side.ask('idle', { milliseconds: IDLE_MS }))),
        ),
      );
    });
  }
  return [...rowsFor(MEMORY, memoryRow), ...rowsFor(IDLE, idleRow)];

  /** @param {Dtype} dtype */
  function memoryRow(dtype) {
    return comparison({
      name: MEMORY[dtype],
      unit: 'MB',
      ours: memory[dtype],
      against: ORACLE,
      theirs: memory[ORACLE],
      target: MEMORY_TARGETS[dtype],
    });
  }

  /** @param {Dtype} dtype */
  function idleRow(dtype) {
    return bounded({
      name: IDLE[dtype],
      unit: '%',
      ours: summarize(idle[dtype]),
      against: ORACLE,
      theirs: summarize(idle[ORACLE]),
      target: below(0.1, ' %'),
    });
  }
}
