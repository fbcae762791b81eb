// `npm run bench`: this package side by side with its alternatives: transformers.js as the SDK runs it, a loop and usearch.
//
//   npm run bench                        about five minutes
//   npm run bench -- --only q8           only the groups of rows whose name contains that
//   npm run bench -- --json FILE         the results go there instead of bench/results/
//   KNOWLEDGEPULSE_KERNEL=avx2 npm run bench   as on a processor that has no more than these instructions
//
// Each side has a process of its own, and only one is busy at a time. Before anything is timed, the sides must agree.

import os from 'node:os';
import { parseArgs } from 'node:util';

import { temporaryDirectory } from '../scripts/platform.mjs';
import { runScript, setup, WITHOUT } from '../scripts/setup.mjs';
import { bounded, comparison, median, printTable, writeResults } from './measure.mjs';
import { assertClose, interleave, Side, withSides } from './side.mjs';

/**
 * @import { Row, Target } from './measure.mjs'
 * @import { Description } from './workload.mjs'
 */

const LEGEND = `Times are medians. A ratio is the median over the rounds of ours to theirs in the same round; where the target
is a lower bound, of how many times faster we are. Event loop: by how much a timer of 1 ms comes too late.`;

const ORACLE = 'transformers.js';

/** How long an agent thinks between two calls, in milliseconds: by then no thread of the encoder spins any more. */
const PAUSE_MS = 60;

/** How far a score may be from the oracle's. */
const TOLERANCES = { fp32: 1e-5, q8: 0.01 };

const { values: options } = parseArgs({
  options: {
    json: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});

/** Whether the processor has the widest instructions, for which the stricter targets hold. */
let isWide = false;

/**
 * The latencies that are measured: traces of a kind, so many in a turn, in so many rounds, each after so many milliseconds of rest. The greatest
 * ratio of each dtype stands for the widest instructions first, then for others.
 *
 * @typedef {{ kind: Description['kind'], perTurn: number, count: number, pause?: number, fp32: number[], q8: number[] }} Latency
 */

/** @type {Omit<Latency, 'perTurn'>} */
const LONG = { kind: 'long', count: 40, fp32: [0.7, 0.85], q8: [0.3, 0.55] };
const ofMany = { perTurn: 8, count: 60 };
/** @type {Record<string, Latency>} */
const LATENCIES = {
  'real trace of 512 tokens': { ...LONG, perTurn: 2 },
  'real trace of 512 tokens after a pause': { ...LONG, perTurn: 1, pause: PAUSE_MS },
  'trace of 5 short steps': { ...ofMany, kind: 'short', fp32: [0.75, 0.85], q8: [0.25, 0.45] },
  'sentence of 15 tokens': { ...ofMany, kind: 'sentence', fp32: [0.9, 1.1], q8: [0.35, 0.66] },
};

/** @type {Record<string, () => Promise<Row[]>>} what is measured, by the name of a group */
const groups = {
  ...Object.fromEntries(
    Object.entries(LATENCIES).map(([name, latency]) => [`${name}, fp32, q8`, () => latencies(name, latency)]),
  ),
  'event loop late meanwhile, fp32, q8': stalls,
  '10 MB trace, fp32': large,
  'real traces in a batch, each, fp32, q8': batch,
  'import to first score, memory after 100 traces, fp32, q8': freshProcesses,
  'no embedder: 5 short steps': withoutEmbedder,
  'maxCosineSimilarity, 1,000 x 384': () => search(1000, 'µs', 40),
  'maxCosineSimilarity, 100,000 x 384': () => search(100_000, 'ms', 10),
};

await runScript(async () => {
  await setup(WITHOUT.benchmarks);
  const { kernel } = await withScorers((sides) => sides[1].ask('status'));
  isWide = kernel === 'avx512-amx' || kernel === 'avx512-vnni';
  const machine = [
    os.cpus()[0]?.model.trim() ?? 'unknown processor',
    `${os.availableParallelism()} cores`,
    `${os.type()} ${os.release()} ${os.arch()}`,
    `Node.js ${process.versions.node}`,
    `kernel ${kernel}`,
  ].join(', ');
  console.log(`\n${machine}\n`);
  const wanted = Object.entries(groups).filter(([name]) => name.includes(options.only));
  if (wanted.length === 0) throw new Error(`no row has ${JSON.stringify(options.only)} in its name`);
  /** @type {Row[]} */
  const rows = [];
  for (const [name, measure] of wanted) {
    console.error(`measuring: ${name} …`);
    rows.push(...(await measure()));
  }
  printTable(rows);
  console.log(LEGEND);
  const count = (/** @type {string} */ verdict) => rows.filter((row) => row.verdict === verdict).length;
  console.log(`targets: ${count('ok')} ok, ${count('missed')} missed`);
  // Named after the machine, so that a later run of the same kind replaces it.
  const parts = [process.platform, process.arch, options.only && 'part'];
  writeResults({ machine, rows }, parts.filter(Boolean).join('-'), options.json);
});

/**
 * Runs `use` with the sides `fp32`, `q8` and the oracle, which have made their first score.
 *
 * @template T
 * @param {(sides: Side[], loaded: Array<{ milliseconds: number, score: number }>) => Promise<T>} use
 */
async function withScorers(use) {
  const { modelDirectory } = await import('../__test__/support/paths.js');
  const ours = Object.entries({ fp32: modelDirectory, q8: `${modelDirectory}-q8` }).map(
    ([dtype, directory]) =>
      new Side(dtype, 'scorer', 'ours', {
        KNOWLEDGEPULSE_ENGINE: 'builtin',
        KNOWLEDGEPULSE_MODEL_DIR: directory,
      }),
  );
  return withSides([...ours, new Side(ORACLE, 'scorer', 'oracle')], async (sides) => {
    const loaded = [];
    for (const side of sides) {
      loaded.push(await side.ask('load', { trace: { kind: 'short' } }));
      if (side.name === ORACLE) continue;
      const { available, dtype, engine, reason } = await side.ask('status');
      if (!available || dtype !== side.name || engine !== 'builtin')
        throw new Error(`expected ${side.name} on the built-in engine, got ${dtype} on ${engine}: ${reason}`);
    }
    assertScores(
      sides,
      loaded.map(({ score }) => [score]),
    );
    return use(sides, loaded);
  });
}

/**
 * @param {Side[]} sides
 * @param {number[][]} scores
 */
function assertScores(sides, scores) {
  const expected = scores[sides.findIndex(({ name }) => name === ORACLE)];
  for (const [index, { name }] of sides.entries())
    if (name === 'fp32' || name === 'q8') assertClose(name, scores[index], expected, TOLERANCES[name]);
}

/**
 * Scores traces on every side from an empty memory, and throws unless they agree. The oracle, which reads all of a text, may
 * get shorter ones.
 *
 * @param {Side[]} sides
 * @param {Description[]} traces
 * @param {Description[]} [forOracle]
 */
async function assertAgreement(sides, traces, forOracle = traces) {
  const scores = [];
  for (const side of sides) {
    await side.ask('clear');
    const reply = await side.ask('score', { traces: side.name === ORACLE ? forOracle : traces });
    scores.push(reply.scores);
  }
  assertScores(sides, scores);
}

/**
 * Returns a row for each dtype against the oracle.
 *
 * @param {string} name
 * @param {string} unit
 * @param {Record<string, number[][]>} samples
 * @param {{ fp32: Target, q8: Target }} targets
 */
function againstOracle(name, unit, samples, targets) {
  return Object.entries(targets).map(([dtype, target]) =>
    comparison({
      name: `${name}, ${dtype}`,
      unit,
      ours: samples[dtype],
      against: ORACLE,
      theirs: samples[ORACLE],
      target,
    }),
  );
}

/**
 * Measures latencies, of another text each time.
 *
 * @param {string} name
 * @param {Latency} latency
 */
function latencies(name, { kind, perTurn, count, pause = 0, fp32, q8 }) {
  return withScorers(async (sides) => {
    const traces = (/** @type {number} */ round) =>
      Array.from({ length: perTurn }, (_, call) => {
        const run = round * perTurn + call;
        return { kind, index: run, run };
      });
    await assertAgreement(sides, traces(0));
    const samples = await interleave(sides, count, async (side, round) => {
      const { milliseconds } = await side.ask('score', { traces: traces(round), pause });
      return milliseconds;
    });
    const most = (/** @type {number[]} */ [wide, narrow]) => ({ most: isWide ? wide : narrow });
    return againstOracle(name, 'ms', samples, { fp32: most(fp32), q8: most(q8) });
  });
}

function stalls() {
  return withScorers(async (sides) => {
    const samples = await interleave(sides, 40, (side, round) =>
      side.ask('stalls', { trace: { kind: 'long', index: round, run: `stall ${round}` } }),
    );
    const longest = (/** @type {string} */ side) => Math.max(...samples[side].flat());
    return ['fp32', 'q8'].map((dtype) =>
      bounded({
        name: `event loop late meanwhile, longest, ${dtype}`,
        unit: 'ms',
        ours: longest(dtype),
        against: ORACLE,
        theirs: longest(ORACLE),
        target: { most: 15 },
      }),
    );
  });
}

/** Compares our own 10 MB with our own 512 tokens: the oracle would read the whole text. */
function large() {
  return withScorers(async (sides) => {
    /** @returns {Description} */
    const grown = (/** @type {number} */ megabytes, /** @type {string | number} */ run) =>
      megabytes === 0
        ? { kind: 'long', run: `${megabytes} MB ${run}` }
        : { kind: 'grown', megabytes, run: `${megabytes} MB ${run}` };
    // The shortened text still has more than 512 tokens, so that it counts for the oracle as if it were whole.
    await assertAgreement(sides, [grown(10, 'check')], [{ ...grown(10, 'check'), cut: 10_000 }]);
    const [ours, theirs] = [10, 0].map(() => /** @type {number[][]} */ ([]));
    for (let round = 0; round <= 30; round++) {
      for (const [megabytes, samples] of /** @type {const} */ ([
        [10, ours],
        [0, theirs],
      ])) {
        const { milliseconds } = await sides[0].ask('score', { traces: [grown(megabytes, round)] });
        if (round > 0) samples.push(milliseconds);
      }
    }
    const name = '10 MB trace, fp32';
    return [comparison({ name, unit: 'ms', ours, against: 'our 512 tokens', theirs, target: { most: 1.5 } })];
  });
}

function batch() {
  return withScorers(async (sides) => {
    const count = 100;
    /** @returns {Description[]} */
    const traces = (/** @type {string | number} */ round) =>
      Array.from({ length: count }, (_, index) => ({ kind: 'real', index, run: `all ${round}` }));
    await assertAgreement(sides, traces('check').slice(0, 10));
    const samples = await interleave(sides, 4, async (side, round) => {
      const milliseconds = await side.ask('scoreAll', { traces: traces(round) });
      return [milliseconds / count];
    });
    return againstOracle('real traces in a batch, each', 'ms', samples, {
      fp32: { least: isWide ? 1.5 : 1.25 },
      q8: { least: isWide ? 3.5 : 2 },
    });
  });
}

/** Measures what a fresh process takes: the time to its first score, and the memory after a hundred traces. */
async function freshProcesses() {
  /** @type {Record<string, Record<string, number[][]>>} */
  const samples = { first: {}, memory: {} };
  const count = 10;
  const traces = Array.from({ length: 100 }, (_, index) => ({ kind: 'real', index }));
  // The first round brings the files into the system's cache.
  for (let round = 0; round <= count; round++) {
    await withScorers(async (sides, loaded) => {
      if (round === 0) return;
      for (const [index, side] of sides.entries()) {
        samples.first[side.name] ??= [];
        samples.first[side.name].push([loaded[index].milliseconds]);
        if (round > 3) continue;
        await side.ask('score', { traces });
        samples.memory[side.name] ??= [];
        samples.memory[side.name].push([(await side.ask('memory')) / 1e6]);
      }
    });
  }
  return [
    ...againstOracle('import to first score', 'ms', samples.first, {
      fp32: { most: 0.3 },
      q8: { most: 0.12 },
    }),
    ...againstOracle('memory after 100 traces', 'MB', samples.memory, {
      fp32: { most: 0.5 },
      q8: { most: 0.3 },
    }),
  ];
}

/** Measures one evaluation where nothing embeds: reading the trace, and arithmetic. */
async function withoutEmbedder() {
  const { scoreOf } = await import('../__test__/oracle/score.js');
  const { makeTrace } = await import('./workload.mjs');
  // An empty directory where the model should be.
  const env = { KNOWLEDGEPULSE_MODEL_DIR: temporaryDirectory('bench') };
  return withSides([new Side('no embedder', 'scorer', 'ours', env)], async ([side]) => {
    /** @type {Description} */
    const trace = { kind: 'short' };
    const { score } = await side.ask('load', { trace });
    assertClose(side.name, [score], [scoreOf(makeTrace(trace), 0.5)], 1e-9);
    const samples = await interleave([side], 20, () =>
      side.ask('repeat', { trace, calls: 500, batches: 10 }),
    );
    const ours = 1000 * median(samples[side.name].flat());
    return [bounded({ name: 'no embedder: 5 short steps', unit: 'µs', ours, target: { most: 20 } })];
  });
}

/**
 * Measures the search for the most similar of `count` vectors.
 *
 * @param {number} count
 * @param {'µs' | 'ms'} unit
 * @param {number} turns
 */
function search(count, unit, turns) {
  const rivals = { loop: 25, usearch: 2 };
  const sides = ['ours', ...Object.keys(rivals)].map((name) => new Side(name, 'searcher', name));
  return withSides(sides, async ([ours, loop, usearch]) => {
    for (const side of sides) await side.ask('fill', { count });
    // The loop computes in double precision.
    const expected = await loop.ask('answers');
    for (const side of [ours, usearch]) assertClose(side.name, await side.ask('answers'), expected, 1e-6);
    const perMs = { µs: 1000, ms: 1 }[unit];
    const samples = await interleave(sides, turns, async (side) => {
      const milliseconds = await side.ask('time', { milliseconds: 10 });
      return milliseconds.map((/** @type {number} */ each) => each * perMs);
    });
    return Object.entries(rivals).map(([against, least]) =>
      comparison({
        name: `maxCosineSimilarity, ${count.toLocaleString('en')} x 384`,
        unit,
        ours: samples.ours,
        against,
        theirs: samples[against],
        target: { least: count === 1000 ? least : 1 },
      }),
    );
  });
}
