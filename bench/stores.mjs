// What the benchmarks of both stores in PostgreSQL share: the server, the times, and the table of results.

import postgres from '../__test__/support/postgres.js';
import { mean, quantile } from './measure.mjs';

/** @import { NoveltyEntry } from '../index.js' */

export const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };
export const TABLE = 'bench';
export const CONNECTIONS = 8;

/**
 * Runs `use` with a server of its own. `optionsFor` makes the options of a store of a size, with one connection; `endAll` ends the
 * connections.
 *
 * @template T
 * @param {{ megabytes: number, from?: string }} options `megabytes` of shared buffers, 256 to 4096
 * @param {(server: { postgres: any, optionsFor: (size: number) => import('../postgres.js').PostgresStoreOptions & { pool: import('pg').Pool },
 *   endAll: () => Promise<void> }) => Promise<T>} use
 */
export async function withServer({ megabytes, from }, use) {
  const { default: pg } = await import('pg');
  const memory = `${Math.min(4096, Math.max(256, Math.ceil(megabytes)))}MB`;
  const settings = { shared_buffers: memory, maintenance_work_mem: memory, max_wal_size: '8GB' };
  const server = await postgres.startPostgres({ durable: true, settings, from });
  /** @type {import('pg').Pool[]} */
  const pools = [];
  const optionsFor = (/** @type {number} */ size) => {
    const pool = new pg.Pool(server.connection({ max: 1 }));
    pools.push(pool);
    return {
      ...{ pool, table: TABLE, maxElements: size * 2, timeoutMs: 600_000 },
      sweepIntervalMs: Number.POSITIVE_INFINITY,
    };
  };
  const endAll = async () => {
    for (const pool of pools.splice(0)) await pool.end();
  };
  try {
    return await use({ postgres: server, optionsFor, endAll });
  } finally {
    await endAll();
    await server.remove();
  }
}

/**
 * Returns the times in milliseconds to compare and add through one connection and through several at once, and the numbers a second.
 *
 * @param {() => import('../postgres.js').PostgresVectorStore | import('../postgres.js').PostgresTraceStore} storeOf
 * @param {() => NoveltyEntry} next
 * @param {number} calls
 */
export async function measureStore(storeOf, next, calls) {
  const store = storeOf();
  const stores = Array.from({ length: CONNECTIONS }, storeOf);
  // The first calls of a connection compile the functions, fill its caches, and read the statistics.
  for (let call = 0; call < 5; call++) await store.compareAndAdd(next());
  for (const each of stores) await each.compareAndAdd(next());
  /** @type {number[]} */
  const times = [];
  for (let call = 0; call < calls; call++) {
    const entry = next();
    times.push(await timed(() => store.compareAndAdd(entry)));
  }
  const count = Math.max(16, calls);
  const queue = Array.from({ length: count }, next).values();
  /** @type {number[]} */
  const crowdTimes = [];
  const crowd = await timed(() =>
    Promise.all(
      stores.map(async (each) => {
        for (const entry of queue) crowdTimes.push(await timed(() => each.compareAndAdd(entry)));
      }),
    ),
  );
  const batch = Array.from({ length: 64 }, next);
  const batchTime = await timed(() => store.compareAndAddBatch(batch));
  return {
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    perSecond: 1000 / mean(times),
    crowdP50: quantile(crowdTimes, 0.5),
    crowdP99: quantile(crowdTimes, 0.99),
    crowdPerSecond: (1000 * count) / crowd,
    batchPerSecond: (1000 * batch.length) / batchTime,
  };
}

/** @param {Array<{ size: number, index?: string } & Awaited<ReturnType<typeof measureStore>>>} rows */
export function printTimes(rows) {
  console.table(
    rows.map((row) => ({
      entries: row.size,
      ...(row.index === undefined ? {} : { index: row.index }),
      ...{ 'p50 ms': rounded(row.p50, 1), 'p99 ms': rounded(row.p99, 1), '1/s': rounded(row.perSecond, 0) },
      [`${CONNECTIONS}×: p50 ms`]: rounded(row.crowdP50, 1),
      [`${CONNECTIONS}×: p99 ms`]: rounded(row.crowdP99, 1),
      [`${CONNECTIONS}×: 1/s`]: rounded(row.crowdPerSecond, 0),
      'batch 1/s': rounded(row.batchPerSecond, 0),
    })),
  );
  console.log(
    `To compare with all and add, through one connection and through ${CONNECTIONS} at once; in batches of 64 through one.`,
  );
}

/**
 * @param {number} value
 * @param {number} digits
 */
export const rounded = (value, digits) => Number(value.toFixed(digits));

/**
 * @param {() => Promise<unknown>} work
 * @returns {Promise<number>} milliseconds
 */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
