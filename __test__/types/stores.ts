// The store, as a program uses it. This file is compiled, never run.

import { Scorer, TraceMemory } from '@knowledgepulse/native';
import { type PgPool, PostgresStore, type PostgresStoreOptions } from '@knowledgepulse/native/postgres';

declare const pool: PgPool;
const settings: PostgresStoreOptions = { pool, novelty: 'prefix', table: 'memory', ttlMs: 1000, hnsw: true };
const store: PostgresStore = new PostgresStore(settings);
export const scorer: Scorer<PostgresStore> = new Scorer({ memory: store, fallback: new TraceMemory() });
export const size: Promise<number> = scorer.memory.size();
export const method: 'prefix' | 'lexical' | 'full' = store.novelty;

// What must not compile.
// @ts-expect-error: a pool is needed
new PostgresStore({ novelty: 'lexical' });
// @ts-expect-error: a method is needed
new PostgresStore({ pool });
// @ts-expect-error: an unknown method
new PostgresStore({ pool, novelty: 'words' });
// @ts-expect-error: a store of one's own
new Scorer({ memory: { novelty: 'lexical' } });
// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = store;
