'use strict';

// How many statements a call of the store in PostgreSQL takes: each is a round trip.

const { Scorer } = require('../..');
const { makeTrace } = require('../support/make-trace.js');
const { clusteredVector, describeWithPostgres, entry, useServer } = require('../support/store.js');

describeWithPostgres('statements of PostgresVectorStore', () => {
  const { migrated, pool } = useServer();

  /** A store, and the number of statements that a call of it sends. */
  async function counted(options) {
    const counting = pool();
    let statements = 0;
    counting.on('connect', (client) => {
      const { query } = client;
      client.query = (...args) => {
        statements += 1;
        return query.apply(client, args);
      };
    });
    const store = await migrated({ pool: counting, ...options });
    const statementsOf = async (call) => {
      const before = statements;
      await call();
      return statements - before;
    };
    return { store, statementsOf };
  }

  const vectors = (from, count) =>
    Array.from({ length: count }, (_, i) => entry(`kp:${from + i}`, clusteredVector(from + i)));

  test('compareAndAdd and compareAndAddBatch of vectors take one', async () => {
    const { store, statementsOf } = await counted();
    for (const [one] of [vectors(0, 1), vectors(1, 1)])
      expect(await statementsOf(() => store.compareAndAdd(one))).toBe(1);
    expect(await statementsOf(() => store.compareAndAddBatch(vectors(2, 64)))).toBe(1);
  });

  test.each(['lexical', 'full'])(
    'a call of a trace with %s takes two with 64 traces stored, and three with more',
    async (novelty) => {
      const { store, statementsOf } = await counted({ novelty });
      const scorer = new Scorer({ memory: store });
      const traces = Array.from({ length: 160 }, (_, i) =>
        makeTrace({ objective: `order${i} of user${i % 9} about topic${i % 5}` }),
      );
      const taken = [];
      for (const trace of traces) taken.push(await statementsOf(() => scorer.evaluateValue(trace)));
      // Those of the first look have all that is compared.
      expect(new Set(taken.slice(0, 65))).toEqual(new Set([2]));
      // The first statistics are looked for once more. Later ones, due when a 32nd of the traces has come since, take two statements.
      const [first, ...later] = taken.slice(65);
      expect(first).toBe(6);
      expect(new Set(later)).toEqual(new Set([3, 5]));
      expect(later.filter((count) => count === 3).length).toBeGreaterThan(later.length / 2);
    },
  );
});
