// `npm run bench:store`: scores with a memory in PostgreSQL: how often it finds the trace that a memory of this process does, and its time.
//
//   npm run bench:store                        2,000 traces, all methods
//   npm run bench:store -- --sizes 10000,100000 --novelty lexical
//   npm run bench:store -- --json FILE         the results go there instead of bench/results/
//
// The server runs on this machine beside the clients, and its commits wait for the disk.

import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { readTraces, root, sharedTraces } from '../__test__/support/paths.js';
import postgres from '../__test__/support/postgres.js';
import { setupPostgres } from '../scripts/postgres.mjs';
import { runScript, setup, WITHOUT } from '../scripts/setup.mjs';
import { mean, quantile, timed, writeResults } from './measure.mjs';
import { traceMixer } from './mixed-traces.mjs';

/** @import { NoveltyMethod, ReasoningTrace } from '../index.js' */

const TABLE = 'bench';
const QUERIES = 200;
const CALLS = 300;

await runScript(async () => {
  const { values } = parseArgs({
    options: {
      json: { type: 'string' },
      novelty: { type: 'string' },
      sizes: { type: 'string', default: '2000' },
    },
  });
  await setup(WITHOUT.benchmarks);
  setupPostgres();
  const reason = postgres.unavailable();
  if (reason !== undefined) throw new Error(`there is no PostgreSQL: ${reason}`);
  const all = /** @type {NoveltyMethod[]} */ (['prefix', 'lexical', 'full']);
  const methods = all.filter((method) => values.novelty === undefined || values.novelty === method);
  const rows = [];
  for (const size of values.sizes.split(',').map(Number)) {
    const traces = mixedTraces(size);
    for (const method of methods) {
      for (const hnsw of method === 'prefix' ? [false, true] : [false]) {
        console.log(`${size} traces, ${method}${hnsw ? ', HNSW' : ''} …`);
        rows.push(await measure(traces, method, hnsw));
      }
    }
  }
  console.table(rows);
  const machine = `${os.cpus()[0]?.model.trim()}, ${os.availableParallelism()} cores, Node.js ${process.versions.node}`;
  writeResults({ machine, rows }, `store-${process.platform}-${process.arch}`, values.json);
});

/**
 * Returns traces that are mixed from real ones to store; and others, half of which are other runs of stored tasks.
 *
 * @param {number} size
 */
function mixedTraces(size) {
  const names = ['tau-airline.jsonl', 'hotpot.jsonl'].map((name) =>
    path.join(path.dirname(sharedTraces), name),
  );
  const files = existsSync(sharedTraces)
    ? names.filter(existsSync)
    : [path.join(root, 'examples', 'traces.jsonl')];
  const read = (/** @type {string} */ file) => readTraces(file).filter(({ steps }) => steps.length > 0);
  const mixed = traceMixer(files.map(read), 5);
  /** @type {Array<ReturnType<typeof mixed>>} */
  const tasks = [];
  const stored = [];
  while (stored.length < size) {
    const task = mixed();
    tasks.push(task);
    stored.push(task.first());
    if (stored.length % 3 === 1) stored.push(task.again());
  }
  const others = Array.from({ length: QUERIES + CALLS }, (_, index) =>
    (index % 2 === 0 ? tasks[index % tasks.length] : mixed()).again(),
  );
  return { stored: stored.slice(0, size), others };
}

/**
 * @param {ReturnType<typeof mixedTraces>} traces
 * @param {NoveltyMethod} method
 * @param {boolean} hnsw
 */
async function measure({ stored, others }, method, hnsw) {
  const { Scorer, TraceMemory } = await import('../index.js');
  const { PostgresStore } = await import('../postgres.js');
  const { default: pg } = await import('pg');
  const maxElements = stored.length * 2;
  const local = new Scorer({ memory: new TraceMemory({ method, maxElements }) });
  const server = await postgres.startPostgres({ durable: true });
  const pool = new pg.Pool(server.connection({ max: 1 }));
  try {
    const shared = new Scorer({
      memory: new PostgresStore({ pool, table: TABLE, method, hnsw, maxElements }),
    });
    await local.scoreAll(stored);
    const [inBatches] = await timed(() => shared.scoreAll(stored));
    const differences = [];
    let same = 0;
    for (const trace of others.slice(0, QUERIES)) {
      const [right, found] = [
        await local.score(trace, { remember: false }),
        await shared.score(trace, { remember: false }),
      ];
      const difference = Math.abs((right.nearest?.similarity ?? 0) - (found.nearest?.similarity ?? 0));
      if (right.nearest?.id === found.nearest?.id || difference < 1e-6) same++;
      differences.push(difference);
    }
    const times = [];
    for (const trace of others.slice(QUERIES)) times.push((await timed(() => shared.score(trace)))[0]);
    return {
      ...{ traces: stored.length, method, hnsw, 'nearest the same': rounded(same / QUERIES, 3) },
      ...{ 'mean ΔN': rounded(mean(differences), 4), 'max ΔN': rounded(Math.max(...differences), 3) },
      ...{ 'p50 ms': rounded(quantile(times, 0.5)), 'p99 ms': rounded(quantile(times, 0.99)) },
      'batches: 1/s': Math.round((1000 * stored.length) / inBatches),
    };
  } finally {
    await pool.end();
    await server.remove();
  }
}

/**
 * @param {number} value
 * @param {number} [digits]
 */
function rounded(value, digits = 1) {
  return Number(value.toFixed(digits));
}
