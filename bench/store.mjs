// `npm run bench:store`: the time to compare with and add to a memory in PostgreSQL, and how often it finds what a memory of the same traces
// finds.
//
//   npm run bench:store                        10,000 and 100,000 traces, all methods
//   npm run bench:store -- --quick             1,000 only: about two minutes
//   npm run bench:store -- --sizes 5000 --novelty lexical
//   npm run bench:store -- --json FILE         the results go there instead of bench/results/
//
// The server runs on this machine beside the clients, and its commits wait for the disk.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { readTraces, sharedTraces } from '../__test__/support/paths.js';
import postgres from '../__test__/support/postgres.js';
import { packed } from '../lib/store/postgres.js';
import { root } from '../scripts/platform.mjs';
import { setupPostgres } from '../scripts/postgres.mjs';
import { runScript, setup } from '../scripts/setup.mjs';
import { digestOf } from './digest.mjs';
import { mean, quantile, writeResults } from './measure.mjs';
import { traceMixer } from './mixed-traces.mjs';

/** @import { NoveltyMethod, ReasoningTrace } from '../index.js' */

/** @typedef {{ id: string, vector: Float32Array | null, words: Uint8Array | null, model: { model: string, dtype: string } | null }} Entry */

const TABLE = 'bench';
const CONNECTIONS = 8;
const QUERIES = 200;
const CALLS = 300;
const ROWS_AT_A_TIME = 500;
const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };

await runScript(main);

async function main() {
  const { values } = parseArgs({
    options: {
      json: { type: 'string' },
      novelty: { type: 'string' },
      quick: { type: 'boolean', default: false },
      sizes: { type: 'string' },
    },
  });
  await setup();
  setupPostgres();
  const reason = postgres.unavailable();
  if (reason !== undefined) throw new Error(`there is no PostgreSQL: ${reason}`);
  const sizes = (values.sizes ?? (values.quick ? '1000' : '10000,100000')).split(',').map(Number);
  const all = /** @type {NoveltyMethod[]} */ (['prefix', 'lexical', 'full']);
  const methods = all.filter((method) => values.novelty === undefined || values.novelty === method);
  const rows = [];
  for (const size of sizes) {
    const made = await makeEntries(size);
    for (const novelty of methods) {
      for (const hnsw of novelty === 'prefix' ? [false, true] : [false]) {
        rows.push(await measure(made, novelty, hnsw));
      }
    }
  }
  console.table(rows);
  const machine = `${os.cpus()[0]?.model.trim()}, ${os.availableParallelism()} cores, Node.js ${process.versions.node}`;
  writeResults({ machine, rows }, `store-${process.platform}-${process.arch}`, values.json);
}

/**
 * Makes entries of traces that are mixed from real ones, with embeddings near those of the real ones; queries that are other runs of stored
 * tasks and of others; and more entries.
 *
 * @param {number} size
 */
async function makeEntries(size) {
  const { Scorer } = await import('../index.js');
  const names = ['tau-airline.jsonl', 'hotpot.jsonl'].map((name) =>
    path.join(path.dirname(sharedTraces), name),
  );
  const files = existsSync(sharedTraces)
    ? names.filter(existsSync)
    : [path.join(root, 'examples', 'traces.jsonl')];
  const read = (/** @type {string} */ file) =>
    /** @type {ReasoningTrace[]} */ (readTraces(file)).filter(({ steps }) => steps.length > 0);
  const sources = files.map(read);
  console.log(`mixing ${size} traces …`);
  const vectors = new Map();
  for (const trace of sources.flat()) vectors.set(trace, await digestOf(trace));
  const mixer = traceMixer(sources, 5);
  /** @type {Entry[]} */
  const captured = [];
  const capturing = {
    method: 'lexical',
    compareAndAdd: async (/** @type {Entry[]} */ entries) => {
      captured.push(...entries);
      return entries.map(() => null);
    },
    compare: async () => null,
    size: async () => 0,
  };
  const scorer = new Scorer({ memory: /** @type {any} */ (capturing) });
  const newTask = () => {
    const task = mixer.task();
    const centre = moved(/** @type {Float32Array} */ (vectors.get(task.base)), 0.06, mixer.random);
    return { ...task, vector: () => moved(centre, 0.04, mixer.random) };
  };
  /** @type {Float32Array[]} */
  const own = [];
  /** @param {Array<[ReasoningTrace, Float32Array]>} traces */
  const add = async (traces) => {
    own.push(...traces.map(([, vector]) => vector));
    await scorer.scoreAll(traces.map(([trace]) => trace));
  };
  /** @type {Array<ReturnType<typeof newTask>>} */
  const tasks = [];
  for (let count = 0; count < size; ) {
    const task = newTask();
    const runs = count % 3 === 0 && count + 1 < size ? [task.first(), task.again()] : [task.first()];
    await add(runs.map((run) => [run, task.vector()]));
    count += runs.length;
    if (tasks.length < 2000) tasks.push(task);
  }
  const asked = (/** @type {number} */ index) => (index % 2 === 0 ? tasks[index % tasks.length] : newTask());
  for (let index = 0; index < 4 * CALLS + QUERIES; index++) {
    const task = asked(index);
    await add([[task.again(), task.vector()]]);
  }
  const entries = captured.map((entry, index) => ({ ...entry, vector: own[index], model: MODEL }));
  return { entries: entries.slice(0, size), more: entries.slice(size) };
}

/**
 * Moves a vector by noise, and gives it length 1.
 *
 * @param {Float32Array} vector
 * @param {number} noise
 * @param {() => number} random
 */
function moved(vector, noise, random) {
  const other = vector.map((component) => component + (random() - 0.5) * noise);
  const length = Math.hypot(...other);
  return other.map((component) => component / length);
}

/**
 * @param {{ entries: Entry[], more: Entry[] }} made
 * @param {NoveltyMethod} novelty
 * @param {boolean} hnsw
 */
async function measure(made, novelty, hnsw) {
  const { PostgresStore } = await import('../postgres.js');
  const { default: pg } = await import('pg');
  const size = made.entries.length;
  const fitting = (/** @type {Entry} */ entry) => ({
    ...entry,
    ...(novelty === 'prefix' ? { words: null } : {}),
    ...(novelty === 'lexical' ? { vector: null, model: null } : {}),
  });
  const [entries, more] = [made.entries.map(fitting), made.more.map(fitting)];
  const megabytes = `${Math.min(2048, Math.max(256, Math.ceil(size / 80)))}MB`;
  const settings = { shared_buffers: megabytes, maintenance_work_mem: megabytes, max_wal_size: '8GB' };
  const server = await postgres.startPostgres({ durable: true, settings });
  const pools = Array.from({ length: CONNECTIONS }, () => new pg.Pool(server.connection({ max: 1 })));
  try {
    const stores = pools.map(
      (pool) => new PostgresStore({ pool, table: TABLE, method: novelty, hnsw, maxElements: size * 2 }),
    );
    const [store] = /** @type {any[]} */ (stores);
    console.log(`${novelty}${hnsw ? ', HNSW' : ''}: storing ${size} traces …`);
    await store.size();
    await fill(pools[0], entries, novelty);
    const recall = await compare(store, entries, more.splice(0, QUERIES), novelty);
    for (const each of /** @type {any[]} */ (stores)) await each.compareAndAdd([more.pop()]);
    const times = [];
    for (let call = 0; call < CALLS; call++) times.push(await timed(() => store.compareAndAdd([more.pop()])));
    const crowd = await timed(() =>
      Promise.all(
        /** @type {any[]} */ (stores).map(async (each) => {
          for (let call = 0; call < CALLS / CONNECTIONS; call++) await each.compareAndAdd([more.pop()]);
        }),
      ),
    );
    const batches = await timed(async () => {
      for (let batch = 0; batch < 4; batch++) await store.compareAndAdd(more.splice(0, 64));
    });
    const { rows } = await pools[0].query(
      `SELECT sum(pg_total_relation_size(oid)) / 1e6 AS size FROM pg_class WHERE relname = ANY($1)`,
      [[TABLE, `${TABLE}_words`]],
    );
    return {
      ...{ traces: size, novelty, hnsw, ...recall },
      ...{ 'p50 ms': rounded(quantile(times, 0.5)), 'p99 ms': rounded(quantile(times, 0.99)) },
      [`${CONNECTIONS}×: 1/s`]: Math.round((1000 * CALLS) / crowd),
      'batches: 1/s': Math.round((1000 * 4 * 64) / batches),
      MB: Math.round(Number(rows[0].size)),
    };
  } finally {
    for (const pool of pools) await pool.end();
    await server.remove();
  }
}

/**
 * Writes traces into the tables past the store, which would compare each with all before.
 *
 * @param {import('pg').Pool} pool
 * @param {Entry[]} entries
 * @param {NoveltyMethod} novelty
 */
async function fill(pool, entries, novelty) {
  const require = createRequire(import.meta.url);
  const { NativeTraceSample } = require('../lib/loader.js').addon;
  const isPrefix = novelty === 'prefix';
  const data = entries.map((entry) => (isPrefix ? `[${entry.vector}]` : Buffer.from(packed(entry))));
  const sample = isPrefix
    ? undefined
    : await NativeTraceSample.of(data.slice(0, 4096), novelty === 'full' ? 384 : 0);
  const column = { prefix: 'embedding', lexical: 'words', full: 'words_and_embedding' }[novelty];
  for (let first = 0; first < entries.length; first += ROWS_AT_A_TIME) {
    const part = data.slice(first, first + ROWS_AT_A_TIME);
    const labels = entries.slice(first, first + ROWS_AT_A_TIME).map(({ id }) => id);
    await pool.query(
      `INSERT INTO ${TABLE} (position, call, entry, added, label, model, ${column})
       SELECT $1::bigint + entry - 1, gen_random_uuid(), 1, now(), label, $4, data::${isPrefix ? 'vector' : 'bytea'}
       FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS given(label, data, entry)`,
      [
        ...[first, labels, part.map((each) => (isPrefix ? each : `\\x${each.toString('hex')}`))],
        novelty === 'lexical' ? null : `${MODEL.model} (${MODEL.dtype})`,
      ],
    );
    if (sample === undefined) continue;
    const words = sample.heaviest(part, entries.length, 48, Number.POSITIVE_INFINITY);
    await pool.query(
      `INSERT INTO ${TABLE}_words (word, trace) SELECT word, $1::bigint + entry FROM unnest($2::bigint[], $3::int[]) AS given(word, entry)`,
      [first, `{${words.hashes.join()}}`, `{${words.entries.join()}}`],
    );
  }
  await pool.query('VACUUM ANALYZE');
}

/**
 * Returns how often the store finds what a memory of the same traces finds, and by how much novelty differs.
 *
 * @param {any} store
 * @param {Entry[]} entries
 * @param {Entry[]} queries
 * @param {NoveltyMethod} novelty
 */
async function compare(store, entries, queries, novelty) {
  const require = createRequire(import.meta.url);
  const { NativeTraceSample } = require('../lib/loader.js').addon;
  const known = novelty === 'prefix' ? [] : entries.map(packed);
  const sample = await NativeTraceSample.of(known, novelty === 'full' ? 384 : 0);
  const all = [Uint32Array.from(known.keys())];
  /** @param {Entry} query */
  const nearest = async (query) => {
    if (novelty !== 'prefix') {
      const [{ index, similarity }] = await sample.compare(known, [packed(query)], all, known.length);
      return { id: entries[index].id, similarity };
    }
    const similarities = entries.map(({ vector }) => product(vector, query.vector));
    const similarity = Math.max(...similarities);
    return { id: entries[similarities.indexOf(similarity)].id, similarity };
  };
  let same = 0;
  const differences = [];
  for (const query of queries) {
    const [right, found] = /** @type {import('../lib/store/calls.js').Neighbour[]} */ ([
      await nearest(query),
      await store.compare(query),
    ]);
    const difference = Math.abs(right.similarity - found.similarity);
    if (right.id === found.id || difference < 1e-6) same++;
    differences.push(difference);
  }
  return {
    'nearest the same': rounded(same / queries.length, 3),
    'mean ΔN': rounded(mean(differences), 4),
    'max ΔN': rounded(Math.max(...differences), 3),
  };
}

/**
 * @param {Float32Array | null} one of length 1
 * @param {Float32Array | null} other
 */
function product(one, other) {
  let sum = 0;
  for (const [index, component] of (one ?? new Float32Array()).entries())
    sum += component * (other?.[index] ?? 0);
  return sum;
}

/**
 * @param {number} value
 * @param {number} [digits]
 */
function rounded(value, digits = 1) {
  return Number(value.toFixed(digits));
}

/**
 * @param {() => Promise<unknown>} work
 * @returns {Promise<number>} milliseconds
 */
async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
