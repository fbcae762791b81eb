/**
 * A novelty memory in PostgreSQL that several machines share.
 *
 * @packageDocumentation
 */

import type { NoveltyMethod } from './index.js';

/** The part of a `PoolClient` of the package `pg` that a store uses. */
export interface PgClient {
  query(config: {
    text: string;
    values?: unknown[];
    rowMode?: 'array';
    types?: { getTypeParser: () => (value: unknown) => unknown };
    // biome-ignore lint/suspicious/noExplicitAny: rows of texts and nulls
  }): Promise<{ rows: any[][] }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** The part of a `Pool` of the package `pg` that a store uses. */
export interface PgPool {
  connect(
    // biome-ignore lint/suspicious/noExplicitAny: what it gives has more than a `PgClient`, and other types
    callback: (error: Error | undefined, client: any, release: (destroy?: any) => void) => void,
  ): void;
}

/** Options of {@link PostgresStore}. Give every process that uses a table the same ones. */
export interface PostgresStoreOptions {
  /** The pool of connections. The store never ends it. */
  pool: PgPool;
  /** The novelty method. It belongs to the table and cannot change. */
  novelty: NoveltyMethod;
  /**
   * The name of the table, at most 57 bytes, or a schema, a dot and a name. The first call creates the table, but not the schema.
   *
   * @defaultValue `'knowledgepulse_novelty'`, in the first schema of the search path
   */
  table?: string;
  /**
   * The number of traces to compare with, the newest ones: a safe integer of at least 1. Older ones are deleted.
   *
   * @defaultValue 100000
   */
  maxElements?: number;
  /**
   * The time to live of a trace in milliseconds, by the clock of the database: 0 or more.
   *
   * @defaultValue `Infinity`, for ever
   */
  ttlMs?: number;
  /**
   * Whether an HNSW index of pgvector 0.8 or newer finds the nearest embedding, with `novelty: 'prefix'` only. It is faster from some
   * thousand traces on, and misses the nearest now and then. The first call builds it if the table has none.
   *
   * @defaultValue `false`
   */
  hnsw?: boolean;
}

/**
 * A novelty memory in a PostgreSQL table, which any number of processes can share: pass it to a `Scorer` as its `memory`. Comparing and adding
 * is one transaction, so of two processes with the same trace at the same moment, one sees the other's. It needs the package `pg`,
 * PostgreSQL 13 or newer, and pgvector for `novelty: 'prefix'`:
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md | Shared store}.
 *
 * @example
 * ```ts
 * import { Scorer, TraceMemory } from '@knowledgepulse/native';
 * import { PostgresStore } from '@knowledgepulse/native/postgres';
 * import pg from 'pg';
 *
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
 * const memory = new PostgresStore({ pool, novelty: 'lexical' });
 * const scorer = new Scorer({ memory, fallback: new TraceMemory() });
 * ```
 */
export class PostgresStore {
  /**
   * Makes a store without connecting. It handles errors of idle connections in the pool, which would otherwise end the process.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION` if an option is missing, of the wrong type or outside its range.
   */
  constructor(options: PostgresStoreOptions);

  /** The novelty method. */
  get novelty(): NoveltyMethod;

  /**
   * Returns the number of traces that a new one would be compared with.
   *
   * @throws `Error` with `code` `ERR_STORE_UNAVAILABLE`, `ERR_STORE_SCHEMA`, `ERR_MEMORY_OTHER_METHOD` or `ERR_STORE`, as a rejection.
   */
  size(): Promise<number>;
}
