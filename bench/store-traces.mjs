// The rows of `npm run bench:store -- --novelty lexical` and `full`: a store of traces in PostgreSQL. The traces are mixed
// from the steps of real ones, half of them second runs of a task. The query is the other run of a task that is remembered
// (seen), or a run of another task (unseen).

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { deserialize, serialize } from 'node:v8';

import postgres from '../__test__/support/postgres.js';
import { quantile } from './measure.mjs';
import { traceMixer } from './mixed-traces.mjs';

const require = createRequire(import.meta.url);

/**
 * @typedef {import('../index.js').NoveltyEntry} NoveltyEntry
 * @typedef {import('../index.js').ReasoningTrace} ReasoningTrace
 * @typedef {import('../index.js').StoredNeighbour} StoredNeighbour
 * @typedef {{ query: NoveltyEntry, nearest: StoredNeighbour[] }} Asked `nearest`: as a memory of all traces answers
 * @typedef {{ entries: NoveltyEntry[], more: NoveltyEntry[], seen: Asked[], unseen: Asked[] }} Made
 * @typedef {{ size: number, p50: number, p99: number, crowd: number, crowdP50: number, batch: number, megabytes: number,
 *   wordMegabytes: number, seen: Recall, unseen: Recall }} Row
 * @typedef {{ recall: number, candidates: number, mean: number, p99: number, largest: number }} Recall how often the trace is found that a memory of
 * all traces finds, how often it is among the candidates, and by how much novelty differs
 */

const TABLE = 'bench';
const CONNECTIONS = 8;
const QUERIES = 200;
const ROWS_AT_A_TIME = 500;
/** How many traces are counted at a time for the statistics. */
const COUNTED = 5000;
/** Of how many embeddings P is made. */
const EMBEDDINGS = 256;
/** Up to how many traces the digest of each is embedded, which takes 60 ms. Of more, a trace lies near that on which its task is based. */
const MOST_EMBEDDED = 2000;
const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };

/**
 * @param {number} size
 * @param {'lexical' | 'full'} novelty
 * @param {ReasoningTrace[][]} sources real traces, grouped by kind
 * @param {string} [keep] a directory for the generated traces, from which the next run takes them
 * @returns {Promise<Row>}
 */
export async function measureTraces(size, novelty, sources, keep) {
  const { PostgresTraceStore } = await import('../postgres.js');
  const { default: pg } = await import('pg');
  const kept = keep && path.resolve(keep, `${novelty}-${size}`);
  const madeFile = kept && path.join(kept, 'traces.bin');
  const hasTables = kept !== undefined && existsSync(path.join(kept, 'data'));
  /** @type {Made} */
  let made;
  if (madeFile && existsSync(madeFile)) made = deserialize(readFileSync(madeFile));
  else {
    made = await make(size, novelty, sources);
    if (kept && madeFile) {
      mkdirSync(kept, { recursive: true });
      writeFileSync(madeFile, serialize(made));
    }
  }
  const megabytes = Math.min(4096, Math.max(256, Math.ceil(size / 100)));
  const settings = {
    shared_buffers: `${megabytes}MB`,
    maintenance_work_mem: '512MB',
    max_wal_size: '8GB',
  };
  const server = await postgres.startPostgres({
    ...{ durable: true, settings },
    ...(hasTables ? { from: kept } : {}),
  });
  /** @type {import('pg').Pool[]} */
  const pools = [];
  const storeOf = () => {
    const pool = new pg.Pool(server.connection({ max: 1 }));
    pools.push(pool);
    return new PostgresTraceStore({
      ...{ pool, novelty, table: TABLE, maxElements: size * 2, timeoutMs: 600_000 },
      sweepIntervalMs: Number.POSITIVE_INFINITY,
    });
  };
  const endAll = async () => {
    for (const pool of pools.splice(0)) await pool.end();
  };
  try {
    if (!hasTables) {
      console.log(`storing ${size} traces …`);
      await storeOf().migrate();
      await fill(pools[0], made.entries);
      if (kept) {
        await endAll();
        await server.stop();
        await server.save(kept);
        await server.start();
      }
    }
    const store = storeOf();
    // Reads the tables, because the server has nothing in memory after a start.
    await pools[0].query(`SELECT sum(octet_length(words)) FROM ${TABLE}`);
    await pools[0].query(`SELECT sum(octet_length(data)) FROM ${TABLE}_words`);
    const sizes = await pools[0].query(
      `SELECT pg_total_relation_size('${TABLE}') / 1e6 AS traces, pg_total_relation_size('${TABLE}_words') / 1e6 AS words`,
    );
    const [[traces, words]] = sizes.rows.map((row) => Object.values(row).map(Number));
    console.log(`${size} traces, ${novelty} …`);
    return {
      ...{ size, megabytes: traces + words, wordMegabytes: words },
      seen: await compare(store, made.seen),
      unseen: await compare(store, made.unseen),
      ...(await measure(store, storeOf, made.more)),
    };
  } finally {
    await endAll();
    await server.remove();
  }
}

/**
 * Returns the stored traces, and the queries, with the answers of a memory of all traces.
 *
 * @param {number} size
 * @param {'lexical' | 'full'} novelty
 * @param {ReasoningTrace[][]} sources
 * @returns {Promise<Made>}
 */
async function make(size, novelty, sources) {
  const { Embedder, TraceMemory } = await import('../index.js');
  const embedder = novelty === 'full' ? new Embedder() : undefined;
  const { entries, seen, unseen, more } = await makeEntries(size, novelty, sources, async (traces) =>
    embedder?.embedBatch(traces.map((trace) => TraceMemory.digest(trace))),
  );
  console.log(`comparing with all of ${size} traces …`);
  const memory = new TraceMemory({ novelty, maxElements: size });
  await addToMemory(memory, entries);
  return { entries, more, seen: await withNearest(memory, seen), unseen: await withNearest(memory, unseen) };
}

/**
 * @param {import('../index.js').TraceMemory} memory
 * @param {NoveltyEntry[]} queries
 */
async function withNearest(memory, queries) {
  const { LocalStore } = await import('../index.js');
  const exact = new LocalStore(memory);
  const asked = [];
  for (const query of queries) asked.push({ query, nearest: await exact.nearestTraces(query, 20) });
  return asked;
}

/**
 * @param {number} size
 * @param {'lexical' | 'full'} novelty
 * @param {ReasoningTrace[][]} sources
 * @param {(traces: ReasoningTrace[]) => Promise<Float32Array[] | undefined>} embed
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
  const scorer = new Scorer({ memory: store });
  const isEmbedded = size <= MOST_EMBEDDED;
  const all = sources.flat();
  const embeddings = isEmbedded ? undefined : await embed(all);
  const vectors = new Map(all.map((trace, index) => [trace, embeddings?.[index]]));
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
    const [exact] = isEmbedded ? ((await embed([trace])) ?? []) : [];
    const own = exact ?? (vector && near(vector, 0.04));
    return {
      ...captured[0],
      method: novelty,
      model: own === undefined ? null : MODEL,
      vectors: own === undefined ? [] : [own],
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
 * Writes traces into the tables past the store, which would compare each with all before.
 *
 * @param {import('pg').Pool} pool
 * @param {NoveltyEntry[]} entries
 */
async function fill(pool, entries) {
  const native = require('../lib/loader.js').addon;
  const { bytesOf, packed } = require('../lib/store/packed.js');
  const { selectPostings } = require('../lib/store/postgres/traces-sql.js');
  const dimensions = entries[0].vectors[0]?.length ?? 0;
  const { NativeTraceStatistics } = native;
  /** @type {number[]} */
  const draws = [];
  const none = await NativeTraceStatistics.of([], [], 1, dimensions);
  for (let first = 0; first < entries.length; first += COUNTED) {
    const part = entries.slice(first, first + COUNTED).map(packed);
    draws.push(...(await none.seek(part, 0, 0, 0)).found.draws);
  }
  const embedded = [...draws.keys()]
    .sort((one, other) => draws[one] - draws[other])
    .slice(0, EMBEDDINGS)
    .map((index) => bytesOf(entries[index].vectors[0]));
  /** @type {import('../lib/binding.js').NativeTraceStatistics | undefined} */
  let statistics;
  for (let first = 0; first < entries.length; first += COUNTED) {
    const words = entries.slice(first, first + COUNTED).map(({ words }) => /** @type {Uint8Array} */ (words));
    statistics = await NativeTraceStatistics.of(
      ...[words, embedded, first + words.length, dimensions, statistics],
    );
  }
  if (statistics === undefined) return;
  const hex = (/** @type {Uint8Array | undefined} */ bytes) =>
    bytes === undefined ? 'NULL' : `"\\\\x${Buffer.from(bytes).toString('hex')}"`;
  for (let first = 0; first < entries.length; first += ROWS_AT_A_TIME) {
    const part = entries.slice(first, first + ROWS_AT_A_TIME);
    await pool.query(
      `INSERT INTO ${TABLE} (position, added, call, draw, words, embedding, label)
       SELECT $1::bigint + index - 1, now(), gen_random_uuid(), coalesce(draw, random()), words, embedding, 'kp:trace:' || ($1::bigint + index - 1)
       FROM unnest($2::bytea[], $3::bytea[], $4::float8[]) WITH ORDINALITY AS new(words, embedding, draw, index)`,
      [
        first,
        `{${part.map(({ words }) => hex(words)).join()}}`,
        `{${part.map(({ vectors: [vector] }) => hex(vector && bytesOf(vector))).join()}}`,
        `{${draws.slice(first, first + ROWS_AT_A_TIME).join()}}`,
      ],
    );
    const { entries: found, hashes, weights } = (await statistics.seek(part.map(packed), 0, 0, 0)).found;
    await pool.query(
      `INSERT INTO ${TABLE}_words AS held (word, block, data)
       ${selectPostings('$1::bigint', '$2::integer[], $3::bigint[], $4::smallint[]')}
       ON CONFLICT (word, block) DO UPDATE SET data = held.data || substring(excluded.data FROM 5)`,
      [first, ...[found, hashes, weights].map((column) => `{${column.join()}}`)],
    );
  }
  await pool.query(`UPDATE ${TABLE}_meta SET next_position = $1`, [entries.length]);
  await pool.query(`UPDATE ${TABLE}_summary SET position = $1, data = $2, common_bytes = $3`, [
    entries.length,
    Buffer.from(statistics.toBytes()),
    statistics.commonBytes,
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
 * Returns how often the store finds what a memory of all traces finds, and how much novelty differs.
 *
 * @param {import('../postgres.js').PostgresTraceStore} store
 * @param {Asked[]} asked
 * @returns {Promise<Recall>}
 */
async function compare(store, asked) {
  let hits = 0;
  let candidates = 0;
  const differences = [];
  for (const { query, nearest } of asked) {
    const all = await store.nearestTraces(query, 64);
    const first = nearest.filter(({ similarity }) => nearest[0].similarity - similarity < 1e-6);
    const isFirst = (/** @type {StoredNeighbour} */ { label }) => first.some((each) => each.label === label);
    if (isFirst(all[0])) hits++;
    if (all.some(isFirst)) candidates++;
    differences.push(Math.abs(all[0].similarity - nearest[0].similarity));
  }
  return {
    recall: hits / asked.length,
    candidates: candidates / asked.length,
    mean: differences.reduce((sum, difference) => sum + difference, 0) / asked.length,
    p99: quantile(differences, 0.99),
    largest: Math.max(...differences),
  };
}

/**
 * @param {import('../postgres.js').PostgresTraceStore} store
 * @param {() => import('../postgres.js').PostgresTraceStore} storeOf
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
  const recall = (/** @type {Recall} */ { recall, candidates, mean, p99, largest }) =>
    `${recall.toFixed(3)}, among the candidates ${candidates.toFixed(3)}, ΔN ${mean.toFixed(4)}, p99 ${p99.toFixed(4)}, at most ${largest.toFixed(3)}`;
  for (const row of rows) {
    console.log(`
${row.size} traces, ${row.megabytes.toFixed(0)} MB, of which ${row.wordMegabytes.toFixed(0)} MB are postings
  p50, p99 of one: ${row.p50.toFixed(1)} ms, ${row.p99.toFixed(1)} ms
  ${CONNECTIONS} connections at once: ${row.crowd.toFixed(0)} a second, p50 ${row.crowdP50.toFixed(1)} ms
  batches of 64: ${row.batch.toFixed(0)} traces a second
  recall@1 of seen tasks: ${recall(row.seen)}
  recall@1 of unseen tasks: ${recall(row.unseen)}`);
  }
}
