// `maxCosineSimilarity` against other ways to find the most similar vector.

import { atLeast, comparison, unavailable } from '../measure.mjs';
import { interleave, Side, withSides } from '../side.mjs';
import { DIMENSIONS } from '../workload.mjs';
import { assertClose } from './scorers.mjs';

/**
 * @typedef {object} Rival
 * @property {string} name
 * @property {string} script
 * @property {'bun'} [runsOn]
 * @property {Record<string, string>} [env]
 * @property {import('../measure.mjs').Target} [target]
 */

/** @typedef {{ count: number, unit: string, perMs: number, batchMs: number, rounds: [full: number, few: number] }} Size */

const TOLERANCE = 1e-6;
const OURS = 'VectorCache';

/** @type {Rival[]} the others, with the targets at 1,000 vectors */
const rivals = [
  { name: 'loop on Node.js', script: 'search-loop.mjs', target: atLeast(25, 'x') },
  { name: 'loop on Bun', script: 'search-loop.mjs', runsOn: 'bun' },
  { name: 'usearch', script: 'search-usearch.mjs', target: atLeast(2, 'x') },
  {
    name: 'usearch, 1 thread',
    script: 'search-usearch.mjs',
    env: { USEARCH_THREADS: '1' },
    target: atLeast(2, 'x'),
  },
];

/** @type {Size[]} */
const sizes = [
  { count: 1000, unit: 'µs', perMs: 1000, batchMs: 5, rounds: [40, 10] },
  // One call takes a while there; `cargo bench` measures the target.
  { count: 100_000, unit: 'ms', perMs: 1, batchMs: 20, rounds: [10, 2] },
];

/** @param {Size} size */
const rowName = ({ count }) => `maxCosineSimilarity, ${count.toLocaleString('en')} x ${DIMENSIONS}`;

/** @param {import('../run.mjs').Bench} bench */
export async function search(bench) {
  const wanted = sizes.filter((size) =>
    rivals.some((rival) => bench.wants(`${rowName(size)} ${rival.name}`)),
  );
  if (wanted.length === 0) return [];
  const sides = [
    new Side(OURS, 'search-ours.mjs'),
    ...rivals
      .filter((rival) => whyNot(rival, bench) === undefined)
      .map(({ name, script, env, runsOn }) => new Side(name, script, { env, program: runsOn && bench.bun })),
  ];
  return withSides(sides, async () => {
    const rows = [];
    for (const size of wanted) {
      bench.say(rowName(size));
      rows.push(...(await measure(size, sides, bench)));
    }
    return rows;
  });
}

/**
 * @param {Size} size
 * @param {Side[]} sides
 * @param {import('../run.mjs').Bench} bench
 */
async function measure(size, sides, bench) {
  const { count, unit, perMs, batchMs, rounds } = size;
  await assertAgreement(sides, count);
  const samples = await interleave(sides, bench.rounds(...rounds), async (side) => {
    const milliseconds = await side.ask('time', { milliseconds: batchMs });
    return milliseconds.map((/** @type {number} */ each) => each * perMs);
  });
  return rivals.map((rival) => {
    const name = rowName(size);
    const reason = whyNot(rival, bench);
    if (reason !== undefined) return unavailable(name, reason);
    return comparison({
      name,
      unit,
      better: 'higher',
      ours: samples[OURS],
      against: rival.name,
      theirs: samples[rival.name],
      target: count === 1000 ? rival.target : undefined,
    });
  });
}

/**
 * All against the plain loop, which computes in double precision.
 *
 * @param {Side[]} sides
 * @param {number} count
 */
async function assertAgreement(sides, count) {
  /** @type {Map<string, number[]>} */
  const answers = new Map();
  for (const side of sides) {
    await side.ask('fill', { count });
    answers.set(side.name, await side.ask('answers'));
  }
  const expected = answers.get(rivals[0].name) ?? [];
  for (const [name, similarities] of answers) assertClose(name, similarities, expected, TOLERANCE);
}

/**
 * Why a rival cannot run here, or undefined if it can.
 *
 * @param {Rival} rival
 * @param {import('../run.mjs').Bench} bench
 */
function whyNot({ script, runsOn }, bench) {
  if (runsOn === 'bun' && bench.bun === undefined) return 'Bun is not installed';
  if (script === 'search-usearch.mjs') return bench.usearchProblem;
  return undefined;
}
