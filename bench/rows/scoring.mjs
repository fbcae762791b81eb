// Scoring, once everything is loaded: latency, event loop, large traces, repetition, throughput.

import { atLeast, atMost, bounded, comparison, quantile, unavailable } from '../measure.mjs';
import { interleave } from '../side.mjs';
import { assertAgreement, forDtypes, load, missing, ORACLE, rowsFor, withScorers } from './scorers.mjs';

const named = (/** @type {string} */ name) => forDtypes((dtype) => `${name}, ${dtype}`);

const REAL = named('real trace of 512 tokens');
const STALL_P99 = named('event loop late meanwhile, p99');
const STALL_LONGEST = named('event loop late meanwhile, longest');
const SHORT = named('trace of 5 short steps');
const LARGE = { 1: '1 MB trace, fp32', 10: '10 MB trace, fp32' };
const REPEATED = named('the same trace again');
const ALL = named('real traces at once, each');

/**
 * @import { Bench } from '../run.mjs'
 * @import { Description } from '../workload.mjs'
 * @import { Row, Target } from '../measure.mjs'
 * @import { Dtype } from './scorers.mjs'
 * @import { Side } from '../side.mjs'
 */

/** @returns {Description} a trace padded to a number of megabytes; 0 leaves it as it is */
const grownBy = (/** @type {number} */ megabytes, /** @type {string} */ run) =>
  megabytes === 0 ? { kind: 'long', run } : { kind: 'grown', megabytes, run };

/** @typedef {(sides: Side[], bench: Bench) => Promise<Row[]>} Measure */

// Each group of rows comes from one measurement.
const groups = [
  {
    names: REAL,
    measure: measureLatencies(REAL, 'long', 2, [40, 8], {
      wide: { fp32: atMost(0.7, 'x', 0.6), q8: atMost(0.3, 'x', 0.22) },
      narrow: { fp32: atMost(0.85, 'x'), q8: atMost(0.55, 'x') },
    }),
  },
  { names: [STALL_P99, STALL_LONGEST].flatMap(Object.values), measure: measureStalls },
  {
    names: SHORT,
    measure: measureLatencies(SHORT, 'short', 8, [60, 10], {
      wide: { fp32: atMost(0.75, 'x'), q8: atMost(0.25, 'x') },
      narrow: { fp32: atMost(0.85, 'x'), q8: atMost(0.45, 'x') },
    }),
  },
  { names: LARGE, measure: measureLarge },
  { names: REPEATED, measure: measureRepeated },
  { names: ALL, measure: measureAll },
];

/** @param {Bench} bench */
export async function scoring(bench) {
  const wanted = groups.filter(({ names }) => Object.values(names).some(bench.wants));
  if (wanted.length === 0) return [];
  return withScorers(async (sides) => {
    await load(sides);
    const rows = [];
    for (const { names, measure } of wanted) {
      bench.say(Object.values(names)[0]);
      rows.push(...(await measure(sides, bench)));
    }
    return rows;
  });
}

/**
 * @param {Record<Dtype, string>} names
 * @param {Record<string, number[][]>} rounds
 * @param {{ unit: string, targets: Record<Dtype, Target>, better?: 'higher' | 'lower' }} options
 */
function comparisons(names, rounds, { unit, targets, better }) {
  return rowsFor(names, (dtype) =>
    comparison({
      name: names[dtype],
      ours: rounds[dtype],
      against: ORACLE,
      theirs: rounds[ORACLE],
      unit,
      better,
      target: targets[dtype],
    }),
  );
}

/**
 * Latencies of `perTurn` traces in every turn, another text each time.
 *
 * @param {Side[]} sides
 * @param {number} rounds
 * @param {number} perTurn
 * @param {Description['kind']} kind
 */
async function latencies(sides, rounds, perTurn, kind) {
  const traces = (/** @type {number} */ round) =>
    Array.from({ length: perTurn }, (_, call) => {
      const run = round * perTurn + call;
      return { kind, index: run, run };
    });
  await assertAgreement(sides, traces(0));
  return interleave(sides, rounds, async (side, round) => {
    const { milliseconds } = await side.ask('score', { traces: traces(round) });
    return milliseconds;
  });
}

/**
 * @param {Record<Dtype, string>} names
 * @param {Description['kind']} kind
 * @param {number} perTurn
 * @param {[full: number, few: number]} counts of rounds
 * @param {Record<'wide' | 'narrow', Record<Dtype, Target>>} targets
 * @returns {Measure}
 */
function measureLatencies(names, kind, perTurn, counts, { wide, narrow }) {
  return async (sides, bench) => {
    const samples = await latencies(sides, bench.rounds(...counts), perTurn, kind);
    return comparisons(names, samples, { unit: 'ms', targets: bench.wide ? wide : narrow });
  };
}

/** @type {Measure} */
async function measureStalls(sides, { rounds }) {
  /** @returns {Description} */
  const trace = (/** @type {number} */ round) => ({ kind: 'long', index: round, run: `stall ${round}` });
  await assertAgreement(sides, [trace(0)]);
  const samples = await interleave(sides, rounds(40, 8), (side, round) =>
    side.ask('stalls', { trace: trace(round) }),
  );
  const statistics = [
    { names: STALL_P99, of: (/** @type {number[]} */ all) => quantile(all, 0.99), target: atMost(5, ' ms') },
    {
      names: STALL_LONGEST,
      of: (/** @type {number[]} */ all) => Math.max(...all),
      target: atMost(15, ' ms'),
    },
  ];
  return statistics.flatMap(({ names, of, target }) =>
    rowsFor(names, (dtype) =>
      bounded({
        name: names[dtype],
        unit: 'ms',
        ours: { median: of(samples[dtype].flat()) },
        against: ORACLE,
        theirs: { median: of(samples[ORACLE].flat()) },
        target,
      }),
    ),
  );
}

/** @type {Measure} only our own: the oracle would read the whole text */
async function measureLarge(sides, { rounds }) {
  const fp32 = sides.find(({ name }) => name === 'fp32');
  if (fp32 === undefined) return Object.values(LARGE).map((name) => unavailable(name, missing('fp32')));
  /** @type {Array<{ name: string, megabytes: number, target: Target }>} */
  const large = [
    { name: LARGE[1], megabytes: 1, target: atMost(1.2, 'x') },
    { name: LARGE[10], megabytes: 10, target: atMost(1.5, 'x') },
  ];
  // The shortened text still has more than 512 tokens, so that it counts for the oracle as if it were whole.
  const grown = large.map(({ megabytes }) => grownBy(megabytes, `${megabytes} MB`));
  await assertAgreement(
    sides,
    grown,
    grown.map((trace) => ({ ...trace, cut: 10_000 })),
  );
  // The three are turns of the one side; 0 MB is the trace as it is.
  const turns = new Map([0, 1, 10].map((megabytes) => [megabytes, /** @type {number[][]} */ ([])]));
  for (let round = 0; round <= rounds(30, 6); round++) {
    for (const [megabytes, samples] of turns) {
      // Their first 512 tokens may be the same otherwise, and the second of them be remembered.
      const trace = grownBy(megabytes, `${megabytes} MB ${round}`);
      const { milliseconds } = await fp32.ask('score', { traces: [trace] });
      if (round > 0) samples.push(milliseconds);
    }
  }
  return large.map(({ name, megabytes, target }) =>
    comparison({
      name,
      unit: 'ms',
      ours: turns.get(megabytes) ?? [],
      against: 'our 512 tokens',
      theirs: turns.get(0) ?? [],
      target,
    }),
  );
}

/** @type {Measure} */
async function measureRepeated(sides, { rounds }) {
  const ours = sides.filter(({ name }) => name !== ORACLE);
  const twice = (/** @type {number} */ round) => {
    /** @type {Description} */
    const trace = { kind: 'long', index: round, run: `again ${round}` };
    return [trace, trace];
  };
  await assertAgreement(sides, twice(0));
  const samples = await interleave(ours, rounds(30, 8), async (side, round) => {
    const { milliseconds } = await side.ask('score', { traces: twice(round) });
    return milliseconds;
  });
  const pick = (/** @type {Dtype} */ dtype, /** @type {number} */ call) =>
    samples[dtype].map((milliseconds) => [milliseconds[call]]);
  return rowsFor(REPEATED, (dtype) =>
    comparison({
      name: REPEATED[dtype],
      unit: 'ms',
      ours: pick(dtype, 1),
      against: 'its first score',
      theirs: pick(dtype, 0),
      target: atMost(0.03, 'x'),
    }),
  );
}

/** @type {Measure} */
async function measureAll(sides, { rounds, quick, wide }) {
  // Fewer do for a quick look; the throughput is the same.
  const count = quick ? 25 : 100;
  /** @returns {Description[]} */
  const traces = (/** @type {string | number} */ round) =>
    Array.from({ length: count }, (_, index) => ({ kind: 'real', index, run: `all ${round}` }));
  await assertAgreement(sides, traces('check').slice(0, 10));
  const samples = await interleave(sides, rounds(4, 2), async (side, round) => {
    const { milliseconds } = await side.ask('scoreAll', { traces: traces(round) });
    return [milliseconds / count];
  });
  const targets = wide
    ? { fp32: atLeast(1.5, 'x'), q8: atLeast(3.5, 'x') }
    : { fp32: atLeast(1.25, 'x'), q8: atLeast(2, 'x') };
  return comparisons(ALL, samples, { unit: 'ms', better: 'higher', targets });
}
