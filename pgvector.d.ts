/**
 * A novelty memory in PostgreSQL with pgvector, for a fleet of machines.
 *
 * @packageDocumentation
 */

import type {
  AddOptions,
  CallOptions,
  NearestOptions,
  NoveltyComparison,
  NoveltyEntry,
  NoveltyStore,
  StoredNeighbour,
  VectorModel,
} from './index.js';

/** What {@link PgVectorStore} needs of a connection: a `PoolClient` of the package `pg` has it. */
export interface PgClient {
  query(config: { text: string; values?: unknown[]; rowMode: 'array' }): Promise<{ rows: unknown[][] }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** What {@link PgVectorStore} needs of a pool: a `Pool` of the package `pg` has it. */
export interface PgPool {
  connect(
    // biome-ignore lint/suspicious/noExplicitAny: what it gives has more than a `PgClient`, and other types
    callback: (error: Error | undefined, client: any, release: (destroy?: any) => void) => void,
  ): void;
}

/** What counts in a table, for all who share it: the table keeps it. */
export interface PgVectorStoreLimits {
  /** So many vectors count, the newest ones: a safe integer of at least 1. Exact, whether or not the others are deleted yet. */
  maxElements: number;
  /** How many milliseconds a vector counts, by the clock of the database: 0 or more; `Infinity`, for ever. */
  ttlMs: number;
}

/**
 * Options of {@link PgVectorStore}. The limits, `maxElements` and `ttlMs`, are those with which the first `migrate()` makes the
 * table. A table that is there has its own: whoever gives none takes those, and the calls of whoever gives others reject.
 */
export interface PgVectorStoreOptions {
  /** Where connections come from. It stays yours: the store never ends it. */
  pool: PgPool;
  /**
   * The name of the table, of at most 54 bytes. Other names are made of it: `…_meta`, `…_add` and so on.
   *
   * @defaultValue `'knowledgepulse_novelty'`
   */
  table?: string;
  /**
   * The database schema of the table. It must be there: `migrate()` makes none.
   *
   * @defaultValue the first one in the search path of the connection
   */
  schema?: string;
  /**
   * So many vectors count, the newest ones: a safe integer of at least 1.
   *
   * @defaultValue what the table has; 100000 where it is made
   */
  maxElements?: number;
  /**
   * How many milliseconds a vector counts: 0 or more; more than 2e14, six thousand years, is for ever.
   *
   * @defaultValue what the table has; `Infinity` where it is made
   */
  ttlMs?: number;
  /**
   * How the nearest vector is found: `exact`, by looking at all; or `hnsw`, by pgvector's approximate index, which is
   * faster from some ten thousand vectors on, and makes an addition slower.
   *
   * @defaultValue `'exact'`
   */
  index?: 'exact' | 'hnsw';
  /**
   * How widely an HNSW index is searched, 1 to 1000: more finds the nearest more often, and takes longer.
   *
   * @defaultValue 100
   */
  efSearch?: number;
  /**
   * How many milliseconds a call may take, waiting for a connection included: 50 to 2147483647. The server gives up before
   * that, so that its answer comes in time.
   *
   * @defaultValue 5000
   */
  timeoutMs?: number;
  /**
   * About how many milliseconds lie between two sweeps, which delete what no longer counts: 1 or more; `Infinity` for
   * none. Only a process that adds sweeps, and of many, one at a time.
   *
   * @defaultValue 60000
   */
  sweepIntervalMs?: number;
}

/**
 * A {@link NoveltyStore} in a table of PostgreSQL, which any number of processes share. To compare and add is one round
 * trip and one atomic step; docs/fleet.md says how. Needs PostgreSQL 13 or newer and pgvector 0.5 or newer, 0.8 for
 * `index: 'hnsw'`, and the packages `pg` and `pgvector`.
 *
 * Its calls reject with an `Error` whose `code` is one of those of a {@link NoveltyStore} and whose `cause` is the
 * driver's error; with `ERR_STORE_OTHER_LIMITS` if the table has other limits than the options; with `ERR_INVALID_ENTRY` or `ERR_INVALID_VECTOR` if they make no sense.
 *
 * @example
 * ```ts
 * import { Scorer } from '@knowledgepulse/native';
 * import { PgVectorStore } from '@knowledgepulse/native/pgvector';
 * import pg from 'pg';
 *
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
 * const store = new PgVectorStore({ pool });
 * await store.migrate();
 * const scorer = new Scorer({ store, onStoreError: 'local' });
 * ```
 */
export class PgVectorStore implements NoveltyStore {
  /**
   * Makes a store. The database is not asked yet. A connection that breaks while it idles in the pool does not end the
   * process any more.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
   * @throws `RangeError` with the same code if it is outside its range.
   * @throws `Error` with `code` `ERR_STORE` if the package `pgvector` is not installed.
   */
  constructor(options: PgVectorStoreOptions);

  /**
   * Makes the extension, the tables, the functions and the index, as far as they are not there: any number of processes
   * may call it, at once and every time they start. Where everything is there it only looks. Tables of version 2 get what they
   * lack; processes with that version of the package reject with `ERR_STORE_SCHEMA` from then on. What it makes has no time
   * limit, also where the connection has one: an index on a full table takes minutes, in which nothing can be added.
   *
   * @throws `Error` with `code` `ERR_STORE_SCHEMA`, as a rejection, if the schema is missing, if the tables are of another
   * version or their names are somebody else's, if what has the name of an index cannot be used, or if the database is not
   * in UTF8.
   * @throws `Error` with `code` `ERR_STORE_OTHER_LIMITS`, as a rejection, if the table has other limits than the options.
   */
  migrate(): Promise<void>;

  /**
   * Compares an entry with everything stored before it, and stores it. If the connection is lost on the way, the call is
   * made once more, and stored once even so, also if the server is still at the first one. Calls that have the same `call` and the
   * same entries are stored once, as long as their vectors are in the table, and answered as the first of them.
   *
   * @throws `Error` with `code` `ERR_STORE_TIMEOUT`, as a rejection, if the time is up. Nothing is stored then, unless it is
   * the network or the disk of the server that is slow.
   */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;

  /** As one {@link PgVectorStore.compareAndAdd} after another, all or nothing, in one round trip. */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;

  /** The `count` stored vectors that are most similar to `vector`, the most similar first. Stores nothing. */
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;

  /** How many vectors count. */
  size(options?: CallOptions): Promise<number>;

  /**
   * Deletes what no longer counts, at most 10,000 vectors a transaction, unless another process is at it.
   *
   * @returns how many it has deleted
   */
  sweep(options?: CallOptions): Promise<number>;

  /**
   * Changes the limits of the table, for all who share it, and returns all of them; `setLimits({})` only returns them. Needs the
   * privilege to update them. What counts no more is deleted by the next sweep. Others that were given limits as
   * options reject with `ERR_STORE_OTHER_LIMITS` from then on, unless they were given the new ones.
   */
  setLimits(limits: Partial<PgVectorStoreLimits>, options?: CallOptions): Promise<PgVectorStoreLimits>;

  /** Stops the sweeps; calls reject from now on. The pool is yours to end. */
  close(): void;
}
