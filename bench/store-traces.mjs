// The rows of `npm run bench:store -- --novelty lexical` and `full`: a store of traces in PostgreSQL. The traces are mixed of the steps of real
// ones, half of them second runs of a task. What is asked is the other run of a task that is remembered (seen), or one of another task (unseen).

import { createRequire } from 'node:module';

import postgres from '../__test__/support/postgres.js';
import { quantile } from './measure.mjs';
import { traceMixer } from './mixed-traces.mjs';

const require = createRequire(import.meta.url);

/**
 * @typedef {import('../index.js').NoveltyEntry} NoveltyEntry
 * @typedef {import('../index.js').ReasoningTrace} ReasoningTrace
 * @typedef {{ size: number, p50: number, p99: number, crowd: number, crowdP50: number, batch: number, megabytes: number,
 *   seen: Recall, unseen: Recall }} Row
 * @typedef {{ recall: number, mean: number, largest: number }} Recall how often the trace is found that a memory of all traces finds, and by how much
 * novelty differs
 */

const TABLE = 'bench';
const CONNECTIONS = 8;
const QUERIES = 200;
const ROWS_AT_A_TIME = 500;
/** Of how many traces the statistics are made. */
const SAMPLE = 4096;

/**
 * @param {number} size
 * @param {'lexical' | 'full'} novelty
 * @param {ReasoningTrace[][]} sources real traces, those of one kind together
 * @returns {Promise<Row>}
 */
export async function measureTraces(size, novelty, sources) {
  const { Embedder, TraceMemory } = await import('../index.js');
  const { PgVectorStore } = await import('../pgvector.js');
  const { default: pg } = await import('pg');
  const embedder = novelty === 'full' ? new Embedder() : undefined;
  const made = await makeEntries(size, novelty, sources, async (trace) =>
    embedder?.embed(TraceMemory.digest(trace)),
  );
  const megabytes = Math.min(4096, Math.max(256, Math.ceil(size / 100)));
  const server = await postgres.startPostgres({
    durable: true,
    settings: { shared_buffers: `${megabytes}MB`, maintenance_work_mem: '512MB', max_wal_size: '8GB' },
  });
  /** @type {import('pg').Pool[]} */
  const pools = [];
  const storeOf = () => {
    const pool = new pg.Pool(server.connection({ max: 1 }));
    pools.push(pool);
    return new PgVectorStore({
      ...{ pool, novelty, table: TABLE, maxElements: size * 2, timeoutMs: 600_000 },
      sweepIntervalMs: Number.POSITIVE_INFINITY,
    });
  };
  try {
    const store = storeOf();
    await store.migrate();
    console.log(`storing ${size} traces …`);
    await fill(pools[0], made.entries);
    const { rows } = await pools[0].query(
      `SELECT (pg_total_relation_size('${TABLE}') + pg_total_relation_size('${TABLE}_words')) / 1e6 AS megabytes`,
    );
    console.log(`${size} traces, ${novelty} …`);
    const memory = new TraceMemory({ novelty, maxElements: size });
    await addToMemory(memory, made.entries);
    return {
      ...{ size, megabytes: Number(rows[0].megabytes) },
      seen: await compare(store, memory, made.seen),
      unseen: await compare(store, memory, made.unseen),
      ...(await measure(store, storeOf, made.more)),
    };
  } finally {
    for (const pool of pools) await pool.end();
    await server.remove();
  }
}

/**
 * What a store is given for traces.
 *
 * @param {number} size
 * @param {'lexical' | 'full'} novelty
 * @param {ReasoningTrace[][]} sources
 * @param {(trace: ReasoningTrace) => Promise<Float32Array | undefined>} embed
 */
async function makeEntries(size, novelty, sources, embed) {
  const { LocalStore, Scorer, TraceMemory } = await import('../index.js');
  console.log(`mixing ${size} traces …`);
  /** @type {NoveltyEntry[]} */
  let captured = [];
  const store = new LocalStore(new TraceMemory({ maxElements: 0 }));
  store.compareAndAddBatch = async (entries) => {
    captured.push(...entries);
    return entries.map(() => [null]);
  };
  const scorer = new Scorer({ novelty: 'lexical', store });
  // Embedding every digest would take an hour, so a trace lies near that on which its task is based.
  const vectors = new Map();
  for (const trace of novelty === 'full' ? sources.flat() : []) vectors.set(trace, await embed(trace));
  const mixer = traceMixer(sources, 5);
  const near = (/** @type {Float32Array} */ vector, /** @type {number} */ noise) => {
    const moved = vector.map((component) => component + (mixer.random() - 0.5) * noise);
    const length = Math.hypot(...moved);
    return moved.map((component) => component / length);
  };
  /**
   * @param {ReasoningTrace} trace
   * @param {Float32Array | undefined} vector
   * @returns {Promise<NoveltyEntry>}
   */
  const entryOf = async (trace, vector) => {
    captured = [];
    await scorer.evaluateValue(trace);
    const model = vector === undefined ? null : { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };
    return {
      ...captured[0],
      method: novelty,
      model,
      vectors: vector === undefined ? [] : [near(vector, 0.04)],
    };
  };
  const newTask = () => {
    const task = mixer.task();
    const vector = vectors.get(task.base);
    return { ...task, vector: vector && near(vector, 0.06) };
  };
  const entries = [];
  const tasks = [];
  while (entries.length < size) {
    const task = newTask();
    entries.push(await entryOf(task.first(), task.vector));
    if (mixer.random() < 0.5 && entries.length < size) entries.push(await entryOf(task.again(), task.vector));
    if (mixer.random() < (3 * QUERIES) / size && tasks.length < QUERIES) tasks.push(task);
  }
  const seen = [];
  for (const task of tasks) seen.push(await entryOf(task.again(), task.vector));
  const unseen = [];
  const more = [];
  for (let query = 0; query < QUERIES; query++) {
    const task = newTask();
    unseen.push(await entryOf(task.first(), task.vector));
  }
  for (let query = 0; query < 1200; query++) {
    const task = query % 2 === 0 ? newTask() : tasks[Math.floor(mixer.random() * tasks.length)];
    more.push(await entryOf(task.again(), task.vector));
  }
  return { entries, seen, unseen, more };
}

/**
 * Puts traces into the tables past the store, which would compare each with those before.
 *
 * @param {import('pg').Pool} pool
 * @param {NoveltyEntry[]} entries
 */
async function fill(pool, entries) {
  const native = require('../lib/loader.js').addon;
  const { bytesOf, packed } = require('../lib/store/packed.js');
  const dimensions = entries[0].vectors[0]?.length ?? 0;
  const step = Math.max(1, entries.length / SAMPLE);
  const sample = Array.from({ length: Math.min(SAMPLE, entries.length) }, (_, index) =>
    packed(entries[Math.floor(index * step)]),
  );
  const statistics = await native.NativeTraceStatistics.of(sample, [], entries.length, dimensions);
  const hex = (/** @type {Uint8Array | undefined} */ bytes) =>
    bytes === undefined ? 'NULL' : `"\\\\x${Buffer.from(bytes).toString('hex')}"`;
  for (let first = 0; first < entries.length; first += ROWS_AT_A_TIME) {
    const part = entries.slice(first, first + ROWS_AT_A_TIME);
    await pool.query(
      `INSERT INTO ${TABLE} (position, added, call, draw, words, embedding, label)
       SELECT $1::bigint + index - 1, now(), gen_random_uuid(), random(), words, embedding, 'kp:trace:' || ($1::bigint + index - 1)
       FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS new(words, embedding, index)`,
      [
        first,
        `{${part.map(({ words }) => hex(words)).join()}}`,
        `{${part.map(({ vectors: [vector] }) => hex(vector && bytesOf(vector))).join()}}`,
      ],
    );
    const rows = part.flatMap((entry, index) => {
      const { hashes, weights } = statistics.foundBy(packed(entry));
      return Array.from(hashes, (hash, nth) => [first + index, hash, weights[nth]]);
    });
    await pool.query(
      `INSERT INTO ${TABLE}_words (position, word, weight) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::real[])`,
      [0, 1, 2].map((column) => `{${rows.map((row) => row[column]).join()}}`),
    );
  }
  await pool.query(`UPDATE ${TABLE}_meta SET next_position = $1`, [entries.length]);
  await pool.query(`UPDATE ${TABLE}_summary SET position = $1, data = $2`, [
    entries.length,
    Buffer.from(statistics.toBytes()),
  ]);
  await pool.query('VACUUM ANALYZE');
}

/**
 * @param {import('../index.js').TraceMemory} memory
 * @param {NoveltyEntry[]} entries
 */
async function addToMemory(memory, entries) {
  const { addEntries } = require('../lib/store/local.js');
  const labelled = entries.map((entry, index) => ({ ...entry, id: `kp:trace:${index}` }));
  for (let first = 0; first < labelled.length; first += 1000) {
    await addEntries(memory, labelled.slice(first, first + 1000));
  }
}

/**
 * How often the store finds what a memory of all traces finds, and how much novelty differs.
 *
 * @param {import('../pgvector.js').PgVectorStore} store
 * @param {import('../index.js').TraceMemory} memory
 * @param {NoveltyEntry[]} queries
 * @returns {Promise<Recall>}
 */
async function compare(store, memory, queries) {
  const { LocalStore } = await import('../index.js');
  const exact = new LocalStore(memory);
  let hits = 0;
  const differences = [];
  for (const query of queries) {
    const [found] = await store.nearestTraces(query, 1);
    const right = await exact.nearestTraces(query, 10);
    const same = right.find(({ label }) => label === found.label);
    if (same !== undefined && right[0].similarity - same.similarity < 1e-6) hits++;
    differences.push(Math.abs(found.similarity - right[0].similarity));
  }
  return {
    recall: hits / queries.length,
    mean: differences.reduce((sum, difference) => sum + difference, 0) / queries.length,
    largest: Math.max(...differences),
  };
}

/**
 * @param {import('../pgvector.js').PgVectorStore} store
 * @param {() => import('../pgvector.js').PgVectorStore} storeOf
 * @param {NoveltyEntry[]} entries
 */
async function measure(store, storeOf, entries) {
  let next = 0;
  const take = () => entries[next++ % entries.length];
  for (let call = 0; call < 5; call++) await store.compareAndAdd(take());
  /** @type {number[]} */
  const times = [];
  for (let call = 0; call < 200; call++) times.push(await timed(() => store.compareAndAdd(take())));
  const stores = Array.from({ length: CONNECTIONS }, storeOf);
  // The first call of a store reads the statistics.
  for (const each of stores) await each.nearestTraces(take(), 1);
  const queue = Array.from({ length: 500 }, take);
  /** @type {number[]} */
  const crowdTimes = [];
  const crowd = await timed(() =>
    Promise.all(
      stores.map(async (each) => {
        for (let entry = queue.pop(); entry; entry = queue.pop()) {
          const own = entry;
          crowdTimes.push(await timed(() => each.compareAndAdd(own)));
        }
      }),
    ),
  );
  const batches = Array.from({ length: 4 }, () => Array.from({ length: 64 }, take));
  const batch = await timed(async () => {
    for (const each of batches) await store.compareAndAddBatch(each);
  });
  return {
    ...{ p50: quantile(times, 0.5), p99: quantile(times, 0.99) },
    ...{ crowd: (500 / crowd) * 1000, crowdP50: quantile(crowdTimes, 0.5), batch: (256 / batch) * 1000 },
  };
}

/** @param {() => Promise<unknown>} work */
async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** @param {Row[]} rows */
export function printTraces(rows) {
  const recall = (/** @type {Recall} */ { recall, mean, largest }) =>
    `${recall.toFixed(3)}, ΔN ${mean.toFixed(4)}, at most ${largest.toFixed(3)}`;
  for (const row of rows) {
    console.log(`
${row.size} traces, ${row.megabytes.toFixed(0)} MB
  p50, p99 of one: ${row.p50.toFixed(1)} ms, ${row.p99.toFixed(1)} ms
  ${CONNECTIONS} connections at once: ${row.crowd.toFixed(0)} a second, p50 ${row.crowdP50.toFixed(1)} ms
  batches of 64: ${row.batch.toFixed(0)} traces a second
  recall@1 of seen tasks: ${recall(row.seen)}
  recall@1 of unseen tasks: ${recall(row.unseen)}`);
  }
}
