'use strict';

// A store in PostgreSQL: what it finds beside a memory of this process, its limits, its tables, what goes wrong with a database, what others
// plant in it, and many processes at once, some of which are killed.

const { fork } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { Scorer, TraceMemory } = require('../..');
const { makeTrace, makeTraces } = require('../support/make-trace.js');
const {
  MODEL,
  MemoryStore,
  changeQueries,
  describeWithPostgres,
  entriesOf,
  entry,
  expectRejection,
  useServer,
} = require('./stores.js');
const { rejectionOf } = require('../support/refusals.js');
const { clusteredVector, randomVector } = require('../support/vectors.js');
const { warningsWhile } = require('../support/warnings.js');

const NOVELTIES = ['prefix', 'lexical', 'full'];
const CALL = '8c5ad0c3-0d36-4d4e-b2a5-0a3a5d8f6c11';

/** Runs of tasks, whose words and embeddings resemble one another. */
function entriesFor(novelty, count, first = 0) {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const embedded = numbers.map((seed) => entry(`${seed}`, clusteredVector(seed, 40)));
  if (novelty === 'prefix') return embedded;
  const task = (seed) =>
    makeTrace({
      id: `${seed}`,
      objective: `task${seed % 40} of user${seed} who asks for item${seed % 7}`,
      steps: [0, 1, 2].map((step) => ({
        type: 'thought',
        content: `look for value${(seed * 31 + step) % 97} in ${[1, 2, 3, 4].map((part) => `table${seed % 40}x${step}x${part}`)}`,
      })),
    });
  return entriesOf(numbers.map(task)).then((entries) =>
    entries.map((each, index) =>
      novelty === 'lexical'
        ? each
        : {
            ...each,
            packed: Buffer.concat([each.packed, new Uint8Array(embedded[index].vector.buffer)]),
            model: embedded[index].model,
          },
    ),
  );
}

/** What each planted object does: count the call, which no rollback undoes, and fail. */
const TRAP = `'BEGIN
  PERFORM pg_catalog.nextval(''public.planted_calls'');
  RAISE EXCEPTION ''a planted function was called'';
END'`;

/** Makes what is planted in a database, as the role `planter`. Skips what PostgreSQL refuses. */
const PLANT = `
SET ROLE planter;
DO $plant$
DECLARE
  planted record;
  kind text;
  other text;
  symbol text;
  number integer := 0;
  kinds constant text[] := '{bigint,bigint[],boolean,bytea,double precision,integer,name,oid,regclass,regnamespace,smallint,text,text[],timestamptz}';
BEGIN
  -- Those of PostgreSQL, under the same names with the same arguments, and with one text for each argument.
  FOR planted IN
    SELECT p.oid, p.proname, p.pronargs, p.proretset, p.prorettype::regtype AS result, oidvectortypes(p.proargtypes) AS arguments
    FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a') AND p.pronargs < 5
  LOOP
    FOREACH kind IN ARRAY ARRAY[planted.arguments, array_to_string(array_fill('text'::text, ARRAY[planted.pronargs]), ', ')] LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L',
          planted.proname, kind, CASE WHEN planted.proretset THEN 'SETOF' END, planted.result, ${TRAP});
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END LOOP;
  FOREACH kind IN ARRAY kinds LOOP
    EXECUTE format('CREATE OR REPLACE FUNCTION public.count(%s) RETURNS bigint LANGUAGE plpgsql AS %L', kind, ${TRAP});
  END LOOP;
  -- Operators, those of PostgreSQL and those that it has for no such pair.
  FOREACH symbol IN ARRAY '{=,<>,<,>,<=,>=,||,+,-,*,/}'::text[] LOOP
    FOREACH kind IN ARRAY kinds LOOP
      FOREACH other IN ARRAY kinds LOOP
        number := number + 1;
        EXECUTE format('CREATE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', number, kind, other,
          CASE WHEN symbol = '||' THEN 'bigint[]' WHEN symbol IN ('+', '-', '*', '/') THEN 'bigint' ELSE 'boolean' END, ${TRAP});
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap_%s)', symbol, kind, other, number);
      END LOOP;
    END LOOP;
  END LOOP;
  -- Types whose values a planted function checks.
  CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql AS ${TRAP};
  FOREACH kind IN ARRAY '{bytea,name,regclass,regnamespace,text,timestamptz,uuid}'::text[] LOOP
    EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%I CHECK (public.trap())', kind, kind);
  END LOOP;
  -- Views in place of the catalog.
  FOREACH kind IN ARRAY '{pg_am,pg_class,pg_extension,pg_index,pg_namespace,pg_proc,pg_settings,pg_stat_activity}'::text[] LOOP
    EXECUTE format('CREATE VIEW public.%I AS SELECT * FROM pg_catalog.%I WHERE public.trap()', kind, kind);
  END LOOP;
  GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
END
$plant$;
RESET ROLE;`;

const memoryOf = (method, bounds) => new MemoryStore(method, undefined, bounds);

/** What a store and a memory answer for each of the entries, which both get in batches of these sizes. */
async function answersOf(store, memory, entries, sizes) {
  const answers = [];
  for (const size of sizes) {
    const part = entries.slice(answers.length, answers.length + size);
    const found = await store.compare(part);
    const expected = await memory.compare(part, `${answers.length}`);
    answers.push(...found.map((own, index) => [own, expected[index]]));
  }
  return answers;
}

const byId = ({ id, similarity }) => ({ id, similarity });

describeWithPostgres('PostgresStore', () => {
  const context = useServer();
  const { pool, store } = context;

  describe.each([...NOVELTIES, 'hnsw'])('%s', (kind) => {
    const hnsw = kind === 'hnsw';
    const novelty = hnsw ? 'prefix' : kind;
    const make = (more) => store({ method: novelty, hnsw, ...more });

    test('PostgresStore compare finds what a memory finds, one after another and in batches', async () => {
      const [mine, memory] = [make(), memoryOf(novelty)];
      const entries = await entriesFor(novelty, 320);
      const sizes = [1, 1, 64, 30, 1, 2, 61, 64, 1, 1, 30, 64];
      const differences = [];
      let [alike, same] = [0, 0];
      for (const [own, right] of await answersOf(mine, memory, entries, sizes)) {
        differences.push(Math.abs((own?.similarity ?? -1) - (right?.similarity ?? -1)));
        // Others have many that are about as far.
        if (right === null || right.similarity < 0.5) continue;
        alike++;
        // Runs of a task may be about as similar.
        if (own.id === right.id || Math.abs(own.similarity - right.similarity) < 0.01) same++;
      }
      expect(alike).toBeGreaterThan(200);
      expect(same / alike).toBeGreaterThanOrEqual(0.97);
      expect(Math.max(...differences)).toBeLessThan(novelty === 'prefix' ? 1e-5 : 0.05);
      expect(differences.reduce((sum, each) => sum + each, 0) / entries.length).toBeLessThan(0.005);
      // A remembered trace is found, and nothing is added by a question.
      for (const each of entries.slice(0, 5)) {
        const [nearest] = await mine.compare([each], null);
        expect(nearest.id).toBe(each.id);
        expect(nearest.similarity).toBeCloseTo(1, 6);
      }
      expect(await mine.size()).toBe(320);
    });

    test('PostgresStore compares with the newest maxElements traces, and deletes older ones', async () => {
      const bounds = { maxElements: 5 };
      const table = `few_${kind}`;
      const [mine, memory] = [make({ table, ...bounds }), memoryOf(novelty, bounds)];
      const entries = await entriesFor(novelty, 30);
      for (const [own, right] of await answersOf(mine, memory, entries, Array(10).fill(3)))
        expect(own?.similarity ?? -1).toBeCloseTo(right?.similarity ?? -1, 5);
      expect(await mine.size()).toBe(5);
      const { rows } = await pool().query(`SELECT label FROM ${table} ORDER BY position`);
      expect(rows.map(({ label }) => label)).toEqual(['25', '26', '27', '28', '29']);
      if (novelty === 'prefix') return;
      const { rows: words } = await pool().query(`SELECT DISTINCT trace::int FROM ${table}_words ORDER BY 1`);
      expect(words.map(({ trace }) => trace)).toEqual([25, 26, 27, 28, 29]);
    });

    test('PostgresStore ignores expired traces', async () => {
      const table = `old_${kind}`;
      const mine = make({ table, ttlMs: 60_000 });
      const entries = await entriesFor(novelty, 4);
      await mine.compare(entries.slice(0, 2));
      await pool().query(`UPDATE ${table} SET added = added - interval '61 s' WHERE label = '0'`);
      expect(await mine.size()).toBe(1);
      expect((await mine.compare([entries[0]], null))[0].id).toBe('1');
      await pool().query(`UPDATE ${table} SET added = added - interval '61 s'`);
      expect(await mine.compare([entries[0]], null)).toEqual([null]);
      expect(await mine.compare([entries[2]])).toEqual([null]);
      expect(await mine.size()).toBe(1);
    });

    test('PostgresStore stores a call once, however often and at once it is made, with the same answer', async () => {
      const mine = make();
      const entries = await entriesFor(novelty, 12);
      await mine.compare(entries.slice(0, 4));
      const added = entries.slice(4, 8);
      const answers = await Promise.all([0, 1, 2].map(() => mine.compare(added, CALL)));
      await mine.compare(entries.slice(8));
      answers.push(await mine.compare(added, CALL));
      for (const answer of answers) expect(answer.map(byId)).toEqual(answers[0].map(byId));
      expect(await mine.size()).toBe(12);
    });

    test('PostgresStore repeats a call whose answer is lost, which does not find itself', async () => {
      const database = pool();
      const mine = make({ pool: database });
      const entries = await entriesFor(novelty, 6);
      await mine.compare(entries.slice(0, 3));
      const [expected] = await mine.compare([entries[4]], null);
      let lost = 0;
      changeQueries(database, (query) => async (config) => {
        const result = await query(config);
        if (config.text === 'COMMIT' && lost++ === 0) {
          throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
        }
        return result;
      });
      const [found] = await mine.compare([entries[4]]);
      expect(lost).toBe(2);
      expect(byId(found)).toEqual(byId(expected));
      expect(await mine.size()).toBe(4);
    });

    test('PostgresStore refuses another novelty, and another model', async () => {
      const table = `other_${kind}`;
      const mine = make({ table });
      const [one, two] = await entriesFor(novelty, 2);
      await mine.compare([one]);
      const others = NOVELTIES.filter((each) => each !== novelty);
      for (const other of others) {
        const call = store({ method: other, table }).size();
        await expectRejection(call, 'ERR_MEMORY_MISMATCH', `'${novelty}', not of '${other}'`);
      }
      if (novelty === 'lexical') return;
      const q8 = { ...two, model: { ...two.model, dtype: 'q8' } };
      await expectRejection(mine.compare([q8]), 'ERR_MEMORY_MISMATCH', 'fp32', 'q8');
      expect(await mine.size()).toBe(1);
    });
  });

  test('inspect of a PostgresStore shows nothing of the pool, which has a password', () => {
    const shown = require('node:util').inspect(store({ pool: pool({ password: 'secret' }) }), { depth: 9 });
    expect(shown).not.toContain('secret');
  });

  test('PostgresStore whose index gives up among expired embeddings scans them', async () => {
    const mine = store({ method: 'prefix', hnsw: true, table: 'expired', ttlMs: 60_000 });
    await mine.size();
    const vectors = Array.from({ length: 300 }, (_, index) => `[${clusteredVector(index, 2)}]`);
    await pool().query(
      `INSERT INTO expired (position, call, entry, added, embedding)
       SELECT number, gen_random_uuid(), 1, now() - interval '1 day', given::vector
       FROM unnest($1::text[]) WITH ORDINALITY AS all_of(given, number)`,
      [vectors],
    );
    await mine.compare([entry('living', randomVector(5_000_000))]);
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
    expect((await limited.compare([entry('', clusteredVector(0, 2))], null))[0].id).toBe('living');
  });

  test('PostgresStore with hnsw uses its index', async () => {
    const database = pool({ max: 1 });
    const mine = store({ pool: database, method: 'prefix', hnsw: true, table: 'indexed' });
    await mine.compare(await entriesFor('prefix', 60));
    await mine.compare(await entriesFor('prefix', 60, 60));
    // Else a connection reports its scans seconds later.
    await database.query('SELECT pg_stat_force_next_flush()');
    const scans = "SELECT 1 FROM pg_stat_user_indexes WHERE indexrelname = 'indexed_hnsw' AND idx_scan > 0";
    while ((await database.query(scans)).rows.length === 0) await sleep(50);
  });

  describe('tables', () => {
    test('eight stores that are opened at once create their table once', async () => {
      const stores = Array.from({ length: 8 }, () =>
        store({ method: 'prefix', hnsw: true, table: 'at_once' }),
      );
      expect(await Promise.all(stores.map((each) => each.size()))).toEqual(Array(8).fill(0));
    });

    test('the table of a store is in the named schema, which is not made, or in the first of the search path', async () => {
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

    test('a table of another application is refused', async () => {
      await pool().query('CREATE TABLE theirs (id int); CREATE VIEW a_view AS SELECT 1 AS position');
      for (const table of ['theirs', 'a_view']) {
        await expectRejection(store({ table }).size(), 'ERR_STORE_SCHEMA', table);
      }
    });

    test('a table that is dropped meanwhile is an error', async () => {
      const mine = store({ table: 'dropped' });
      await mine.size();
      await pool().query('DROP TABLE dropped');
      await expectRejection(mine.size(), 'ERR_STORE_SCHEMA');
    });

    test('a table of damaged words is an error, and keeps its traces', async () => {
      const mine = store({ table: 'damaged' });
      const entries = await entriesFor('lexical', 3);
      await mine.compare(entries.slice(0, 2));
      await pool().query(String.raw`UPDATE damaged SET words = '\x0102'`);
      await expectRejection(mine.compare([entries[2]]), 'ERR_STORE', 'damaged');
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
        for (const each of entries) await agents.compare([each]);
        expect(await agents.size()).toBe(3);
        await rejectionOf(pool({ user: 'agent' }).query(`UPDATE ${table} SET label = NULL`));
      }
    });
  });

  describe('faults', () => {
    test('a server that is away rejects calls, and works when it is back', async () => {
      const mine = store();
      const [one, two] = await entriesFor('lexical', 2);
      await mine.compare([one]);
      await context.server.stop();
      await expectRejection(mine.compare([two]), 'ERR_STORE_UNAVAILABLE');
      await expectRejection(mine.size(), 'ERR_STORE_UNAVAILABLE');
      await context.server.start();
      await mine.compare([two]);
      // No call notices a restart between calls.
      await context.server.stop();
      await context.server.start();
      expect(await mine.size()).toBe(2);
    });

    test('a connection that is killed while it waits: the call is made again, and stored once', async () => {
      const mine = store({ table: 'waits' });
      const [one] = await entriesFor('lexical', 1);
      await mine.size();
      const locking = await pool().connect();
      await locking.query('BEGIN; LOCK TABLE waits IN ACCESS EXCLUSIVE MODE');
      const call = mine.compare([one]);
      const killed =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%waits%' AND pid <> pg_backend_pid()";
      const observer = pool();
      while ((await observer.query(killed)).rows.length === 0) await sleep(10);
      await locking.query('ROLLBACK');
      locking.release();
      expect(await call).toEqual([null]);
      expect(await mine.size()).toBe(1);
    });

    test('a replica is an error that passes, and stores nothing', async () => {
      const [one] = await entriesFor('lexical', 1);
      const mine = store({ table: 'replica' });
      await mine.size();
      const options = '-c default_transaction_read_only=on';
      const limited = store({ pool: pool({ options }), table: 'replica' });
      await expectRejection(limited.compare([one]), 'ERR_STORE_UNAVAILABLE', 'read-only');
      expect(await mine.size()).toBe(0);
    });

    test.each([
      ['server', { options: '-c statement_timeout=50' }],
      ['client', { query_timeout: 50 }],
    ])(
      'a call that waits longer than the %s lets it is an error that passes, and stores nothing',
      async (side, limits) => {
        const table = `waits_${side}`;
        const [one] = await entriesFor('lexical', 1);
        const mine = store({ table });
        await mine.size();
        const locking = await pool().connect();
        await locking.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
        const limited = store({ pool: pool(limits), table });
        await expectRejection(limited.compare([one]), 'ERR_STORE_UNAVAILABLE', 'timeout');
        await locking.query('ROLLBACK');
        locking.release();
        expect(await mine.size()).toBe(0);
      },
    );

    test('compare that the server refuses ends its transaction, and the next call works', async () => {
      const database = pool({ max: 1 });
      const mine = store({ pool: database, table: 'refused' });
      const entries = await entriesFor('lexical', 2);
      await mine.size();
      await pool().query("ALTER TABLE refused ADD CHECK (label <> '0')");
      const error = await expectRejection(mine.compare(entries), 'ERR_STORE', 'refused');
      expect(error.cause.code).toBe('23514');
      await mine.compare([entries[1]]);
      expect(await mine.size()).toBe(1);
    });

    test('compare at another isolation level makes no duplicates', async () => {
      const options = '-c default_transaction_isolation=serializable';
      const entries = await entriesFor('lexical', 1);
      const stores = [0, 1, 2, 3].map(() => store({ pool: pool({ options }), table: 'serial' }));
      const answers = await Promise.all(stores.map((each) => each.compare(entries)));
      expect(answers.filter(([found]) => found === null)).toHaveLength(1);
      expect(await stores[0].size()).toBe(4);
    });

    test('ids that PostgreSQL cannot store are stored in part', async () => {
      const mine = store();
      const [one, two] = await entriesFor('lexical', 2);
      await mine.compare([
        { ...one, id: 'a\0b\uD800c' },
        { ...two, id: null },
      ]);
      expect((await mine.compare([one], null))[0].id).toBe('a\uFFFDb\uFFFDc');
      expect((await mine.compare([two], null))[0].id).toBe(null);
    });

    test('a scorer goes on with its fallback while the server is away, and the store gets each trace once', async () => {
      const mine = store({ method: 'lexical', fallback: new TraceMemory({ method: 'lexical' }) });
      const scorer = new Scorer({ memory: mine });
      const traces = makeTraces(6);
      await warningsWhile(async () => {
        await scorer.scoreAll(traces.slice(0, 2));
        await context.server.kill();
        await scorer.scoreAll(traces.slice(2, 4));
        expect(await rejectionOf(mine.flush())).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });
        await context.server.start();
        await scorer.scoreAll(traces.slice(4));
        await mine.flush();
      });
      expect(await mine.size()).toBe(6);
    });
  });

  describe('objects that another role has planted in the schema', () => {
    /** For statements of these tests, which no planted object may meet. */
    const database = 'planted';
    const admin = () => pool({ database, options: '-c search_path=pg_catalog' });

    beforeAll(async () => {
      if (context.server === undefined) return;
      await pool().query('CREATE DATABASE planted');
      await admin().query(`
      CREATE ROLE planter;
      CREATE SEQUENCE public.planted_calls;
      GRANT USAGE ON SEQUENCE public.planted_calls TO PUBLIC;
      GRANT USAGE, CREATE ON SCHEMA public TO planter`);
      await admin().query(PLANT);
    });

    /** How many planted functions were called. */
    async function calls() {
      const { rows } = await admin().query(
        'SELECT CASE WHEN is_called THEN last_value ELSE 0::bigint END AS calls FROM public.planted_calls',
      );
      return Number(rows[0].calls);
    }

    test('a statement that names nothing by its schema calls a planted function', async () => {
      const naive = pool({ database, options: '-c search_path=public' });
      const before = await calls();
      await rejectionOf(naive.query('SELECT pg_advisory_xact_lock($1)', ['1']));
      await rejectionOf(naive.query("SELECT 1::oid = 'public'::regnamespace"));
      await rejectionOf(naive.query('SELECT count(relname) FROM pg_class'));
      expect((await calls()) - before).toBe(3);
    });

    // With `pg_catalog` at the end of the path, even a function of PostgreSQL's with the same arguments comes after the planted one.
    const paths = ['public', 'public,pg_catalog'];
    const kinds = [
      ['prefix', false],
      ['prefix', true],
      ['lexical', false],
      ['full', false],
    ];
    const cases = paths.flatMap((searchPath) => kinds.map((kind) => [searchPath, ...kind]));
    test.each(cases)(
      'no statement of a store calls a planted function: search path %s, novelty %s, hnsw %s',
      async (searchPath, novelty, hnsw) => {
        const table = `guarded_${novelty}_${hnsw}_${searchPath.length}`;
        const before = await calls();
        const searching = pool({ database, options: `-c search_path=${searchPath}` });
        const options = { pool: searching, table, method: novelty, hnsw, maxElements: 100 };
        const made = store(options);
        expect(await made.size()).toBe(0);
        // A second store finds the tables.
        expect(await store(options).size()).toBe(0);

        const entries = (await entriesFor(novelty, 120)).map((each) =>
          each.model ? { ...each, model: MODEL } : each,
        );
        await made.compare(entries.slice(0, 1));
        await made.compare(entries.slice(1, 100));
        const answer = await made.compare(entries.slice(100), CALL);
        expect(await made.compare(entries.slice(100), CALL)).toHaveLength(answer.length);
        expect((await made.compare([entries[110]], null))[0].id).toBe('110');
        expect(await made.size()).toBe(100);
        expect((await calls()) - before).toBe(0);
      },
    );
  });

  describe('many processes', () => {
    const PROCESSES = 8;
    let tables = 0;

    /** Starts a process that adds; `done` settles with what it was told, line by line, when it has ended. */
    function startWorker(settings) {
      const file = path.join(__dirname, 'worker.cjs');
      const child = fork(file, [JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
      let output = '';
      child.stdout.on('data', (chunk) => {
        output += chunk;
      });
      const done = new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('close', (code, signal) => {
          // Whoever is killed may leave half a line.
          const lines = output.split('\n').slice(0, -1);
          resolve({ code, signal, told: lines.map((line) => JSON.parse(line)) });
        });
      });
      return { child, done, lines: () => output.split('\n').length - 1 };
    }

    async function startWorkers(settings) {
      const table = `many_${++tables}`;
      await store({ table, method: 'prefix', hnsw: settings.hnsw }).size();
      const workers = Array.from({ length: PROCESSES }, (_, name) =>
        startWorker({ name, table, connection: context.server.connection(), ...settings }),
      );
      for (const { child } of workers) child.send('go');
      return { table, workers };
    }

    /**
     * What must hold however it went: positions without gaps; what was acknowledged is stored, once; of all that is stored
     * with the same vector, at most one was told that it is new, and exactly one if all were told.
     */
    async function check(table, results, { hasLost }) {
      const database = pool();
      const { rows } = await database.query(`SELECT position, label FROM ${table} ORDER BY position`);
      expect(rows.map(({ position }) => Number(position))).toEqual(rows.map((_, index) => index));

      const stored = rows.map(({ label }) => label);
      expect(new Set(stored).size).toBe(stored.length);
      const acknowledged = results.flatMap(({ told }) => told).filter(({ error }) => error === undefined);
      const known = new Set(stored);
      expect(acknowledged.filter(({ id }) => !known.has(id))).toEqual([]);
      if (!hasLost) expect(stored.length).toBe(acknowledged.length);

      const news = new Map();
      for (const { seed, isNew } of acknowledged) news.set(seed, (news.get(seed) ?? 0) + Number(isNew));
      const counts = [...news.values()];
      expect(Math.max(...counts)).toBe(1);
      if (!hasLost) expect(Math.min(...counts)).toBe(1);
      // The one that was stored first is the one that is new.
      const first = new Map();
      for (const label of stored) {
        const seed = Number(label.split(' ')[0]);
        if (!first.has(seed)) first.set(seed, label);
      }
      expect(acknowledged.filter(({ seed, id, isNew }) => isNew !== (first.get(seed) === id))).toEqual([]);
      return acknowledged.length;
    }

    test.each([
      [false, 1, 30],
      [false, 16, 4],
      [true, 1, 20],
    ])('all add the same at once, hnsw %s, %d at a time', async (hnsw, batch, rounds) => {
      const { table, workers } = await startWorkers({ hnsw, batch, rounds });
      const results = await Promise.all(workers.map(({ done }) => done));
      expect(results.map(({ code }) => code)).toEqual(Array(PROCESSES).fill(0));
      expect(await check(table, results, { hasLost: false })).toBe(PROCESSES * batch * rounds);
    });

    test('processes that are killed leave whole entries or none', async () => {
      const { table, workers } = await startWorkers({ batch: 4, rounds: 1000 });
      for (const [index, worker] of workers.entries()) {
        while (worker.lines() < 10 + index * 8) await sleep(5);
        worker.child.kill('SIGKILL');
      }
      const results = await Promise.all(workers.map(({ done }) => done));
      expect(results.map(({ signal }) => signal)).toEqual(Array(PROCESSES).fill('SIGKILL'));
      // What was under way in the server may still be.
      const database = pool();
      const busy =
        "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active' AND backend_type = 'client backend'";
      while ((await database.query(busy)).rows.length > 0) await sleep(10);
      await check(table, results, { hasLost: true });
      const { rows } = await database.query(`SELECT count(*)::int AS count FROM ${table}`);
      // A call was of four.
      expect(rows[0].count % 4).toBe(0);
    });

    test('a server that is killed three times has all that it acknowledged', async () => {
      const { table, workers } = await startWorkers({ batch: 2, rounds: 60, patient: true });
      const lines = () => workers.reduce((sum, worker) => sum + worker.lines(), 0);
      for (let time = 1; time <= 3; time++) {
        while (lines() < time * 150) await sleep(5);
        await context.server.kill();
        await context.server.start();
      }
      const results = await Promise.all(workers.map(({ done }) => done));
      expect(results.map(({ code }) => code)).toEqual(Array(PROCESSES).fill(0));
      const errors = results.flatMap(({ told }) => told).filter(({ error }) => error !== undefined);
      expect(errors.filter(({ error }) => error !== 'ERR_STORE_UNAVAILABLE')).toEqual([]);
      // Each worker has repeated its calls until they were acknowledged.
      expect(await check(table, results, { hasLost: false })).toBe(PROCESSES * 120);
    });
  });
});

describeWithPostgres('without pgvector', () => {
  const context = useServer({ settings: { extension_control_path: '/nonexistent' } });

  test('PostgresStore without pgvector names the methods that need no extension, which work', async () => {
    const error = await expectRejection(
      context.store({ method: 'prefix' }).size(),
      'ERR_STORE_SCHEMA',
      "use method 'lexical' or 'full'",
    );
    expect(error.message).toContain(error.cause.message);
    expect(await context.store({ method: 'full' }).size()).toBe(0);
  });
});
