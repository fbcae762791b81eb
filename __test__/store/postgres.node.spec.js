'use strict';

// A store in PostgreSQL: what it finds beside a memory of this process, its limits, its tables, and what goes wrong with a database.

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

const { Scorer, TraceMemory } = require('../..');
const { makeTrace } = require('../support/make-trace.js');
const { readTraces, sharedTraces } = require('../support/paths.js');
const {
  changeQueries,
  describeWithPostgres,
  entry,
  expectRejection,
  rejection,
  useServer,
} = require('../support/store.js');
const { MemoryStore, entriesOf } = require('../support/memory-store.js');
const { clusteredVector, randomVector } = require('../support/vectors.js');
const { warningsWhile } = require('../support/warnings.js');

const NOVELTIES = ['prefix', 'lexical', 'full'];
const CALL = '8c5ad0c3-0d36-4d4e-b2a5-0a3a5d8f6c11';

/** Runs of tasks, whose words and embeddings resemble one another. */
function entriesFor(novelty, count, first = 0) {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const embedded = numbers.map((seed) => entry(`${seed}`, clusteredVector(seed, 40)));
  if (novelty === 'prefix') return embedded;
  const task = (seed) => ({
    ...makeTrace({
      objective: `task${seed % 40} of user${seed} who asks for item${seed % 7}`,
      steps: [0, 1, 2].map((step) => ({
        type: 'thought',
        content: `look for value${(seed * 31 + step) % 97} in ${[1, 2, 3, 4].map((part) => `table${seed % 40}x${step}x${part}`)}`,
      })),
    }),
    id: `${seed}`,
  });
  return entriesOf(numbers.map(task)).then((entries) =>
    entries.map((each, index) =>
      novelty === 'lexical'
        ? each
        : { ...each, vector: embedded[index].vector, model: embedded[index].model },
    ),
  );
}

const memoryOf = (method, bounds) => new MemoryStore(method, undefined, bounds);

const byId = ({ id, similarity }) => ({ id, similarity });

describeWithPostgres('PostgresStore', () => {
  const context = useServer();
  const { pool, store } = context;

  describe.each([...NOVELTIES, 'hnsw'])('%s', (kind) => {
    const hnsw = kind === 'hnsw';
    const novelty = hnsw ? 'prefix' : kind;
    const make = (more) => store({ method: novelty, hnsw, ...more });

    test('finds what a memory finds, one after another and in batches', async () => {
      const [mine, memory] = [make(), memoryOf(novelty)];
      const entries = await entriesFor(novelty, 320);
      const sizes = [1, 1, 64, 30, 1, 2, 61, 64, 1, 1, 30, 64];
      const differences = [];
      let [alike, same] = [0, 0];
      for (let first = 0, turn = 0; first < entries.length; turn++) {
        const part = entries.slice(first, first + sizes[turn]);
        const [found, expected] = [
          await mine.compareAndAdd(part),
          await memory.compareAndAdd(part, `${first}`),
        ];
        for (const [index, own] of found.entries()) {
          const right = expected[index];
          differences.push(Math.abs((own?.similarity ?? -1) - (right?.similarity ?? -1)));
          // Others have many that are about as far.
          if (right === null || right.similarity < 0.5) continue;
          alike++;
          // Runs of a task may be about as similar.
          if (own.id === right.id || Math.abs(own.similarity - right.similarity) < 0.01) same++;
        }
        first += part.length;
      }
      expect(alike).toBeGreaterThan(200);
      expect(same / alike).toBeGreaterThanOrEqual(0.97);
      expect(Math.max(...differences)).toBeLessThan(novelty === 'prefix' ? 1e-5 : 0.05);
      expect(differences.reduce((sum, each) => sum + each, 0) / entries.length).toBeLessThan(0.005);
      // A remembered trace is found, and nothing is added by a question.
      for (const each of entries.slice(0, 5)) {
        const nearest = await mine.compare(each);
        expect(nearest.id).toBe(each.id);
        expect(nearest.similarity).toBeCloseTo(1, 6);
      }
      expect(await mine.size()).toBe(320);
    });

    test('compares with the newest maxElements traces, and deletes older ones', async () => {
      const bounds = { maxElements: 5 };
      const table = `few_${kind}`;
      const [mine, memory] = [make({ table, ...bounds }), memoryOf(novelty, bounds)];
      const entries = await entriesFor(novelty, 30);
      for (let first = 0; first < 30; first += 3) {
        const part = entries.slice(first, first + 3);
        const [found, expected] = [
          await mine.compareAndAdd(part),
          await memory.compareAndAdd(part, `${first}`),
        ];
        for (const [index, own] of found.entries()) {
          expect(own?.similarity ?? -1).toBeCloseTo(expected[index]?.similarity ?? -1, 5);
        }
      }
      expect(await mine.size()).toBe(5);
      const { rows } = await pool().query(`SELECT label FROM ${table} ORDER BY position`);
      expect(rows.map(({ label }) => label)).toEqual(['25', '26', '27', '28', '29']);
      if (novelty === 'prefix') return;
      const { rows: words } = await pool().query(`SELECT DISTINCT trace::int FROM ${table}_words ORDER BY 1`);
      expect(words.map(({ trace }) => trace)).toEqual([25, 26, 27, 28, 29]);
    });

    test('ignores expired traces', async () => {
      const table = `old_${kind}`;
      const mine = make({ table, ttlMs: 60_000 });
      const entries = await entriesFor(novelty, 4);
      await mine.compareAndAdd(entries.slice(0, 2));
      await pool().query(`UPDATE ${table} SET added = added - interval '61 s' WHERE label = '0'`);
      expect(await mine.size()).toBe(1);
      expect((await mine.compare(entries[0])).id).toBe('1');
      await pool().query(`UPDATE ${table} SET added = added - interval '61 s'`);
      expect(await mine.compare(entries[0])).toBe(null);
      expect(await mine.compareAndAdd([entries[2]])).toEqual([null]);
      expect(await mine.size()).toBe(1);
    });

    test('stores a call once, however often and at once it is made, with the same answer', async () => {
      const mine = make();
      const entries = await entriesFor(novelty, 12);
      await mine.compareAndAdd(entries.slice(0, 4));
      const added = entries.slice(4, 8);
      const answers = await Promise.all([0, 1, 2].map(() => mine.compareAndAdd(added, CALL)));
      await mine.compareAndAdd(entries.slice(8));
      answers.push(await mine.compareAndAdd(added, CALL));
      for (const answer of answers) expect(answer.map(byId)).toEqual(answers[0].map(byId));
      expect(await mine.size()).toBe(12);
    });

    test('repeats a call whose answer is lost, which does not find itself', async () => {
      const database = pool();
      const mine = make({ pool: database });
      const entries = await entriesFor(novelty, 6);
      await mine.compareAndAdd(entries.slice(0, 3));
      const expected = await mine.compare(entries[4]);
      let lost = 0;
      changeQueries(database, (query) => async (config) => {
        const result = await query(config);
        if (config.text === 'COMMIT' && lost++ === 0) {
          throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
        }
        return result;
      });
      const [found] = await mine.compareAndAdd([entries[4]]);
      expect(lost).toBe(2);
      expect(byId(found)).toEqual(byId(expected));
      expect(await mine.size()).toBe(4);
    });

    test('refuses another novelty, and another model', async () => {
      const table = `other_${kind}`;
      const mine = make({ table });
      const [one, two] = await entriesFor(novelty, 2);
      await mine.compareAndAdd([one]);
      const others = NOVELTIES.filter((each) => each !== novelty);
      for (const other of others) {
        const call = store({ method: other, table }).size();
        await expectRejection(call, 'ERR_MEMORY_MISMATCH', `'${novelty}', not of '${other}'`);
      }
      if (novelty === 'lexical') return;
      const q8 = { ...two, model: { ...two.model, dtype: 'q8' } };
      await expectRejection(mine.compareAndAdd([q8]), 'ERR_MEMORY_MISMATCH', 'fp32', 'q8');
      expect(await mine.size()).toBe(1);
    });
  });

  test('inspect shows nothing of the pool, which has a password', () => {
    const shown = require('node:util').inspect(store({ pool: pool({ password: 'secret' }) }), { depth: 9 });
    expect(shown).not.toContain('secret');
  });

  const airline = fs.existsSync(sharedTraces) ? readTraces(sharedTraces) : undefined;
  (airline ? test : test.skip).each(['lexical', 'full'])(
    'a scorer of novelty %s scores real runs as with a memory',
    async (novelty) => {
      const scorer = new Scorer({ memory: store({ method: novelty }) });
      const expected = new Scorer({ memory: new TraceMemory({ method: novelty }) });
      const [ours, theirs] = [await scorer.scoreAll(airline), await expected.scoreAll(airline)].map(
        (scores) => scores.map(({ value }) => value),
      );
      for (const [index, score] of ours.entries()) expect(score).toBeCloseTo(theirs[index], 1.5);
      let same = 0;
      for (const trace of airline) {
        const [one, two] = [scorer, expected].map((each) => each.score(trace, { remember: false }));
        same += Number((await one).nearest.id === (await two).nearest.id);
      }
      expect(same / airline.length).toBeGreaterThanOrEqual(0.97);
    },
  );

  test('an index that gives up among expired embeddings is stood in for by a scan', async () => {
    const mine = store({ method: 'prefix', hnsw: true, table: 'expired', ttlMs: 60_000 });
    await mine.size();
    const vectors = Array.from({ length: 1000 }, (_, index) => `[${clusteredVector(index, 2)}]`);
    await pool().query(
      `INSERT INTO expired (position, call, entry, added, embedding)
       SELECT number, gen_random_uuid(), 1, now() - interval '1 day', given::vector
       FROM unnest($1::text[]) WITH ORDINALITY AS all_of(given, number)`,
      [vectors],
    );
    await mine.compareAndAdd([entry('living', randomVector(5_000_000))]);
    const database = pool();
    changeQueries(
      database,
      (query) => (config) =>
        query(
          config.text.startsWith('BEGIN')
            ? { ...config, text: `${config.text}; SET LOCAL hnsw.max_scan_tuples = 1` }
            : config,
        ),
    );
    const limited = store({ pool: database, method: 'prefix', hnsw: true, table: 'expired', ttlMs: 60_000 });
    expect((await limited.compare(entry('', clusteredVector(0, 2)))).id).toBe('living');
  });

  test('an HNSW index is used', async () => {
    const mine = store({ method: 'prefix', hnsw: true, table: 'indexed' });
    await mine.compareAndAdd(await entriesFor('prefix', 60));
    await mine.compareAndAdd(await entriesFor('prefix', 60, 60));
    // Reported some time later.
    const scans = "SELECT 1 FROM pg_stat_user_indexes WHERE indexrelname = 'indexed_hnsw' AND idx_scan > 0";
    const observer = pool();
    while ((await observer.query(scans)).rows.length === 0) await sleep(50);
  });

  describe('tables', () => {
    test('many processes that open a store at once create them once', async () => {
      const stores = Array.from({ length: 8 }, () =>
        store({ method: 'prefix', hnsw: true, table: 'at_once' }),
      );
      expect(await Promise.all(stores.map((each) => each.size()))).toEqual(Array(8).fill(0));
    });

    test('are in the named schema, which is not made, or in the first of the search path', async () => {
      await expectRejection(store({ table: 'fleet.traces' }).size(), 'ERR_STORE_SCHEMA', 'fleet');
      await pool().query('CREATE SCHEMA fleet; CREATE SCHEMA "Own One"');
      expect(await store({ table: 'fleet.traces' }).size()).toBe(0);
      const own = pool({ options: '-c search_path="Own\\ One",public' });
      expect(await store({ pool: own, table: 'traces "x"' }).size()).toBe(0);
      const { rows } = await pool().query(
        "SELECT schemaname, tablename FROM pg_tables WHERE tablename LIKE 'traces%' ORDER BY 1, 2",
      );
      expect(rows.map(({ schemaname, tablename }) => `${schemaname}.${tablename}`)).toEqual([
        'Own One.traces "x"',
        'Own One.traces "x"_words',
        'fleet.traces',
        'fleet.traces_words',
      ]);
      const nowhere = pool({ options: '-c search_path=' });
      await expectRejection(store({ pool: nowhere }).size(), 'ERR_STORE_SCHEMA', 'search path');
    });

    test('of another application are refused, and left as they are', async () => {
      await pool().query('CREATE TABLE theirs (id int); CREATE VIEW a_view AS SELECT 1 AS position');
      for (const table of ['theirs', 'a_view']) {
        await expectRejection(store({ table }).size(), 'ERR_STORE_SCHEMA', table);
      }
    });

    test('that are dropped meanwhile are an error', async () => {
      const mine = store({ table: 'dropped' });
      await mine.size();
      await pool().query('DROP TABLE dropped');
      await expectRejection(mine.size(), 'ERR_STORE_SCHEMA');
    });

    test('of damaged bytes are told of', async () => {
      const mine = store({ table: 'damaged' });
      const entries = await entriesFor('lexical', 3);
      await mine.compareAndAdd(entries.slice(0, 2));
      await pool().query(String.raw`UPDATE damaged SET words = '\x0102'`);
      await expectRejection(mine.compareAndAdd([entries[2]]), 'ERR_STORE', 'damaged');
      expect(await mine.size()).toBe(2);
    });

    test('an agent needs the privileges of the documentation, and no more', async () => {
      await pool().query(
        'CREATE ROLE agent LOGIN; CREATE SCHEMA shared; REVOKE CREATE ON SCHEMA public FROM PUBLIC',
      );
      await expectRejection(
        store({ pool: pool({ user: 'agent' }), table: 'shared.traces' }).size(),
        'ERR_STORE_SCHEMA',
      );
      for (const novelty of NOVELTIES) {
        const table = `shared.${novelty}`;
        await store({ table, method: novelty }).size();
        const page = fs.readFileSync(require.resolve('../../docs/shared-store.md'), 'utf8');
        const [, grants] = /```sql\n(GRANT[\s\S]*?)```/.exec(page);
        const own = grants
          .replaceAll('fleet.knowledgepulse_novelty', table)
          .replaceAll('SCHEMA fleet', 'SCHEMA shared')
          .split('\n')
          .filter((line) => novelty !== 'prefix' || !line.includes('_words'));
        await pool().query(own.join('\n'));
        const agents = store({ pool: pool({ user: 'agent' }), table, method: novelty, maxElements: 3 });
        const entries = await entriesFor(novelty, 6);
        for (const each of entries) await agents.compareAndAdd([each]);
        expect(await agents.size()).toBe(3);
        await rejection(pool({ user: 'agent' }).query(`UPDATE ${table} SET label = NULL`));
      }
    });
  });

  describe('faults', () => {
    test('a server that is away rejects calls, and works when it is back', async () => {
      const mine = store();
      const [one, two] = await entriesFor('lexical', 2);
      await mine.compareAndAdd([one]);
      await context.server.stop();
      await expectRejection(mine.compareAndAdd([two]), 'ERR_STORE_UNAVAILABLE');
      await expectRejection(mine.size(), 'ERR_STORE_UNAVAILABLE');
      await context.server.start();
      await mine.compareAndAdd([two]);
      expect(await mine.size()).toBe(2);
    });

    test('a server that restarts is not noticed by calls before and after', async () => {
      const mine = store();
      const [one, two] = await entriesFor('lexical', 2);
      await mine.compareAndAdd([one]);
      await context.server.stop();
      await context.server.start();
      await mine.compareAndAdd([two]);
      expect(await mine.size()).toBe(2);
    });

    test('a connection that is killed while it waits: the call is made again, and stored once', async () => {
      const mine = store({ table: 'waits' });
      const [one] = await entriesFor('lexical', 1);
      await mine.size();
      const locking = await pool().connect();
      await locking.query('BEGIN; LOCK TABLE waits IN ACCESS EXCLUSIVE MODE');
      const call = mine.compareAndAdd([one]);
      const killed =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%waits%' AND pid <> pg_backend_pid()";
      const observer = pool();
      while ((await observer.query(killed)).rows.length === 0) await sleep(10);
      await locking.query('ROLLBACK');
      locking.release();
      expect(await call).toEqual([null]);
      expect(await mine.size()).toBe(1);
    });

    test.each([
      ['a replica', { options: '-c default_transaction_read_only=on' }, 'read-only'],
      ['too short a time', { options: '-c statement_timeout=1', query_timeout: 1 }, 'timeout'],
    ])('%s is an error that passes, and stores nothing', async (_, connection, message) => {
      const table = `passes_${message.replace('-', '_')}`;
      const [one] = await entriesFor('lexical', 1);
      await store({ table }).size();
      const limited = store({ pool: pool(connection), table });
      await expectRejection(limited.compareAndAdd([one]), 'ERR_STORE_UNAVAILABLE', message);
      expect(await store({ table }).size()).toBe(0);
    });

    test('an error of the server ends the transaction, and the next call works', async () => {
      const database = pool({ max: 1 });
      const mine = store({ pool: database, table: 'refused' });
      const entries = await entriesFor('lexical', 2);
      await mine.size();
      await pool().query("ALTER TABLE refused ADD CHECK (label <> '0')");
      const error = await expectRejection(mine.compareAndAdd(entries), 'ERR_STORE', 'refused');
      expect(error.cause.code).toBe('23514');
      await mine.compareAndAdd([entries[1]]);
      expect(await mine.size()).toBe(1);
    });

    test('another isolation level by default makes no duplicates', async () => {
      const options = '-c default_transaction_isolation=serializable';
      const entries = await entriesFor('lexical', 1);
      const stores = [0, 1, 2, 3].map(() => store({ pool: pool({ options }), table: 'serial' }));
      const answers = await Promise.all(stores.map((each) => each.compareAndAdd(entries)));
      expect(answers.filter(([found]) => found === null)).toHaveLength(1);
      expect(await stores[0].size()).toBe(4);
    });

    test('ids that PostgreSQL cannot store are stored in part', async () => {
      const mine = store();
      const [one, two] = await entriesFor('lexical', 2);
      await mine.compareAndAdd([
        { ...one, id: 'a\0b\uD800c' },
        { ...two, id: null },
      ]);
      expect((await mine.compare(one)).id).toBe('a\uFFFDb\uFFFDc');
      expect((await mine.compare(two)).id).toBe(null);
    });

    test('a scorer goes on with its fallback while the server is away, and the store gets each trace once', async () => {
      const mine = store({ method: 'lexical', fallback: new TraceMemory({ method: 'lexical' }) });
      const scorer = new Scorer({ memory: mine });
      const traces = Array.from({ length: 6 }, (_, index) => ({
        ...makeTrace({ objective: `task ${index}` }),
        id: `${index}`,
      }));
      await warningsWhile(async () => {
        await scorer.scoreAll(traces.slice(0, 2));
        await context.server.kill();
        await scorer.scoreAll(traces.slice(2, 4));
        expect(await rejection(scorer.flush())).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });
        await context.server.start();
        await scorer.scoreAll(traces.slice(4));
        await scorer.flush();
      });
      expect(await mine.size()).toBe(6);
    });
  });
});

describeWithPostgres('PostgresStore on a server without pgvector', () => {
  const context = useServer({ settings: { extension_control_path: '/nonexistent' } });

  test('names the novelties that need no extension, which work', async () => {
    const error = await expectRejection(
      context.store({ method: 'prefix' }).size(),
      'ERR_STORE_SCHEMA',
      "use method 'lexical' or 'full'",
    );
    expect(error.message).toContain(error.cause.message);
    expect(await context.store({ method: 'full' }).size()).toBe(0);
  });
});
