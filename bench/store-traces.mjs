// The rows of `npm run bench:store -- --novelty lexical` and `full`: a store of traces in PostgreSQL. The traces are mixed
// from the steps of real ones, half of them second runs of a task. The query is the other run of a task that is remembered
// (seen), or a run of another task (unseen).

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { deserialize, serialize } from 'node:v8';

import { mean, quantile } from './measure.mjs';
import { traceMixer } from './mixed-traces.mjs';
import { MODEL, measureStore, printTimes, rounded, TABLE, withServer } from './stores.mjs';

const require = createRequire(import.meta.url);

/**
 * @typedef {import('../index.js').NoveltyEntry} NoveltyEntry
 * @typedef {import('../index.js').ReasoningTrace} ReasoningTrace
 * @typedef {import('../index.js').StoredNeighbour} StoredNeighbour
 * @typedef {{ query: NoveltyEntry, nearest: StoredNeighbour[] }} Asked `nearest`: as a memory of all traces answers
 * @typedef {{ entries: NoveltyEntry[], more: NoveltyEntry[], seen: Asked[], unseen: Asked[] }} Made
 * @typedef {{ recall: number, candidates: number, mean: number, p99: number, largest: number }} Recall how often the trace is found that a memory of
 * all traces finds, how often it is among the candidates, and by how much novelty differs
 */

const QUERIES = 200;
const ROWS_AT_A_TIME = 500;
/** How many traces are counted at a time for the statistics. */
const COUNTED = 5000;
/** Of how many embeddings P is made. */
const EMBEDDINGS = 256;
/** Up to how many traces the digest of each is embedded, which takes 60 ms. Of more, a trace lies near that on which its task is based. */
const MOST_EMBEDDED = 2000;

/**
 * @param {number} size
 * @param {'lexical' | 'full'} novelty
 * @param {ReasoningTrace[][]} sources real traces, grouped by kind
 * @param {string} [keep] a directory for the generated traces, from which the next run takes them
 */
export async function measureTraces(size, novelty, sources, keep) {
  const { PostgresTraceStore } = await import('../postgres.js');
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
  const options = { megabytes: size / 100, from: hasTables ? kept : undefined };
  return withServer(options, async ({ postgres, optionsFor, endAll }) => {
    const storeOf = () => new PostgresTraceStore({ ...optionsFor(size), novelty });
    if (!hasTables) {
      console.log(`storing ${size} traces …`);
      await storeOf().migrate();
      await fill(optionsFor(size).pool, made.entries);
      if (kept) {
        await endAll();
        await postgres.stop();
        await postgres.save(kept);
        await postgres.start();
      }
    }
    const { pool } = optionsFor(size);
    // Reads the tables, because the server has nothing in memory after a start.
    await pool.query(`SELECT sum(octet_length(words)) FROM ${TABLE}`);
    await pool.query(`SELECT sum(octet_length(data)) FROM ${TABLE}_words`);
    const sizes = await pool.query(
      `SELECT pg_total_relation_size('${TABLE}') / 1e6 AS traces, pg_total_relation_size('${TABLE}_words') / 1e6 AS words`,
    );
    const [[traces, words]] = sizes.rows.map((row) => Object.values(row).map(Number));
    console.log(`${size} traces, ${novelty} …`);
    const store = storeOf();
    let next = 0;
    return {
      ...{ size, megabytes: traces + words, wordMegabytes: words },
      seen: await compare(store, made.seen),
      unseen: await compare(store, made.unseen),
      ...(await measureStore(storeOf, () => made.more[next++ % made.more.length], 300)),
    };
  });
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
  const { TraceMemory, embed } = await import('../index.js');
  const { entries, seen, unseen, more } = await makeEntries(size, novelty, sources, async (traces) =>
    novelty === 'full' ? embed(traces.map((trace) => TraceMemory.digest(trace))) : undefined,
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

/** @param {Array<Awaited<ReturnType<typeof measureTraces>>>} rows */
export function printTraces(rows) {
  printTimes(rows);
  console.table(
    rows.flatMap(({ size, megabytes, wordMegabytes, seen, unseen }) =>
      Object.entries({ seen, unseen }).map(([tasks, { recall, candidates, mean, p99, largest }]) => ({
        ...{ traces: size, MB: rounded(megabytes, 0), 'postings MB': rounded(wordMegabytes, 0), tasks },
        ...{ 'recall@1': rounded(recall, 3), 'among candidates': rounded(candidates, 3) },
        ...{ 'mean ΔN': rounded(mean, 4), 'p99 ΔN': rounded(p99, 4), 'max ΔN': rounded(largest, 3) },
      })),
    ),
  );
}
