'use strict';

// The store in PostgreSQL remembers what a `VectorCache` does, vector for vector.

const { VectorCache } = require('../..');
const { MODEL, clusteredVector, describeWithPostgres, entry, useServer } = require('../support/store.js');

const COUNT = 10_000;

describeWithPostgres('parity with VectorCache', () => {
  const { migrated, pool } = useServer();

  test('vectors are stored to the bit', async () => {
    // A unit vector whose first components are written in every way that JavaScript has for numbers.
    const odd = [0.6, -0.8, 0, -0, 1e-7, -1e-30, 1.17549435e-38, 1e-44, 1 / 3e6, 2 ** -23];
    const vector = Float32Array.from({ length: 384 }, (_, index) => odd[index] ?? 0);
    const store = await migrated({ table: 'odd' });
    await store.compareAndAdd(entry('odd', vector));
    const { rows } = await pool().query('SELECT vector_send(embedding) AS bytes FROM odd');
    // As on the wire: two numbers of 16 bits, then the components, the highest byte first.
    const stored = Float32Array.from(vector, (_, index) => rows[0].bytes.readFloatBE(4 + 4 * index));
    // No cosine tells the zeros apart, and -0 is written as 0.
    expect(stored).toEqual(vector.map((component) => component + 0));
  });

  /** What a cache makes of the vectors, one after another: the similarity of each to its nearest, and the labels it may have. */
  function inCache(vectors, options) {
    const cache = new VectorCache(options);
    return vectors.map((vector, index) => {
      const [first, second] = cache.nearest(vector, 2);
      cache.add(vector, String(index));
      return { first, second };
    });
  }

  /** The comparisons must be those of a cache; a label is compared where no other is as near. */
  function expectSame(comparisons, expected) {
    let largest = 0;
    for (const [index, [neighbour]] of comparisons.entries()) {
      const { first, second } = expected[index];
      if (first === undefined) {
        expect(neighbour).toBeNull();
        continue;
      }
      largest = Math.max(largest, Math.abs(neighbour.similarity - first.similarity));
      if (second === undefined || first.similarity - second.similarity > 1e-6) {
        expect(neighbour.label).toBe(first.label);
      }
    }
    expect(largest).toBeLessThan(1e-6);
  }

  /** Adds the vectors under their numbers from `first` on. */
  async function addAll(store, vectors, first = 0) {
    const comparisons = [];
    for (let from = 0; from < vectors.length; from += 64) {
      const batch = vectors
        .slice(from, from + 64)
        .map((vector, index) => entry(String(first + from + index), vector));
      comparisons.push(...(await store.compareAndAddBatch(batch)));
    }
    return comparisons;
  }

  test(`${COUNT} vectors`, async () => {
    const vectors = Array.from({ length: COUNT }, (_, seed) => clusteredVector(seed));
    // Some come again.
    for (let index = 50; index < COUNT; index += 50) vectors[index] = vectors[index - 37];
    const table = 'ten_thousand';
    const store = await migrated({ table, timeoutMs: 60_000, sweepIntervalMs: Number.POSITIVE_INFINITY });
    const comparisons = await addAll(store, vectors.slice(0, 1000));
    // Most are compared with one other only: to compare all takes half a minute.
    const { maxElements } = await store.setLimits({});
    await store.setLimits({ maxElements: 1 });
    await addAll(store, vectors.slice(1000, 9000), 1000);
    await store.setLimits({ maxElements });
    const later = await addAll(store, vectors.slice(9000), 9000);
    expect(await store.size()).toBe(COUNT);
    const expected = inCache(vectors, { maxElements: COUNT });
    expectSame(comparisons, expected.slice(0, 1000));
    expectSame(later, expected.slice(9000));

    const cache = new VectorCache({ maxElements: COUNT });
    for (const vector of vectors) cache.add(vector);
    for (let seed = COUNT; seed < COUNT + 20; seed++) {
      const query = clusteredVector(seed).map((component) => component * 3);
      const found = await store.nearest(query, 10, MODEL);
      for (const [rank, { similarity }] of cache.nearest(query, 10).entries()) {
        expect(Math.abs(found[rank].similarity - similarity)).toBeLessThan(1e-6);
      }
    }
  });

  test('the oldest are displaced, whether or not they have been swept', async () => {
    const vectors = Array.from({ length: 2000 }, (_, seed) => clusteredVector(seed % 700, 10));
    const options = { maxElements: 300 };
    const store = await migrated(options);
    const comparisons = await addAll(store, vectors.slice(0, 1000));
    expect(await store.sweep()).toBe(700);
    expect(await store.sweep()).toBe(0);
    for (const [index, vector] of vectors.slice(1000, 1100).entries()) {
      comparisons.push(await store.compareAndAdd(entry(String(1000 + index), vector)));
    }
    comparisons.push(...(await addAll(store, vectors.slice(1100), 1100)));
    expectSame(comparisons, inCache(vectors, options));
    expect(await store.size()).toBe(300);
  });

  test('expired vectors are ignored, swept or not', async () => {
    const database = pool();
    const store = await migrated({ ttlMs: 60_000, pool: database, table: 'expiring' });
    const vectors = Array.from({ length: 200 }, (_, seed) => clusteredVector(seed));
    await addAll(store, vectors.slice(0, 100));
    // Time passes for what is stored.
    await database.query("UPDATE expiring SET added = added - interval '61 seconds' WHERE position < 60");
    expect(await store.size()).toBe(40);
    const [[neighbour]] = await store.compareAndAddBatch([entry('again', vectors[10])]);
    expect(neighbour.similarity).toBeLessThan(0.99);
    const [[living]] = await store.compareAndAddBatch([entry('again', vectors[90])]);
    expect(living).toEqual({ label: '90', similarity: expect.closeTo(1, 6) });
    expect(await store.sweep()).toBe(60);
    expect(await store.size()).toBe(42);
  });

  test('an HNSW index is used and finds the same as looking at all, nearly always', async () => {
    const database = pool();
    const store = await migrated({ index: 'hnsw', pool: database, table: 'indexed' });
    const vectors = Array.from({ length: 3000 }, (_, seed) => clusteredVector(seed, 20));
    const comparisons = await addAll(store, vectors);
    const expected = inCache(vectors, { maxElements: 3000 });
    const misses = comparisons.filter(
      ([neighbour], index) =>
        index > 0 && Math.abs(neighbour.similarity - expected[index].first.similarity) > 1e-6,
    );
    expect(misses.length).toBeLessThan(30);
    await database.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await database.query(
      "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'indexed_hnsw'",
    );
    expect(Number(rows[0].idx_scan)).toBeGreaterThan(2000);
  });

  test('index exact looks at all, also where another process has made an index', async () => {
    const database = pool();
    const exact = await migrated({ pool: database, table: 'both' });
    await migrated({ pool: database, table: 'both', index: 'hnsw' });
    await addAll(
      exact,
      Array.from({ length: 500 }, (_, seed) => clusteredVector(seed)),
    );
    await exact.nearest(clusteredVector(1), 5, MODEL);
    await database.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await database.query(
      "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'both_hnsw'",
    );
    expect(Number(rows[0].idx_scan)).toBe(0);
  });
});
