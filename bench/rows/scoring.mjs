// Scoring, once everything is loaded: latency, event loop, large traces, repetition, throughput.

import { atLeast, atMost, bounded, comparison, quantile, unavailable } from '../measure.mjs';
import { interleave } from '../side.mjs';
import { assertAgreement, DTYPES, load, missing, ORACLE, withScorers } from './scorers.mjs';

const forDtypes = (name) => Object.fromEntries(DTYPES.map((dtype) => [dtype, `${name}, ${dtype}`]));

const REAL = forDtypes('real trace of 512 tokens');
const STALL_P99 = forDtypes('event loop late meanwhile, p99');
const STALL_LONGEST = forDtypes('event loop late meanwhile, longest');
const SHORT = forDtypes('trace of 5 short steps');
const LARGE = { 1: '1 MB trace, fp32', 10: '10 MB trace, fp32' };
const REPEATED = forDtypes('the same trace again');
const ALL = forDtypes('real traces at once, each');

// Each group of rows comes from one measurement.
const groups = [
  { names: REAL, measure: measureReal },
  { names: { ...STALL_P99, ...prefixed('longest', STALL_LONGEST) }, measure: measureStalls },
  { names: SHORT, measure: measureShort },
  { names: LARGE, measure: measureLarge },
  { names: REPEATED, measure: measureRepeated },
  { names: ALL, measure: measureAll },
];

function prefixed(prefix, names) {
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [`${prefix} ${key}`, name]));
}

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

/** A row for each dtype: what `compare` makes of its rounds, or why there is none. */
function rowsFor(names, sides, compare) {
  return DTYPES.map((dtype) => {
    const side = sides.find(({ name }) => name === dtype);
    return side ? compare(dtype, side) : unavailable(names[dtype], missing(dtype));
  });
}

function comparisons(names, sides, rounds, options) {
  const oracle = sides.find(({ name }) => name === ORACLE);
  return rowsFor(names, sides, (dtype, side) =>
    comparison({
      name: names[dtype],
      ours: rounds.get(side),
      against: ORACLE,
      theirs: rounds.get(oracle),
      ...options,
      target: options.targets[dtype],
    }),
  );
}

/** Latencies of `perTurn` traces in every turn, another text each time. */
async function latencies(sides, rounds, perTurn, kind) {
  const traces = (round) =>
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

async function measureReal(sides, { rounds }) {
  const samples = await latencies(sides, rounds(40, 8), 2, 'long');
  const targets = { fp32: atMost(0.95, 'x'), q8: atMost(0.62, 'x', 0.5) };
  return comparisons(REAL, sides, samples, { unit: 'ms', targets });
}

async function measureShort(sides, { rounds }) {
  const samples = await latencies(sides, rounds(60, 10), 8, 'short');
  const targets = { fp32: atMost(0.8, 'x'), q8: atMost(0.6, 'x') };
  return comparisons(SHORT, sides, samples, { unit: 'ms', targets });
}

async function measureStalls(sides, { rounds }) {
  const trace = (round) => ({ kind: 'long', index: round, run: `stall ${round}` });
  await assertAgreement(sides, [trace(0)]);
  const samples = await interleave(sides, rounds(40, 8), (side, round) =>
    side.ask('stalls', { trace: trace(round) }),
  );
  const statistics = [
    { names: STALL_P99, of: (all) => quantile(all, 0.99), target: atMost(5, ' ms') },
    { names: STALL_LONGEST, of: (all) => Math.max(...all), target: atMost(15, ' ms') },
  ];
  const oracle = samples.get(sides.find(({ name }) => name === ORACLE)).flat();
  return statistics.flatMap(({ names, of, target }) =>
    rowsFor(names, sides, (dtype, side) =>
      bounded({
        name: names[dtype],
        unit: 'ms',
        ours: { median: of(samples.get(side).flat()) },
        against: ORACLE,
        theirs: { median: of(oracle) },
        target,
      }),
    ),
  );
}

/** Only our own: the oracle would read the whole text. */
async function measureLarge(sides, { rounds }) {
  const fp32 = sides.find(({ name }) => name === 'fp32');
  if (fp32 === undefined) return Object.values(LARGE).map((name) => unavailable(name, missing('fp32')));
  const kinds = [
    { kind: 'long' },
    { kind: 'grown', megabytes: 1, target: atMost(1.2, 'x') },
    { kind: 'grown', megabytes: 10, target: atMost(1.5, 'x') },
  ];
  // More than 512 tokens are left of what is cut, so that it counts for the oracle as if it were whole.
  const grown = kinds.slice(1).map(({ kind, megabytes }) => ({ kind, megabytes, run: `${megabytes} MB` }));
  await assertAgreement(
    sides,
    grown,
    grown.map((trace) => ({ ...trace, cut: 10_000 })),
  );
  // The three are turns of the one side.
  const turns = new Map(kinds.map((kind) => [kind, []]));
  for (let round = 0; round <= rounds(30, 6); round++) {
    for (const [{ kind, megabytes }, samples] of turns) {
      // Their first 512 tokens may be the same otherwise, and the second of them be remembered.
      const trace = { kind, megabytes, run: `${megabytes ?? 0} MB ${round}` };
      const { milliseconds } = await fp32.ask('score', { traces: [trace] });
      if (round > 0) samples.push(milliseconds);
    }
  }
  const [plain, ...large] = kinds;
  return large.map((kind) =>
    comparison({
      name: LARGE[kind.megabytes],
      unit: 'ms',
      ours: turns.get(kind),
      against: 'our 512 tokens',
      theirs: turns.get(plain),
      target: kind.target,
    }),
  );
}

async function measureRepeated(sides, { rounds }) {
  const ours = sides.filter(({ name }) => name !== ORACLE);
  const twice = (round) => {
    const trace = { kind: 'long', index: round, run: `again ${round}` };
    return [trace, trace];
  };
  await assertAgreement(sides, twice(0));
  const samples = await interleave(ours, rounds(30, 8), async (side, round) => {
    const { milliseconds } = await side.ask('score', { traces: twice(round) });
    return milliseconds;
  });
  const pick = (side, call) => samples.get(side).map((milliseconds) => [milliseconds[call]]);
  return rowsFor(REPEATED, sides, (dtype, side) =>
    comparison({
      name: REPEATED[dtype],
      unit: 'ms',
      ours: pick(side, 1),
      against: 'its first score',
      theirs: pick(side, 0),
      target: atMost(0.03, 'x'),
    }),
  );
}

async function measureAll(sides, { rounds, quick }) {
  // Fewer do for a quick look; the throughput is the same.
  const count = quick ? 25 : 100;
  const traces = (round) =>
    Array.from({ length: count }, (_, index) => ({ kind: 'real', index, run: `all ${round}` }));
  await assertAgreement(sides, traces('check').slice(0, 10));
  const samples = await interleave(sides, rounds(4, 2), async (side, round) => {
    const { milliseconds } = await side.ask('scoreAll', { traces: traces(round) });
    return [milliseconds / count];
  });
  const targets = { fp32: atLeast(1.2, 'x'), q8: atLeast(1.7, 'x') };
  return comparisons(ALL, sides, samples, { unit: 'ms', better: 'higher', targets });
}
