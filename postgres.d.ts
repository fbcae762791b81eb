/**
 * Novelty memories in PostgreSQL that several machines share.
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

/** The part of a `PoolClient` of the package `pg` that the stores use. */
export interface PgClient {
  query(config: { text: string; values?: unknown[]; rowMode: 'array' }): Promise<{ rows: unknown[][] }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** The part of a `Pool` of the package `pg` that the stores use. */
export interface PgPool {
  connect(
    // biome-ignore lint/suspicious/noExplicitAny: what it gives has more than a `PgClient`, and other types
    callback: (error: Error | undefined, client: any, release: (destroy?: any) => void) => void,
  ): void;
}

/** The limits of a table. They are stored in the table and apply to every process that uses it. */
export interface PostgresStoreLimits {
  /**
   * The number of vectors to compare with, the newest ones: a safe integer of at least 1. It is exact even before older vectors are
   * deleted.
   */
  maxElements: number;
  /** The time to live of a vector in milliseconds, by the clock of the database: 0 or more; `Infinity` means for ever. */
  ttlMs: number;
}

/**
 * Options of both stores. The first `migrate()` stores the limits `maxElements` and `ttlMs` in the table. Later, a store without these
 * options uses the limits of the table, and a store with other limits rejects.
 */
export interface PostgresStoreOptions {
  /** The pool of connections. The store never ends it. */
  pool: PgPool;
  /**
   * The name of the table, at most 54 bytes. The names of further objects begin with it: `…_meta`, `…_add` and so on.
   *
   * @defaultValue `'knowledgepulse_novelty'`
   */
  table?: string;
  /**
   * The database schema of the table. It must exist: `migrate()` does not make it.
   *
   * @defaultValue the first one in the search path of the connection
   */
  schema?: string;
  /**
   * The number of vectors or traces to compare with, the newest ones: a safe integer of at least 1.
   *
   * @defaultValue that of the table; 100000 for a new table
   */
  maxElements?: number;
  /**
   * The time to live of a vector in milliseconds: 0 or more. More than 2e14, six thousand years, means for ever.
   *
   * @defaultValue that of the table; `Infinity` for a new table
   */
  ttlMs?: number;
  /**
   * The time limit of a call in milliseconds, waiting for a connection included: 50 to 2147483647. The server gets a shorter limit, so
   * that its answer arrives in time.
   *
   * @defaultValue 5000
   */
  timeoutMs?: number;
  /**
   * The approximate time between two sweeps in milliseconds: 1 or more; `Infinity` for no sweeps. A sweep deletes expired and displaced
   * vectors. A process sweeps only while it adds vectors, and only one process at a time.
   *
   * @defaultValue 60000
   */
  sweepIntervalMs?: number;
}

/** Options of {@link PostgresVectorStore}. */
export interface PostgresVectorStoreOptions extends PostgresStoreOptions {
  /**
   * The search for the nearest vector. `exact` compares with all vectors. `hnsw` uses pgvector's approximate index, which is faster
   * from some ten thousand vectors on and makes additions slower; the page
   * {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md#exact-or-hnsw | Shared store} has figures.
   *
   * @defaultValue `'exact'`
   */
  index?: 'exact' | 'hnsw';
  /**
   * The breadth of the search in an HNSW index, 1 to 1000 (pgvector's `hnsw.ef_search`). A larger number finds the nearest vector more
   * often and takes longer.
   *
   * @defaultValue 100
   */
  efSearch?: number;
}

/** Options of {@link PostgresTraceStore}. */
export interface PostgresTraceStoreOptions extends PostgresStoreOptions {
  /**
   * The novelty method; it belongs to the table and cannot change. `full` also stores embeddings of digests.
   *
   * @defaultValue `'lexical'`
   */
  novelty?: 'lexical' | 'full';
}

/** The methods of both stores. */
declare abstract class PostgresStore {
  /**
   * Creates the extension, the tables, the functions and the index unless they exist, but not the schema. Any number of processes
   * may call it at the same time; once the tables exist, it only checks. It has no time limit, because an index on a full table
   * takes minutes. It blocks additions meanwhile.
   *
   * @throws `Error` with `code` `ERR_STORE_SCHEMA`, as a rejection, if the schema is missing, if the tables are of another version or
   * their names are taken, if the index of that name is unusable, or if the encoding of the database is not UTF8.
   * @throws `Error` with `code` `ERR_STORE_OTHER_LIMITS`, as a rejection, if the table has other limits than the options.
   */
  migrate(): Promise<void>;

  /**
   * Compares an entry with every entry stored before it, then stores it. If the connection is lost, the call is repeated once, and the
   * entry is still stored only once. Calls with the same `call` and entries are stored once while their vectors are in the
   * table, and return the result of the first.
   *
   * @throws `Error` with `code` `ERR_STORE_TIMEOUT`, as a rejection, after `timeoutMs`. Nothing is stored, unless the network or the
   * server's disk hangs; then the outcome is unknown.
   */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;

  /** Does {@link PostgresVectorStore.compareAndAdd} for one entry after another, for all or none, in one round trip. */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;

  /** Returns the number of vectors or traces that a new one would be compared with. */
  size(options?: CallOptions): Promise<number>;

  /**
   * Deletes expired and displaced vectors or traces, at most 10,000 in a transaction. Does nothing while another process sweeps.
   *
   * @returns the number of those deleted
   */
  sweep(options?: CallOptions): Promise<number>;

  /**
   * Changes the limits of the table for every process, and returns them; `setLimits({})` only returns them. It needs the privilege to
   * update them. The next sweep deletes what is beyond the new limits. Stores with the old limits as options then reject with
   * `ERR_STORE_OTHER_LIMITS`.
   */
  setLimits(limits: Partial<PostgresStoreLimits>, options?: CallOptions): Promise<PostgresStoreLimits>;

  /** Stops the sweeps. Later calls reject. The pool stays open; end it yourself. */
  close(): void;
}

/**
 * A {@link NoveltyStore} of vectors in a PostgreSQL table, which any number of processes can share. Comparing and adding are one round trip
 * and one atomic step: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md | Shared store}. It needs
 * PostgreSQL 13 or newer, the package `pg`, and pgvector 0.5 or newer (0.8 for `index: 'hnsw'`).
 *
 * Calls reject with an `Error` that has a code of {@link NoveltyStore} and the driver's error as `cause`; with `ERR_STORE_OTHER_LIMITS` if the
 * table has other limits than the options; with `ERR_INVALID_ENTRY` or `ERR_INVALID_VECTOR` if an argument is malformed.
 *
 * @example
 * ```ts
 * import { Scorer, VectorCache } from '@knowledgepulse/native';
 * import { PostgresVectorStore } from '@knowledgepulse/native/postgres';
 * import pg from 'pg';
 *
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
 * const store = new PostgresVectorStore({ pool });
 * await store.migrate();
 * const scorer = new Scorer({ memory: store, fallback: new VectorCache() });
 * ```
 */
export class PostgresVectorStore extends PostgresStore implements NoveltyStore {
  /** The novelty method of its scorers. */
  get novelty(): 'prefix';

  /**
   * Makes a store without connecting. It handles errors of idle connections in the pool, which would otherwise end the process.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
   * @throws `RangeError` with the same code if an option is outside its range.
   */
  constructor(options: PostgresVectorStoreOptions);

  /** Returns the `count` stored vectors that are most similar to `vector`, the most similar first. Stores nothing. */
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;
}

/**
 * A {@link NoveltyStore} of traces in a PostgreSQL table, which any number of processes can share. It needs PostgreSQL 13 or newer and the
 * package `pg`, and no extension. A call takes three round trips, two while the table holds at most 64 traces, and two more when it
 * renews the statistics. Everything else is as with {@link PostgresVectorStore}.
 */
export class PostgresTraceStore extends PostgresStore implements NoveltyStore {
  /** The novelty method of its scorers. */
  get novelty(): 'lexical' | 'full';

  /** Makes a store, as {@link PostgresVectorStore} does. */
  constructor(options: PostgresTraceStoreOptions);

  /** Rejects with `ERR_STORE_OTHER_METHOD`: ask {@link PostgresTraceStore.nearestTraces}. */
  nearest(): Promise<StoredNeighbour[]>;

  /** Returns the `count` stored traces that are most similar to an entry with words, the most similar first. Stores nothing. */
  nearestTraces(entry: NoveltyEntry, count: number, options?: CallOptions): Promise<StoredNeighbour[]>;
}

// biome-ignore lint/complexity/noUselessEmptyExport: without it, a file of declarations exports PostgresStore too.
export {};
