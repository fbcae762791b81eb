'use strict';

// The store in PostgreSQL of traces: what is particular to it. conformance.node.spec.js has what all stores do.

const { randomUUID } = require('node:crypto');

const { LocalStore, Scorer, TraceMemory } = require('../..');
const { makeTrace } = require('../support/make-trace.js');
const { warningsWhile } = require('../support/warnings.js');
const {
  MODEL,
  changeQueries,
  clusteredVector,
  describeWithPostgres,
  entriesOf,
  expectRejection,
  lostConnection,
  rejection,
  useServer,
} = require('../support/store.js');

/** Words of a small world: some in most traces, some in those of a kind, some in one. */
function traceOf(seed) {
  const steps = Array.from({ length: 6 }, (_, step) => ({
    type: 'thought',
    content: `please check the order${(seed * 7 + step) % 40} of user${seed % 50} topic${seed % 23}a${step} item${seed}x${step}`,
  }));
  return {
    ...makeTrace({ objective: `topic${seed % 23} for user${seed % 50}`, steps }),
    id: `kp:trace:${seed}`,
  };
}

const range = (count, from = 0) => Array.from({ length: count }, (_, index) => traceOf(from + index));

describeWithPostgres('PostgresVectorStore of traces', () => {
  const { migrated, pool, store } = useServer();

  test('needs no extension', async () => {
    await migrated({ novelty: 'lexical', table: 'plain' });
    await migrated({ novelty: 'full', table: 'plain_full' });
    // Once more it only checks.
    await store({ novelty: 'lexical', table: 'plain' }).migrate();
    const { rows } = await pool().query("SELECT extname FROM pg_extension WHERE extname = 'vector'");
    expect(rows).toEqual([]);
  });

  test('a scorer compares by it as by a memory, and nearly so with many traces', async () => {
    const table = 'scored';
    const scorer = new Scorer({ memory: await migrated({ novelty: 'lexical', table }) });
    const plain = new Scorer({ memory: new TraceMemory() });
    const differences = [];
    for (let from = 0; from < 400; from += 40) {
      const traces = range(40, from);
      const expected = await Promise.all(traces.map((trace) => plain.explain(trace)));
      const found = await Promise.all(traces.map((trace) => scorer.explain(trace)));
      for (const [index, { dimensions, nearest, noveltyBasis }] of found.entries()) {
        expect(noveltyBasis).toBe(from + index === 0 ? 'empty-store' : 'store');
        differences.push(Math.abs(dimensions.novelty - expected[index].dimensions.novelty));
        // Up to 64 traces in all, they are compared as a memory does.
        if (from > 0) continue;
        // A store does not know how words are spelled.
        const { sharedWords, newWords, ...plainly } = expected[index].nearest ?? {};
        expect(nearest ?? {}).toMatchObject(plainly);
      }
    }
    expect(Math.max(...differences.slice(0, 40))).toBe(0);
    expect(differences.filter((difference) => difference > 0.05).length).toBeLessThan(20);
    // A trace that is stored is found, however many there are.
    for (const seed of [0, 123, 399]) {
      const { dimensions } = await scorer.explain(traceOf(seed), { remember: false });
      expect(dimensions.novelty).toBeLessThan(1e-9);
    }
    const { rows } = await pool().query(`SELECT position, octet_length(data) AS bytes FROM ${table}_summary`);
    expect(Number(rows[0].position)).toBeGreaterThan(300);
    expect(rows[0].bytes).toBeGreaterThan(1000);
  });

  test('more traces with embeddings than P is made of', async () => {
    const captured = await entriesOf(range(320));
    const entries = captured.map((entry, seed) => ({
      ...{ ...entry, method: 'full', model: MODEL },
      vectors: [clusteredVector(seed)],
    }));
    const full = await migrated({ novelty: 'full', table: 'many_embeddings' });
    const memory = new LocalStore(new TraceMemory({ novelty: 'full' }));
    for (let from = 0; from < 320; from += 64) {
      await full.compareAndAddBatch(entries.slice(from, from + 64));
      await memory.compareAndAddBatch(entries.slice(from, from + 64));
    }
    for (const seed of [0, 150, 319]) {
      const query = { ...entries[seed], vectors: [clusteredVector(seed + 1)] };
      const [[found], [expected]] = [
        await full.nearestTraces(query, 1),
        await memory.nearestTraces(query, 1),
      ];
      expect(found.label).toBe(`kp:trace:${seed}`);
      expect(found.contained).toBe(1);
      const [one] = await full.nearestTraces(entries[seed], 1);
      expect(one.embedded).toBeCloseTo(1, 5);
      expect(Math.abs(one.embedded - found.embedded)).toBeGreaterThan(0.01);
      expect(found.similarity).toBeCloseTo(expected.similarity, 5);
    }
  });

  test('a table is of one kind', async () => {
    for (const [made, other] of [
      ['lexical', 'prefix'],
      ['full', 'lexical'],
      ['prefix', 'full'],
    ]) {
      const table = `kind_${made}`;
      await migrated({ novelty: made, table });
      await expectRejection(
        store({ novelty: other, table }).migrate(),
        'ERR_STORE_OTHER_METHOD',
        `the tables of ${table} are of novelty '${made}', not of '${other}'`,
      );
    }
  });

  test('a repeated call gets the first answer, despite additions in between', async () => {
    const table = 'again';
    const others = await migrated({ novelty: 'lexical', table, maxElements: 80 });
    const entries = await entriesOf(range(102));
    for (const from of [0, 50]) await others.compareAndAddBatch(entries.slice(from, from + 50));
    const late = pool();
    let meanwhile = () => others.compareAndAdd({ ...entries[100], id: 'meanwhile' });
    changeQueries(late, (query) => async (config) => {
      // When it has looked, and is about to add.
      if (/_add"?\(/.test(config.text)) await meanwhile?.();
      return query(config);
    });
    const mine = store({ novelty: 'lexical', table, pool: late });
    const call = randomUUID();
    const batch = [entries[100], entries[101]];
    const first = await mine.compareAndAddBatch(batch, { call });
    expect(first[0]).toMatchObject([{ label: 'meanwhile', similarity: 1 }]);
    meanwhile = undefined;
    expect(await mine.compareAndAddBatch(batch, { call })).toEqual(first);
    expect(await others.size()).toBe(80);
    // What is deleted by now is left out, unless that is all.
    await pool().query(`DELETE FROM ${table} WHERE position < 100`);
    const [[again]] = await mine.compareAndAddBatch(batch, { call });
    expect(again).toMatchObject({ label: 'meanwhile', contained: 1 });
    await pool().query(`DELETE FROM ${table} WHERE position = 100`);
    await expectRejection(
      mine.compareAndAddBatch(batch, { call }),
      'ERR_STORE_ALREADY_STORED',
      'all that it was compared with is deleted by now',
    );
  });

  test('a call with a lost answer is stored once, even if a part is evicted before flush', async () => {
    const table = 'lost_and_swept';
    const others = await migrated({ novelty: 'lexical', table });
    await new Scorer({ memory: others }).evaluateValues(range(80));
    const unreliable = pool();
    let lost;
    let isDown = false;
    changeQueries(unreliable, (query) => async (config) => {
      if (isDown) throw lostConnection();
      const answer = await query(config);
      const labels = config.values?.find(
        (value) => Array.isArray(value) && `${value[1]}`.startsWith('kp:trace'),
      );
      if (lost !== undefined || labels === undefined) return answer;
      // The addition is committed, and its answer is lost.
      lost = labels;
      isDown = true;
      throw lostConnection();
    });
    const mine = store({ novelty: 'lexical', table, pool: unreliable });
    const scorer = new Scorer({ memory: mine, fallback: new TraceMemory() });
    await warningsWhile(async () => {
      await scorer.evaluateValues(range(8, 100));
      expect(lost.length).toBeGreaterThan(1);
      await pool().query(`DELETE FROM ${table} WHERE label = $1`, [lost[0]]);
      isDown = false;
      await scorer.flush();
    });
    const { rows } = await pool().query(
      `SELECT label FROM ${table} WHERE position >= 80 ORDER BY position, label`,
    );
    const expected = range(8, 100).map(({ id }) => id);
    expect(rows.map(({ label }) => label).sort()).toEqual(expected.filter((label) => label !== lost[0]));
  });

  test('a call whose bytes do not fit into a string rejects, and leaves the only connection of the pool free', async () => {
    const database = pool({ max: 1 });
    const made = await migrated({ novelty: 'lexical', table: 'unwritable', pool: database });
    const [entry] = await entriesOf([traceOf(1)]);
    const { toString: textOf } = Buffer.prototype;
    // As with more than half a gigabyte of words.
    Buffer.prototype.toString = function (encoding, ...range) {
      if (encoding === 'hex') throw new RangeError('Invalid string length');
      return textOf.call(this, encoding, ...range);
    };
    try {
      expect((await rejection(made.compareAndAdd(entry))).message).toContain('Invalid string length');
    } finally {
      Buffer.prototype.toString = textOf;
    }
    expect(database.totalCount - database.idleCount).toBe(0);
    expect(await made.compareAndAdd(entry)).toEqual([null]);
  });

  test('options of vectors are refused', () => {
    for (const option of [{ index: 'hnsw' }, { efSearch: 10 }]) {
      expect(() => store({ novelty: 'lexical', ...option })).toThrow(
        `options.${Object.keys(option)[0]} is not an option of this call`,
      );
    }
  });

  test('a sweep deletes the words of its traces', async () => {
    const swept = await migrated({ novelty: 'lexical', table: 'swept', maxElements: 10 });
    const scorer = new Scorer({ memory: swept });
    for (let seed = 0; seed < 5; seed++) await scorer.evaluateValue(traceOf(seed));
    // The postings of a word lie together for thousands of positions.
    await pool().query('UPDATE swept SET position = position + 1000000');
    await pool().query('UPDATE swept_meta SET next_position = 1000005');
    for (let seed = 5; seed < 25; seed++) await scorer.evaluateValue(traceOf(seed));
    const blocks = 'SELECT DISTINCT block > 0 AS later FROM swept_words ORDER BY later';
    expect((await pool().query(blocks)).rows).toEqual([{ later: false }, { later: true }]);
    expect(await swept.sweep()).toBe(15);
    expect((await pool().query(blocks)).rows).toEqual([{ later: true }]);
    expect(await swept.size()).toBe(10);
  });

  test('an agent needs the privileges of the documentation, and no more', async () => {
    const owner = await migrated({ novelty: 'lexical', table: 'granted' });
    const filling = new Scorer({ memory: owner });
    for (let seed = 0; seed < 70; seed++) await filling.evaluateValue(traceOf(seed));
    await pool().query(`CREATE ROLE agent LOGIN;
      GRANT SELECT, INSERT ON granted TO agent;
      GRANT SELECT, INSERT, UPDATE (data) ON granted_words TO agent;
      GRANT SELECT, UPDATE (position, data, common_bytes, making) ON granted_summary TO agent;
      GRANT SELECT, UPDATE (next_position, model, dtype, method) ON granted_meta TO agent`);
    const granted = store({ novelty: 'lexical', table: 'granted', pool: pool({ user: 'agent' }) });
    const scorer = new Scorer({ memory: granted });
    for (let seed = 70; seed < 76; seed++) await scorer.evaluateValue(traceOf(seed));
    expect(await granted.size()).toBe(76);
    await expect(granted.sweep()).rejects.toMatchObject({ code: 'ERR_STORE' });
  });

  test('a damaged trace is told of', async () => {
    const damaged = await migrated({ novelty: 'lexical', table: 'damaged' });
    const scorer = new Scorer({ memory: damaged });
    await scorer.evaluateValue(traceOf(1));
    await pool().query("UPDATE damaged SET words = '\\x00'");
    await expectRejection(scorer.evaluateValue(traceOf(2)), 'ERR_STORE', 'the table of the store is damaged');
  });
});
