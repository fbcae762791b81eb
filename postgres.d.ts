/**
 * A novelty memory in PostgreSQL, for a fleet of machines.
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

/** The limits of a table. They are kept in the table, and hold for everybody who shares it. */
export interface PostgresStoreLimits {
  /**
   * How many vectors are compared with, the newest ones: a safe integer of at least 1. The number is exact, whether or not older
   * vectors are deleted yet.
   */
  maxElements: number;
  /** After how many milliseconds a vector expires, by the clock of the database: 0 or more; `Infinity` means never. */
  ttlMs: number;
}

/**
 * Options of every store. The first `migrate()` makes the table with the limits `maxElements` and `ttlMs`. A table that
 * exists has limits of its own: a store without these options takes them, and the calls of a store with other limits reject.
 */
export interface PostgresStoreOptions {
  /** Where the connections come from. The store never ends the pool; that is left to you. */
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
   * How many vectors or traces are compared with, the newest ones: a safe integer of at least 1.
   *
   * @defaultValue that of the table; 100000 for a new table
   */
  maxElements?: number;
  /**
   * After how many milliseconds a vector expires: 0 or more. More than 2e14, six thousand years, means never.
   *
   * @defaultValue that of the table; `Infinity` for a new table
   */
  ttlMs?: number;
  /**
   * How many milliseconds a call may take, waiting for a connection included: 50 to 2147483647. The server gives up before
   * that, so that its answer comes in time.
   *
   * @defaultValue 5000
   */
  timeoutMs?: number;
  /**
   * About how many milliseconds lie between two sweeps, which delete expired and displaced vectors: 1 or more; `Infinity` for no
   * sweeps. A process sweeps only while it adds vectors, and of many processes only one at a time does.
   *
   * @defaultValue 60000
   */
  sweepIntervalMs?: number;
}

/** Options of {@link PostgresVectorStore}. */
export interface PostgresVectorStoreOptions extends PostgresStoreOptions {
  /**
   * How the nearest vector is found. `exact` looks at all vectors. `hnsw` uses pgvector's approximate index, which is faster
   * from some ten thousand vectors on, and makes an addition slower; the page
   * {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md#exact-or-hnsw | Shared store} has figures.
   *
   * @defaultValue `'exact'`
   */
  index?: 'exact' | 'hnsw';
  /**
   * How widely an HNSW index is searched, 1 to 1000 (pgvector's `hnsw.ef_search`). A larger number finds the nearest vector more
   * often and takes longer.
   *
   * @defaultValue 100
   */
  efSearch?: number;
}

/** Options of {@link PostgresTraceStore}. */
export interface PostgresTraceStoreOptions extends PostgresStoreOptions {
  /**
   * How the traces are compared. `full` also keeps the embeddings of their digests. The table is made for one method, which cannot change.
   *
   * @defaultValue `'lexical'`
   */
  novelty?: 'lexical' | 'full';
}

/**
 * A {@link NoveltyStore} of vectors in a table of PostgreSQL, which any number of processes can share. Comparing and adding are one round trip
 * and one atomic step; the page
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md | Shared store} says how. It needs PostgreSQL 13 or newer, the package `pg`, and pgvector 0.5 or newer (0.8 for
 * `index: 'hnsw'`).
 *
 * Its calls reject with an `Error` that has one of the codes of a {@link NoveltyStore}, and the driver's error as its `cause`. They reject
 * with `ERR_STORE_OTHER_LIMITS` if the table has other limits than the options, and with `ERR_INVALID_ENTRY` or
 * `ERR_INVALID_VECTOR` if an argument is malformed.
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
export class PostgresVectorStore implements NoveltyStore {
  /** How the scorers compare that it serves. */
  get novelty(): 'prefix';

  /**
   * Makes a store, without a connection yet. It listens for errors of connections that wait in the pool, which would otherwise
   * end the process.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
   * @throws `RangeError` with the same code if an option is outside its range.
   */
  constructor(options: PostgresVectorStoreOptions);

  /**
   * Makes those of the extension, the tables, the functions and the index that do not exist yet. Any number of processes may call
   * it, at the same time and whenever they start; once everything exists, it only checks that. It does not make the schema. Making
   * the rest has no time limit, even if the connection has one, because an index on a full table takes minutes. Nothing can be
   * added meanwhile.
   *
   * @throws `Error` with `code` `ERR_STORE_SCHEMA`, as a rejection, if the schema is missing, if the tables are of another version or
   * their names belong to something else, if something with the name of the index is not an index that can be used, or if the
   * encoding of the database is not UTF8.
   * @throws `Error` with `code` `ERR_STORE_OTHER_LIMITS`, as a rejection, if the table has other limits than the options.
   */
  migrate(): Promise<void>;

  /**
   * Compares an entry with everything that was stored before it, and stores it. If the connection is lost on the way, the call is made
   * once more; the entry is stored once all the same, even if the server is still working on the first attempt. Calls with the same
   * `call` and the same entries are stored once, as long as their vectors are in the table, and each gets the answer of the first.
   *
   * @throws `Error` with `code` `ERR_STORE_TIMEOUT`, as a rejection, if `timeoutMs` is over. Nothing is stored then, unless the
   * network or the disk of the server hangs, in which case that is unknown.
   */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;

  /** Does the same as one {@link PostgresVectorStore.compareAndAdd} after another, for all entries or none, in one round trip. */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;

  /** The `count` stored vectors that are most similar to `vector`, the most similar first. Stores nothing. */
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;

  /** How many vectors or traces a new one would be compared with. */
  size(options?: CallOptions): Promise<number>;

  /**
   * Deletes expired and displaced vectors, at most 10,000 in a transaction. Does nothing while another process sweeps.
   *
   * @returns how many vectors it has deleted
   */
  sweep(options?: CallOptions): Promise<number>;

  /**
   * Changes the limits of the table for everybody who shares it, and returns all of them; `setLimits({})` only returns them. It needs
   * the privilege to update them. The next sweep deletes the vectors that are beyond the new limits. From then on, stores that
   * were given the old limits as options reject with `ERR_STORE_OTHER_LIMITS`.
   */
  setLimits(limits: Partial<PostgresStoreLimits>, options?: CallOptions): Promise<PostgresStoreLimits>;

  /** Stops the sweeps. Later calls reject. The pool stays open; end it yourself. */
  close(): void;
}

/**
 * A {@link NoveltyStore} of traces in a table of PostgreSQL, which any number of processes can share. It needs PostgreSQL 13 or newer and the
 * package `pg`, and no extension. A call takes three round trips, or two while the table holds at most 64 traces, and two more when it
 * makes the statistics anew. Everything else is as with {@link PostgresVectorStore}.
 */
export class PostgresTraceStore implements NoveltyStore {
  /** How the scorers compare that it serves: the `novelty` of the options. */
  get novelty(): 'lexical' | 'full';

  /** Makes a store, as {@link PostgresVectorStore} does. */
  constructor(options: PostgresTraceStoreOptions);

  /** Does what {@link PostgresVectorStore.migrate} does, for the tables of traces. */
  migrate(): Promise<void>;

  /** Does what {@link PostgresVectorStore.compareAndAdd} does, for an entry with words. */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;

  /** Does the same as one {@link PostgresTraceStore.compareAndAdd} after another, for all entries or none. */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;

  /** Rejects with `ERR_STORE_OTHER_METHOD`: ask {@link PostgresTraceStore.nearestTraces}. */
  nearest(): Promise<StoredNeighbour[]>;

  /** The `count` stored traces that are most similar to an entry with words, the most similar first. Stores nothing. */
  nearestTraces(entry: NoveltyEntry, count: number, options?: CallOptions): Promise<StoredNeighbour[]>;

  /** How many traces a new one would be compared with. */
  size(options?: CallOptions): Promise<number>;

  /** Deletes expired and displaced traces, as {@link PostgresVectorStore.sweep} does. */
  sweep(options?: CallOptions): Promise<number>;

  /** Does what {@link PostgresVectorStore.setLimits} does. */
  setLimits(limits: Partial<PostgresStoreLimits>, options?: CallOptions): Promise<PostgresStoreLimits>;

  /** Stops the sweeps. Later calls reject. The pool stays open; end it yourself. */
  close(): void;
}
