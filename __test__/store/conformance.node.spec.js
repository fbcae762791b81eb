'use strict';

// Our stores pass the tests that any store must pass, and stores with a fault do not.

const { LocalStore, TraceMemory, VectorCache } = require('../..');
const { noveltyStoreConformance } = require('../../conformance.js');
const { OracleStore } = require('../oracle/store.js');
const { describeWithPostgres, useServer } = require('../support/store.js');

describe.each([
  ['prefix', VectorCache],
  ['lexical', TraceMemory],
  ['full', TraceMemory],
])('LocalStore for %s', (novelty, Memory) => {
  const own = novelty === 'prefix' ? {} : { novelty };
  noveltyStoreConformance({
    ...{ test, ...own },
    createStore: (limits) => new LocalStore(new Memory({ ...own, maxElements: 2000, ...limits })),
    openAgain: (store) => store,
    limits: { maxElements: true, ttlMs: true },
  });
});

describe.each(['prefix', 'lexical', 'full'])('LocalStore compares by %s as a plain loop does', (novelty) => {
  const PARTS = novelty === 'prefix' ? ['similarity'] : ['similarity', 'lexical', 'contained', 'embedded'];
  const numbersOf = (comparisons) =>
    comparisons.flat().flatMap((neighbour) => PARTS.map((part) => neighbour?.[part] ?? -1));
  let compared = 0;

  class Compared extends LocalStore {
    #oracle;

    constructor(memory) {
      super(memory);
      this.#oracle = new OracleStore(novelty, memory.maxElements);
    }
    async compareAndAdd(entry) {
      return (await this.compareAndAddBatch([entry]))[0];
    }
    async compareAndAddBatch(entries) {
      const found = await super.compareAndAddBatch(entries);
      const expected = entries.map((entry) => this.#oracle.compareAndAdd(entry));
      const numbers = numbersOf(expected);
      for (const [at, number] of numbersOf(found).entries())
        expect(Math.abs(number - numbers[at])).toBeLessThan(1e-6);
      compared += entries.length;
      return found;
    }
  }

  const createStore = (limits) => {
    const settings = { maxElements: 1000, ...limits };
    return new Compared(
      novelty === 'prefix' ? new VectorCache(settings) : new TraceMemory({ novelty, ...settings }),
    );
  };
  const names = ['is compared with those', 'a batch is one', 'many entries', 'the oldest are displaced'];
  const tests = noveltyStoreConformance({ novelty, createStore, limits: { maxElements: true } });
  const chosen = tests.filter(({ name }) => names.some((part) => name.includes(part)));

  test.each(chosen)('$name', ({ run }) => run());

  test('all of them', () => {
    expect(chosen).toHaveLength(4);
    expect(compared).toBeGreaterThan(200);
  });
});

describeWithPostgres('PostgresVectorStore', () => {
  const { store, migrated } = useServer();

  let number = 0;
  /** The tests of the stores that these options make. */
  const conformance = (given, expected) => {
    const tables = new WeakMap();
    noveltyStoreConformance({
      test,
      createStore: async (limits) => {
        const settings = { ...given, table: `conformance_${++number}`, ...limits };
        const made = await migrated(settings);
        tables.set(made, settings);
        return made;
      },
      openAgain: (made) => store(tables.get(made)),
      destroyStore: (made) => made.close(),
      limits: { maxElements: true, ttlMs: true },
      knowsCalls: true,
      ...expected,
    });
  };

  describe.each(['lexical', 'full'])('novelty %s', (novelty) => {
    conformance({ novelty }, { novelty, isExact: false });
  });

  describe.each(['exact', 'hnsw'])('index %s', (index) => {
    conformance({ index }, { isExact: index === 'exact' });
  });
});

describe('the tests find a store that', () => {
  class Faulty extends LocalStore {
    constructor(limits) {
      super(new VectorCache({ maxElements: 2000, ...limits }));
    }
  }

  /** A store that adds what `change` makes of the entries of a batch. */
  const changing = (change) =>
    class extends Faulty {
      compareAndAddBatch(entries, options) {
        return super.compareAndAddBatch(change(entries), options);
      }
    };

  /** The nearest of each vector of entries, which are not added. */
  const compared = (store, entries) => {
    const nearest = async (vector, model) => (await store.nearest(vector, 1, model))[0] ?? null;
    return Promise.all(
      entries.map(({ vectors, model }) => Promise.all(vectors.map((vector) => nearest(vector, model)))),
    );
  };
  const any = { model: 'any', dtype: 'any' };
  const ofAny = (entries) => entries.map((entry) => ({ ...entry, model: any }));

  const faults = {
    'adds before it compares': class extends Faulty {
      async compareAndAddBatch(entries, options) {
        await super.compareAndAddBatch(entries, options);
        return compared(this, entries);
      }
    },
    'compares a batch only with what was before it': class extends Faulty {
      async compareAndAddBatch(entries, options) {
        const comparisons = await compared(this, entries);
        await super.compareAndAddBatch(entries, options);
        return comparisons;
      }
    },
    'waits between comparing and adding': class extends Faulty {
      async compareAndAdd(entry, options) {
        const [comparison] = await compared(this, [entry]);
        await new Promise((resolve) => setTimeout(resolve, 5));
        await super.compareAndAddBatch([entry], options);
        return comparison;
      }
    },
    'takes any model': class extends changing(ofAny) {
      nearest(vector, count, _model, options) {
        return super.nearest(vector, count, any, options);
      }
    },
    'stores half of a batch that it refuses': class extends Faulty {
      async compareAndAddBatch(entries, options) {
        const comparisons = [];
        for (const entry of entries) comparisons.push((await super.compareAndAddBatch([entry], options))[0]);
        return comparisons;
      }
    },
    'takes two models at once while it is empty': class extends Faulty {
      async compareAndAddBatch(entries, options) {
        if ((await this.size()) > 0) return super.compareAndAddBatch(entries, options);
        const alike = entries.map((entry) => ({ ...entry, model: entries[0].model }));
        return super.compareAndAddBatch(alike, options);
      }
    },
    'stores what is before an id that it refuses': class extends Faulty {
      async compareAndAddBatch(entries, options) {
        const index = entries.findIndex((entry) => typeof entry?.id === 'number');
        if (index > 0) await super.compareAndAddBatch(entries.slice(0, index), options);
        return super.compareAndAddBatch(entries, options);
      }
    },
    'forgets labels': changing((entries) => entries.map((entry) => ({ ...entry, id: null }))),
    'pays no heed to signals': class extends Faulty {
      async compareAndAddBatch(entries) {
        return super.compareAndAddBatch(entries);
      }
    },
    'stores what a signal has stopped': class extends Faulty {
      async compareAndAdd(entry, options) {
        // Without the signal: on a busy machine it would stop all of them in time.
        const comparison = await super.compareAndAdd(entry);
        await new Promise((resolve) => setTimeout(resolve, 30));
        options?.signal?.throwIfAborted();
        return comparison;
      }
    },
    'gives the nearest in no order': class extends Faulty {
      async nearest(...args) {
        return (await super.nearest(...args)).reverse();
      }
    },
    'holds more than it should': class extends Faulty {
      constructor({ ttlMs }) {
        super({ ttlMs });
      }
    },
    'never forgets': class extends Faulty {
      constructor({ maxElements = 2000 }) {
        super({ maxElements });
      }
    },
  };

  async function failuresOf(Store, more) {
    const tests = noveltyStoreConformance({
      createStore: (limits) => new Store(limits),
      limits: { maxElements: true, ttlMs: true },
      ...more,
    });
    const failures = [];
    for (const { name, run } of tests) await run().catch(() => failures.push(name));
    return failures;
  }

  test.each(Object.entries(faults))('%s', async (_, Store) => {
    expect(await failuresOf(Store)).not.toEqual([]);
  });

  test('has no fault: none', async () => {
    expect(await failuresOf(Faulty)).toEqual([]);
  });

  class Knowing extends Faulty {
    calls = new Map();

    async compareAndAdd(entry, options) {
      return (await this.compareAndAddBatch([entry], options))[0];
    }
    async compareAndAddBatch(entries, options) {
      const { call } = options ?? {};
      if (call === undefined) return super.compareAndAddBatch(entries, options);
      if (!this.calls.has(call)) this.calls.set(call, super.compareAndAddBatch(entries, options));
      return this.calls.get(call);
    }
  }

  test('stores a call that is made twice', async () => {
    expect(await failuresOf(Faulty, { knowsCalls: true })).toHaveLength(2);
    expect(await failuresOf(Knowing, { knowsCalls: true })).toEqual([]);
  });
});
