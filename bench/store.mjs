// `npm run bench:store`: the time to compare with and add to a memory in PostgreSQL, exact and by an HNSW index, and the
// recall of the index.
//
//   npm run bench:store                    10,000, 100,000 and 1,000,000 vectors: most of an hour, 6 GB of disk
//   npm run bench:store -- --quick         10,000 only: about two minutes
//   npm run bench:store -- --sizes 50000   other sizes, separated by commas
//   npm run bench:store -- --novelty full   a store of traces, by their words (lexical) or their words and digests; see store-traces.mjs
//   npm run bench:store -- --novelty full --keep DIR   keeps the traces and the filled tables in DIR, and takes them from there the next time
//   npm run bench:store -- --json FILE     the results go there instead of bench/results/
//
// The server runs on this machine beside the clients, with the settings of a newly made one but for shared_buffers and
// maintenance_work_mem, and its commits wait for the disk.

import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { readTraces, sharedTraces } from '../__test__/support/paths.js';
import postgres from '../__test__/support/postgres.js';
import { root } from '../scripts/platform.mjs';
import { setupPostgres } from '../scripts/postgres.mjs';
import { runScript, setup } from '../scripts/setup.mjs';
import { mean, writeResults } from './measure.mjs';
import { generator } from './random.mjs';
import { measureTraces, printTraces } from './store-traces.mjs';
import { MODEL, measureStore, printTimes, rounded, TABLE, timed, withServer } from './stores.mjs';

/** @typedef {import('../postgres.js').PostgresVectorStore} PostgresVectorStore */

/** @typedef {'exact' | 'hnsw'} Index */

/**
 * @typedef {{ size: number, index: Index, buildSeconds: number | undefined } & Awaited<ReturnType<typeof measureStore>>
 *   & Partial<Awaited<ReturnType<typeof compare>>>} Row
 */

/** The weight of novelty in a score of the profile `default`. */
const WEIGHT = 0.35;
const ROWS_AT_A_TIME = 1000;

await runScript(main);

async function main() {
  const { values } = parseArgs({
    options: {
      json: { type: 'string' },
      keep: { type: 'string' },
      novelty: { type: 'string', default: 'prefix' },
      quick: { type: 'boolean', default: false },
      sizes: { type: 'string' },
    },
  });
  await setup();
  setupPostgres();
  const reason = postgres.unavailable();
  if (reason !== undefined) throw new Error(`there is no PostgreSQL: ${reason}`);
  const { novelty } = values;
  const isOfTraces = novelty === 'lexical' || novelty === 'full';
  if (!isOfTraces && novelty !== 'prefix') throw new Error('--novelty must be prefix, lexical or full');
  const all = isOfTraces ? '10000,100000' : '10000,100000,1000000';
  const sizes = (values.sizes ?? (values.quick ? '10000' : all)).split(',').map(Number);

  const makeVector = isOfTraces ? undefined : await vectorMaker();
  const machine = `${os.cpus()[0]?.model.trim()}, ${os.availableParallelism()} cores, ${Math.round(os.totalmem() / 2 ** 30)} GB, Node.js ${process.versions.node}`;
  console.log(`\n${machine}\n`);
  /** @type {unknown[]} */
  let rows;
  if (makeVector === undefined) {
    const sources = realTraces();
    const found = [];
    for (const size of sizes) {
      const method = /** @type {'lexical' | 'full'} */ (novelty);
      found.push(await measureTraces(size, method, sources, values.keep));
    }
    printTraces(found);
    rows = found;
  } else {
    /** @type {Row[]} */
    const found = [];
    for (const size of sizes) found.push(...(await measureSize(size, makeVector)));
    print(found);
    rows = found;
  }
  const name = isOfTraces ? `store-${novelty}` : 'store';
  writeResults({ machine, rows }, `${name}-${process.platform}-${process.arch}`, values.json);
}

/** Real traces, grouped by source; the examples if there are no others. */
function realTraces() {
  const files = existsSync(sharedTraces)
    ? ['tau-airline.jsonl', 'hotpot.jsonl'].map((name) => path.join(path.dirname(sharedTraces), name))
    : [path.join(root, 'examples', 'traces.jsonl')];
  return files.filter((file) => existsSync(file)).map(readTraces);
}

/**
 * Vectors distributed as those of traces: near the embedding of one of some hundred real texts, many to a topic, with a
 * similarity to it of about 0.9.
 */
async function vectorMaker() {
  const { embed } = await import('../index.js');
  const files = [
    path.join(root, 'examples', 'traces.jsonl'),
    ...(existsSync(sharedTraces) ? [sharedTraces] : []),
  ];
  /** @type {Array<import('../index.js').ReasoningTrace>} */
  const traces = files.flatMap(readTraces);
  const texts = traces.flatMap(({ task, steps }) => [
    task.objective,
    ...steps.map(({ content = '' }) => content),
  ]);
  const distinct = [...new Set(texts.filter((text) => text.length > 20))].slice(0, 600);
  console.log(`embedding ${distinct.length} texts …`);
  const centres = await embed(distinct.map((text) => text.slice(0, 400)));
  const random = generator(7);
  return () => {
    const centre = centres[Math.floor(random() * centres.length)];
    // Uniform noise of this width has a length of about a half in 384 dimensions.
    return unit(centre.map((component) => component + (random() - 0.5) * 0.088));
  };
}

/** @param {Float32Array} vector */
function unit(vector) {
  const length = Math.hypot(...vector);
  return vector.map((component) => component / length);
}

/**
 * @param {number} size
 * @param {() => Float32Array} makeVector
 * @returns {Promise<Row[]>}
 */
async function measureSize(size, makeVector) {
  const { PostgresVectorStore } = await import('../postgres.js');
  const next = () => ({ id: 'kp:trace:bench', vectors: [makeVector()], model: MODEL });
  return withServer({ megabytes: size / 400 }, async ({ optionsFor }) => {
    const storeOf = (/** @type {Index} */ index) => new PostgresVectorStore({ ...optionsFor(size), index });
    const { pool } = optionsFor(size);
    /** @type {Row[]} */
    const rows = [];
    await storeOf('exact').migrate();
    await fill(pool, size, makeVector);
    for (const index of /** @type {Index[]} */ (['exact', 'hnsw'])) {
      const buildSeconds =
        index === 'hnsw' ? (await timed(() => storeOf('hnsw').migrate())) / 1000 : undefined;
      await pool.query('VACUUM ANALYZE');
      console.log(`${size} vectors, ${index} …`);
      // Fewer where one takes longer, so that all take about as long.
      const calls = index === 'hnsw' ? 300 : Math.max(20, Math.min(300, Math.round(6e6 / size)));
      rows.push({ size, index, buildSeconds, ...(await measureStore(() => storeOf(index), next, calls)) });
    }
    Object.assign(rows[1], await compare(storeOf, makeVector));
    return rows;
  });
}

/**
 * Puts vectors into the table past the store, which would compare each with all before.
 *
 * @param {import('pg').Pool} pool
 * @param {number} size
 * @param {() => Float32Array} makeVector
 */
async function fill(pool, size, makeVector) {
  console.log(`storing ${size} vectors …`);
  for (let first = 0; first < size; first += ROWS_AT_A_TIME) {
    const vectors = Array.from(
      { length: Math.min(ROWS_AT_A_TIME, size - first) },
      () => `[${makeVector().join()}]`,
    );
    await pool.query(
      `INSERT INTO ${TABLE} (position, added, call, embedding, label)
       SELECT $1::bigint + index - 1, now(), gen_random_uuid(), embedding::vector, 'kp:trace:' || gen_random_uuid()
       FROM unnest($2::text[]) WITH ORDINALITY AS new(embedding, index)`,
      [first, vectors],
    );
  }
  const { model, dtype } = MODEL;
  await pool.query(`UPDATE ${TABLE}_meta SET next_position = $1, model = $2, dtype = $3`, [
    size,
    model,
    dtype,
  ]);
}

/**
 * Returns the recall of the index beside an exhaustive search, and the difference that its misses make to novelty.
 *
 * @param {(index: Index) => PostgresVectorStore} storeOf
 * @param {() => Float32Array} makeVector
 */
async function compare(storeOf, makeVector) {
  const [exact, approximate] = [storeOf('exact'), storeOf('hnsw')];
  const differences = [];
  for (let query = 0; query < 200; query++) {
    const vector = makeVector();
    const [[right], [found]] = [
      await exact.nearest(vector, 1, MODEL),
      await approximate.nearest(vector, 1, MODEL),
    ];
    differences.push(right.similarity - found.similarity);
  }
  // Single precision gives another last digit now and then.
  const misses = differences.filter((difference) => difference > 1e-6);
  const largest = Math.max(...differences);
  return {
    recall: 1 - misses.length / differences.length,
    meanDifference: mean(differences),
    largestDifference: largest,
    largestScoreDifference: largest * WEIGHT,
  };
}

/** @param {Row[]} rows */
function print(rows) {
  printTimes(rows);
  console.table(
    rows.flatMap(
      ({ size, buildSeconds, recall, meanDifference, largestDifference, largestScoreDifference }) =>
        recall === undefined
          ? []
          : {
              ...{ vectors: size, 'build s': rounded(buildSeconds ?? 0, 0), 'recall@1': rounded(recall, 3) },
              ...{ 'mean ΔN': rounded(meanDifference ?? 0, 5), 'max ΔN': rounded(largestDifference ?? 0, 4) },
              'max Δscore': rounded(largestScoreDifference ?? 0, 4),
            },
    ),
  );
  console.log('ΔN: by how much novelty is too high because the index missed the nearest vector.\n');
}
