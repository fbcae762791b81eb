// The two engines beside each other and beside transformers.js: from one sentence to a batch, also on a machine that is busy.

import { spawn } from 'node:child_process';
import os from 'node:os';

import { atMost, comparison, unavailable } from '../measure.mjs';
import { interleave } from '../side.mjs';
import { assertAgreement, DTYPES, load, missing, ORACLE, onOnnxRuntime, withScorers } from './scorers.mjs';

/**
 * @import { Bench } from '../run.mjs'
 * @import { Description } from '../workload.mjs'
 * @import { Side } from '../side.mjs'
 * @import { Row, Target } from '../measure.mjs'
 * @import { Dtype } from './scorers.mjs'
 */

const PASSAGES = 32;

/**
 * The operation that is timed on every side: `perTurn` traces of a kind, one after another.
 *
 * @typedef {object} Kind
 * @property {string} name
 * @property {Description['kind']} kind
 * @property {number} perTurn
 * @property {[number, number]} rounds
 * @property {(bench: Bench) => Record<Dtype, Target> | undefined} targets of the built-in engine
 */

/** @type {Kind[]} */
const KINDS = [
  {
    name: 'sentence of 15 tokens',
    kind: 'sentence',
    perTurn: 10,
    rounds: [60, 10],
    targets: ({ wide }) => ({ fp32: atMost(0.95, 'x'), q8: atMost(wide ? 0.3 : 0.45, 'x') }),
  },
  // The built-in engine's rows, with their targets, are among the rows of scoring.
  { name: 'trace of 5 short steps', kind: 'short', perTurn: 8, rounds: [40, 8], targets: () => undefined },
  { name: 'real trace of 512 tokens', kind: 'long', perTurn: 2, rounds: [20, 6], targets: () => undefined },
];

const BUSY = ', all cores busy';
const BATCH = `${PASSAGES} texts of 50 to 250 tokens, q8`;

/** @param {Bench} bench */
export async function engines(bench) {
  const isWanted = (/** @type {string} */ name) =>
    DTYPES.some((dtype) => [dtype, onOnnxRuntime(dtype)].some((side) => bench.wants(`${name}, ${side}`)));
  const kinds = KINDS.filter(({ name }) => isWanted(name));
  const busy = KINDS.slice(0, 2).filter(({ name }) => isWanted(`${name}${BUSY}`));
  if (kinds.length === 0 && busy.length === 0 && !bench.wants(BATCH)) return [];
  return withScorers(
    async (sides) => {
      await load(sides);
      /** @type {Row[]} */
      const rows = [];
      for (const kind of kinds) rows.push(...(await measureKind(sides, bench, kind)));
      if (bench.wants(BATCH)) rows.push(await measureBatch(sides, bench));
      if (busy.length > 0) {
        const stop = keepBusy();
        try {
          for (const kind of busy) {
            const limits = { fp32: atMost(0.9, 'x'), q8: atMost(0.9, 'x') };
            const beside = { ...kind, name: `${kind.name}${BUSY}`, targets: () => limits };
            rows.push(...(await measureKind(sides, bench, beside)));
          }
        } finally {
          stop();
        }
      }
      return rows;
    },
    { bothEngines: true },
  );
}

/**
 * Names the faster engine in a line, by the rows that both have; empty without such rows.
 *
 * @param {Row[]} rows
 */
export function enginesLine(rows) {
  const medianOf = (/** @type {string} */ name) => rows.find((row) => row.name === name)?.ours?.median;
  const ratios = KINDS.flatMap(({ name }) =>
    DTYPES.flatMap((dtype) => {
      const [builtin, other] = [dtype, onOnnxRuntime(dtype)].map((side) => medianOf(`${name}, ${side}`));
      return builtin && other ? `${name}, ${dtype}: ${(builtin / other).toFixed(2)}` : [];
    }),
  );
  return ratios.length > 0 ? `built-in engine to ONNX Runtime, less is faster: ${ratios.join('; ')}` : '';
}

/**
 * @param {Side[]} sides
 * @param {Bench} bench
 * @param {Kind} kind
 */
async function measureKind(sides, bench, { name, kind, perTurn, rounds, targets }) {
  bench.say(name);
  const traces = (/** @type {number} */ round) =>
    Array.from({ length: perTurn }, (_, call) => {
      const run = round * perTurn + call;
      return { kind, index: run, run: `${name} ${run}` };
    });
  await assertAgreement(sides, traces(0).slice(0, 2));
  const samples = await interleave(sides, bench.rounds(...rounds), async (side, round) => {
    const { milliseconds } = await side.ask('score', { traces: traces(round) });
    return milliseconds;
  });
  const limits = targets(bench);
  const isBusy = name.endsWith(BUSY);
  return DTYPES.flatMap((dtype) => {
    if (missing(dtype) !== undefined) return unavailable(`${name}, ${dtype}`, missing(dtype));
    const row = (/** @type {string} */ side, /** @type {Target | undefined} */ target) =>
      comparison({
        name: `${name}, ${side}`,
        unit: 'ms',
        ours: samples[side],
        against: isBusy ? `${ORACLE} beside it` : ORACLE,
        theirs: samples[ORACLE],
        target,
      });
    const builtin = limits ? [row(dtype, limits[dtype])] : [];
    return [...builtin, row(onOnnxRuntime(dtype), undefined)];
  });
}

/**
 * @param {Side[]} sides
 * @param {Bench} bench
 */
async function measureBatch(sides, bench) {
  bench.say(BATCH);
  if (missing('q8') !== undefined) return unavailable(BATCH, missing('q8'));
  const both = ['q8', onOnnxRuntime('q8')].flatMap((name) => sides.filter((side) => side.name === name));
  const samples = await interleave(both, bench.rounds(30, 6), async (side, round) => {
    const traces = Array.from({ length: PASSAGES }, (_, index) => ({ kind: 'passage', index, run: round }));
    return [(await side.ask('scoreAll', { traces })).milliseconds];
  });
  return comparison({
    name: BATCH,
    unit: 'ms',
    ours: samples.q8,
    against: 'ONNX Runtime',
    theirs: samples[onOnnxRuntime('q8')],
    target: atMost(bench.wide ? 0.6 : 0.8, 'x'),
  });
}

/** Starts a process for each core that never rests, and returns the function that ends them. */
function keepBusy() {
  const loops = Array.from({ length: os.availableParallelism() }, () =>
    spawn(process.execPath, ['--eval', 'for (;;);'], { stdio: 'ignore' }),
  );
  return () => {
    for (const loop of loops) loop.kill('SIGKILL');
  };
}
