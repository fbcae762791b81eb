/**
 * A novelty memory in PostgreSQL that several machines share.
 *
 * @packageDocumentation
 */

import type { NoveltyMethod, TraceMemory } from './index.js';

/** The part of a `Pool` of the package `pg` that a store uses. */
export interface PgPool {
  connect(
    // biome-ignore lint/suspicious/noExplicitAny: a `PoolClient` of any version
    callback: (error: Error | undefined, client: any, release: (destroy?: any) => void) => void,
  ): void;
}

/**
 * A novelty memory in a PostgreSQL table, which any number of processes can share: pass it to a `Scorer` as its `memory`. Comparing and
 * adding is one transaction. It needs the package `pg`, PostgreSQL 13 or newer, and pgvector for `method: 'prefix'`:
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md | Shared store}.
 */
export class PostgresStore {
  /**
   * Makes a store without connecting. Give every process that uses a table the same options.
   *
   * @throws `ERR_MEMORY_MISMATCH` for a fallback of another method
   */
  constructor(options: {
    /** The pool of connections. The store never ends it. */
    pool: PgPool;
    /** How traces are compared. It belongs to the table and cannot change. */
    method: NoveltyMethod;
    /** A name of at most 57 bytes, or a schema, a dot and a name; `knowledgepulse_novelty` by default. The first call creates the table. */
    table?: string;
    /** The number of traces to compare with, the newest ones: 100,000 by default. Older ones are deleted. */
    maxElements?: number;
    /** The time to live of a trace in milliseconds, by the clock of the database; by default for ever. */
    ttlMs?: number;
    /** Whether an HNSW index of pgvector 0.8 or newer finds the nearest embedding, with `prefix` only; `false` by default. */
    hnsw?: boolean;
    /**
     * The memory to use while the store fails, of the same method. At most 10,000 missed traces wait for the store: call
     * {@link PostgresStore.flush} before the process ends. Without a fallback, calls reject with the store's error.
     */
    fallback?: TraceMemory;
  });
  get method(): NoveltyMethod;
  /**
   * Returns the number of traces that a new one would be compared with.
   *
   * @throws `ERR_STORE_UNAVAILABLE`, `ERR_STORE_SCHEMA`, `ERR_MEMORY_MISMATCH` or `ERR_STORE`
   */
  size(): Promise<number>;
  /**
   * Resolves when the store has every trace that it has missed of the scorers' calls that have settled.
   *
   * @throws `ERR_STORE_DROPPED` if traces were dropped since the last `flush`, or the error of the store
   */
  flush(): Promise<void>;
}
