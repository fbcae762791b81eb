// Stores of ours and of others, and what tests them. This file is compiled, never run.

import {
  type AddOptions,
  LocalStore,
  type NearestOptions,
  type NoveltyComparison,
  type NoveltyEntry,
  type NoveltyStore,
  Scorer,
  VectorCache,
  type VectorModel,
} from '@knowledgepulse/native';
import { type ConformanceTest, noveltyStoreConformance } from '@knowledgepulse/native/conformance';
import {
  type PgPool,
  PostgresVectorStore,
  type PostgresVectorStoreOptions,
} from '@knowledgepulse/native/postgres';

declare const pool: PgPool;
const settings: PostgresVectorStoreOptions = { pool, table: 'memory', ttlMs: 1000, index: 'hnsw' };
const store: PostgresVectorStore = new PostgresVectorStore(settings);
store.compareAndAddBatch([], { call: '8c5ad0c3-0d36-4d4e-b2a5-0a3a5d8f6c11', signal: null });
export const limits: Promise<{ maxElements: number; ttlMs: number }> = store.setLimits({ ttlMs: 1000 });

export const stores: NoveltyStore[] = [store, new LocalStore()];
export const scorer: Scorer<PostgresVectorStore> = new Scorer({ memory: store, fallback: new VectorCache() });

export async function use(entry: NoveltyEntry, options: AddOptions): Promise<number> {
  await store.migrate();
  const [neighbour] = await store.compareAndAdd(entry, options);
  const swept: number = await store.sweep();
  await scorer.flush(options);
  store.close();
  return neighbour?.similarity ?? swept;
}

export const tests: ConformanceTest[] = noveltyStoreConformance({
  createStore: ({ maxElements }) =>
    new PostgresVectorStore({ ...settings, ...(maxElements && { maxElements }) }),
  destroyStore: (each) => each.close(),
});

/** Those of others may leave out what they do not need. */
export class OwnStore implements NoveltyStore {
  async compareAndAdd({ vectors, method }: NoveltyEntry): Promise<NoveltyComparison> {
    return vectors.map((vector) => (method === 'full' ? null : { label: null, similarity: vector[0] ?? 0 }));
  }
  compareAndAddBatch(entries: readonly NoveltyEntry[]): Promise<NoveltyComparison[]> {
    return Promise.all(entries.map((entry) => this.compareAndAdd(entry)));
  }
  async nearest(_: Float32Array, count: number, { model }: VectorModel, options?: NearestOptions) {
    return [{ label: options?.method ?? model, similarity: count }];
  }
  async size(): Promise<number> {
    return 0;
  }
}
export const frozenEntry: NoveltyEntry = Object.freeze({
  id: null,
  vectors: [],
  model: Object.freeze({ model: 'm', dtype: 'fp32' }),
  method: 'prefix',
});

// What must not compile.
// @ts-expect-error: a pool is needed
new PostgresVectorStore({});
// @ts-expect-error: an unknown index
new PostgresVectorStore({ pool, index: 'ivfflat' });
// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = noveltyStoreConformance;
