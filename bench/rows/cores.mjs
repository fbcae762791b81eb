// A batch on all threads of one process, beside as many processes with one thread each: what threads of a process share costs time.

import os from 'node:os';

import { atMost, comparison, unavailable } from '../measure.mjs';
import { Side, withSides } from '../side.mjs';
import { assertClose, DTYPES, MODELS, missing } from './scorers.mjs';

/** @typedef {import('./scorers.mjs').Dtype} Dtype */

/** How many traces of 512 tokens each core gets in a round. */
const PER_CORE = 8;

const nameOf = (/** @type {Dtype} */ dtype) => `batch of traces of 512 tokens, all cores, ${dtype}`;

/** @param {import('../run.mjs').Bench} bench */
export async function cores(bench) {
  const rows = [];
  for (const dtype of DTYPES.filter((dtype) => bench.wants(nameOf(dtype)))) {
    const reason = missing(dtype);
    rows.push(reason === undefined ? await measure(dtype, bench) : unavailable(nameOf(dtype), reason));
  }
  return rows;
}

/**
 * @param {Dtype} dtype
 * @param {import('../run.mjs').Bench} bench
 */
function measure(dtype, bench) {
  const name = nameOf(dtype);
  bench.say(name);
  const count = os.availableParallelism();
  const side = (/** @type {number} */ threads) => {
    const env = { KNOWLEDGEPULSE_ENGINE: 'builtin', KNOWLEDGEPULSE_THREADS: String(threads) };
    return new Side(`${threads} threads`, 'ours.mjs', {
      env: { ...env, KNOWLEDGEPULSE_MODEL_DIR: MODELS[dtype] },
    });
  };
  const together = side(count);
  const apart = Array.from({ length: count }, () => side(1));
  return withSides([together, ...apart], async () => {
    for (const each of [together, ...apart]) await each.ask('load', { trace: { kind: 'short' } });
    /** @type {{ ours: number[][], theirs: number[][] }} */
    const samples = { ours: [], theirs: [] };
    for (let round = 0; round <= bench.rounds(10, 3); round++) {
      const traces = Array.from({ length: PER_CORE * count }, (_, index) => {
        return { kind: 'long', index, run: `${name} ${round}` };
      });
      for (const each of [together, ...apart]) await each.ask('clear');
      const ours = await together.ask('scoreAll', { traces });
      const replies = await Promise.all(
        apart.map((each, at) =>
          each.ask('scoreAll', { traces: traces.slice(at * PER_CORE, (at + 1) * PER_CORE) }),
        ),
      );
      // The first process has compared with no traces of others: its scores are those of the batch.
      assertClose(name, replies[0].scores, ours.scores.slice(0, PER_CORE), 0);
      // The first round only warms up.
      if (round === 0) continue;
      samples.ours.push([ours.milliseconds]);
      samples.theirs.push([Math.max(...replies.map(({ milliseconds }) => milliseconds))]);
    }
    return comparison({
      name,
      unit: 'ms',
      ...samples,
      against: `${count} processes of one thread`,
      target: atMost(1.05, 'x'),
    });
  });
}
