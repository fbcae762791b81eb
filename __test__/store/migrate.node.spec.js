'use strict';

// Making the schema of a store: by many at once, under any name, with few privileges.

const { setTimeout: sleep } = require('node:timers/promises');

const pg = require('pg');

const { MIGRATE_LOCK } = require('../../lib/store/postgres/migration.js');
const { PostgresVectorStore } = require('../../postgres.js');
const { throwingGetter } = require('../support/hostile.js');
const { thrownBy } = require('../support/refusals.js');
const {
  MODEL,
  describeWithPostgres,
  entry,
  expectRejection,
  randomVector,
  rejection,
  useServer,
} = require('../support/store.js');

describe('options', () => {
  const pool = { connect() {} };
  test.each([
    ['undefined', undefined, TypeError],
    ['no pool', {}, TypeError],
    ['a pool that is an ordinary object', { pool: {} }, TypeError],
    ['a connection in place of a pool', { pool: new pg.Client() }, TypeError],
    ['an empty table name', { pool, table: '' }, RangeError],
    ['a table name that PostgreSQL would cut', { pool, table: 'x'.repeat(55) }, RangeError],
    ['a zero byte in a name', { pool, schema: 'a\0b' }, RangeError],
    ['a name that is a number', { pool, table: 7 }, TypeError],
    ['an unknown index', { pool, index: 'ivfflat' }, RangeError],
    ['no elements', { pool, maxElements: 0 }, RangeError],
    ['half an element', { pool, maxElements: 1.5 }, RangeError],
    ['a negative time to live', { pool, ttlMs: -1 }, RangeError],
    ['no time to live', { pool, ttlMs: Number.NaN }, RangeError],
    ['a time limit that is a string', { pool, timeoutMs: '5' }, TypeError],
    ['no time', { pool, timeoutMs: 0 }, RangeError],
    ['too little time for any answer', { pool, timeoutMs: 49 }, RangeError, 'from 50 to'],
    ['more time than a timer has', { pool, timeoutMs: 2 ** 31 }, RangeError, 'to 2147483647'],
    ['too wide a search', { pool, index: 'hnsw', efSearch: 1001 }, RangeError],
    ['sweeps without a pause', { pool, sweepIntervalMs: 0 }, RangeError],
    ['an unknown option', { pool, timeout: 1 }, TypeError],
    ['a getter that throws', throwingGetter({}, 'pool', new Error('no')), TypeError],
  ])('new PostgresVectorStore refuses %s', (...row) => {
    const [, options, Class, part = 'options'] = row;
    const error = thrownBy(() => new PostgresVectorStore(options));
    expect(error).toBeInstanceOf(Class);
    expect(error.code).toBe('ERR_INVALID_OPTION');
    expect(error.message).toContain(part);
  });

  test('nothing is asked of the database before the first call', () => {
    const connect = () => {
      throw new Error('asked');
    };
    new PostgresVectorStore({ pool: { connect } }).close();
  });
});

describeWithPostgres('migrate', () => {
  const context = useServer();
  const { pool, store, migrated } = context;

  async function works(made) {
    expect(await made.compareAndAdd(entry('a', randomVector(1)))).toEqual([null]);
    expect(await made.compareAndAdd(entry('b', randomVector(1)))).toEqual([
      { label: 'a', similarity: expect.closeTo(1, 6) },
    ]);
    expect((await made.nearest(randomVector(1), 2, MODEL)).map(({ label }) => label).sort()).toEqual([
      'a',
      'b',
    ]);
    expect(await made.size()).toBe(2);
    expect(await made.sweep()).toBe(0);
  }

  test.each(['exact', 'hnsw'])(
    'twenty at once, index %s, in a database without the extension',
    async (index) => {
      await pool().query(`CREATE DATABASE crowd_${index}`);
      const stores = Array.from({ length: 20 }, () =>
        store({ pool: pool({ database: `crowd_${index}`, max: 1 }), table: 'novelty', index }),
      );
      await Promise.all(stores.map((each) => each.migrate()));
      await works(stores[0]);
      await Promise.all(stores.map((each) => each.migrate()));
      expect(await stores[19].size()).toBe(2);
    },
  );

  test('an index is added to a table that has none', async () => {
    const database = pool();
    const before = await migrated({ table: 'grown' });
    await before.compareAndAdd(entry('a', randomVector(1)));
    const after = await migrated({ table: 'grown', index: 'hnsw' });
    expect((await after.nearest(randomVector(1), 1, MODEL))[0].label).toBe('a');
    const { rows } = await database.query("SELECT 1 FROM pg_indexes WHERE indexname = 'grown_hnsw'");
    expect(rows).toHaveLength(1);
  });

  test.each([
    'x"; DROP TABLE precious; --',
    "x'; DROP TABLE precious; --",
    "back\\slash' OR 'a'='a",
    '$function$; DROP TABLE precious; $function$',
    'Größe 名前 𝒳',
    'select',
    'UPPER lower',
    ' leading and trailing ',
    '%I %s %L',
    'x'.repeat(54),
  ])('any name is only a name: %j', async (name) => {
    const database = pool();
    await database.query('CREATE TABLE IF NOT EXISTS precious ()');
    await works(await migrated({ table: name }));
    await database.query(`CREATE SCHEMA ${database.Client.prototype.escapeIdentifier(name)}`);
    await works(await migrated({ table: name, schema: name, index: 'hnsw' }));
    const { rows } = await database.query(
      "SELECT count(*)::int AS count FROM pg_class WHERE relname = $1 AND relkind = 'r'",
      [name],
    );
    expect(rows[0].count).toBe(2);
    await database.query('TABLE precious');
  });

  test('a schema that is not there is not made', async () => {
    const name = 'mis"typed';
    const mistyped = store({ schema: name });
    for (const call of [() => mistyped.size(), () => mistyped.migrate()]) {
      expect((await rejection(call())).code).toBe('ERR_STORE_SCHEMA');
    }
    const { message } = await rejection(mistyped.migrate());
    expect(message).toBe(
      'there is no schema mis"typed; make it with CREATE SCHEMA "mis""typed", or name another',
    );
    const { rowCount } = await pool().query('SELECT FROM pg_namespace WHERE nspname = $1', [name]);
    expect(rowCount).toBe(0);
  });

  test('the schema of another version is left alone', async () => {
    const database = pool();
    const made = await migrated({ table: 'newer' });
    await made.compareAndAdd(entry('a', randomVector(1)));
    await database.query('UPDATE newer_meta SET version = version + 1');
    for (const call of [
      () => made.migrate(),
      () => made.compareAndAdd(entry('b', randomVector(2))),
      () => made.nearest(randomVector(1), 1, MODEL),
      () => made.size(),
      () => made.sweep(),
    ]) {
      expect((await rejection(call())).code).toBe('ERR_STORE_SCHEMA');
    }
    const { rows } = await database.query('SELECT count(*)::int AS count FROM newer');
    expect(rows[0].count).toBe(1);
  });

  test('without migrate, a call says that it is missing', async () => {
    const error = await expectRejection(store().size(), 'ERR_STORE_SCHEMA', 'call migrate()');
    expect(error.cause.code).toBe('42883');
  });

  test('migrate ignores the time limits of the connection', async () => {
    const client = await pool().connect();
    // As if another process were making an index.
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATE_LOCK]);
    const limits = '-c statement_timeout=500 -c lock_timeout=500';
    const impatient = pool({ options: limits, query_timeout: 500, max: 1 });
    const migrating = store({ pool: impatient, table: 'unhurried' }).migrate();
    migrating.catch(() => {});
    await sleep(800);
    await client.query('SELECT pg_advisory_unlock($1)', [MIGRATE_LOCK]);
    client.release();
    await migrating;
    const { rows } = await impatient.query('SHOW statement_timeout');
    expect(rows).toEqual([{ statement_timeout: '500ms' }]);
  });

  test('an index that is not valid is not taken for one', async () => {
    const database = pool();
    const made = await migrated({ table: 'invalid', index: 'hnsw' });
    await database.query(
      "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid_hnsw'::regclass",
    );
    await expectRejection(made.migrate(), 'ERR_STORE_SCHEMA', 'invalid_hnsw');
    // Whoever does not use it is not concerned.
    await store({ table: 'invalid' }).migrate();
    await database.query('DROP INDEX invalid_hnsw');
    await made.migrate();
    await works(made);
  });

  test.each([
    ['a table', 'CREATE TABLE $ ()'],
    ['an index of another table', 'CREATE TABLE others (id integer); CREATE INDEX $ ON others (id)'],
    ['an index of another kind', 'CREATE INDEX $ ON @ (label)'],
  ])('%s with the name of the index is not taken for it', async (what, statement) => {
    const table = `namesake_${what.length}`;
    await migrated({ table });
    await pool().query(statement.replace('$', `${table}_hnsw`).replace('@', table));
    await expectRejection(store({ table, index: 'hnsw' }).migrate(), 'ERR_STORE_SCHEMA', `${table}_hnsw`);
  });

  test('a store that is closed makes nothing', async () => {
    const made = store({ table: 'closed' });
    made.close();
    expect((await rejection(made.migrate())).code).toBe('ERR_STORE_UNAVAILABLE');
    const { rows } = await pool().query("SELECT 1 FROM pg_class WHERE relname = 'closed'");
    expect(rows).toEqual([]);
  });

  test.each(['LATIN1', 'SQL_ASCII'])('a database in %s is refused', async (encoding) => {
    await pool().query(`CREATE DATABASE in_${encoding} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`);
    await expectRejection(
      store({ pool: pool({ database: `in_${encoding.toLowerCase()}` }) }).migrate(),
      'ERR_STORE_SCHEMA',
      encoding,
    );
  });

  test.each([0, 1, 1.5, 1e14, 2e14, 2.2e14, 3e15, 1e300, Number.POSITIVE_INFINITY])(
    'a vector may live %d ms',
    async (ttlMs) => {
      const made = await migrated({ ttlMs });
      expect(await made.compareAndAdd(entry('a', randomVector(1)))).toEqual([null]);
      if (ttlMs > 1e6) expect(await made.size()).toBe(1);
      await made.migrate();
    },
  );

  describe('limits', () => {
    const fill = async (made, count) => {
      const seeds = Array.from({ length: count }, (_, seed) => seed);
      await made.compareAndAddBatch(seeds.map((seed) => entry(`${seed}`, randomVector(seed))));
    };
    const calls = (made) => [
      made.compareAndAdd(entry('x', randomVector(99))),
      made.nearest(randomVector(1), 1, MODEL),
      made.size(),
      made.sweep(),
      made.migrate(),
    ];

    test('a store with other limits changes and deletes nothing', async () => {
      const made = await migrated({ table: 'bounded', maxElements: 8 });
      await fill(made, 8);
      for (const [wrong, ...parts] of [
        [{ maxElements: 3 }, 'maxElements 8', ' 3 '],
        [{ maxElements: 9 }, 'maxElements 8', ' 9 '],
        [{ ttlMs: 1 }, 'ttlMs Infinity', ' 1'],
        [{ maxElements: 8, ttlMs: 0 }, 'ttlMs Infinity', ' 0'],
      ]) {
        for (const failing of calls(store({ table: 'bounded', ...wrong })).map(rejection)) {
          const error = await failing;
          expect(error.code).toBe('ERR_STORE_OTHER_LIMITS');
          for (const part of parts) expect(error.message).toContain(part);
        }
      }
      const { rows } = await pool().query('SELECT count(*)::int AS count FROM bounded');
      expect(rows).toEqual([{ count: 8 }]);
    });

    test("a store without limits uses the table's", async () => {
      const made = await migrated({ table: 'adopted', maxElements: 3 });
      const other = await migrated({ table: 'adopted' });
      await fill(other, 8);
      for (const each of [made, other, store({ table: 'adopted', ttlMs: Number.POSITIVE_INFINITY })]) {
        expect(await each.size()).toBe(3);
        expect(await each.nearest(randomVector(1), 9, MODEL)).toHaveLength(3);
      }
      expect(await other.sweep()).toBe(5);
    });

    test('they can be changed, for all', async () => {
      const made = await migrated({ table: 'changed', maxElements: 3 });
      const silent = store({ table: 'changed' });
      await fill(made, 8);
      expect(await made.setLimits({ maxElements: 6 })).toEqual({
        maxElements: 6,
        ttlMs: Number.POSITIVE_INFINITY,
      });
      for (const each of [made, silent, await migrated({ table: 'changed', maxElements: 6 })]) {
        expect(await each.size()).toBe(6);
      }
      // Who was given the limits of before notices.
      expect(await silent.setLimits({ maxElements: 7, ttlMs: 86_400_000 })).toEqual({
        maxElements: 7,
        ttlMs: 86_400_000,
      });
      expect((await rejection(made.size())).code).toBe('ERR_STORE_OTHER_LIMITS');
      expect(await silent.size()).toBe(7);
      expect(await made.setLimits({})).toEqual({ maxElements: 7, ttlMs: 86_400_000 });
      expect(await made.size()).toBe(7);
      await silent.setLimits({ ttlMs: 0 });
      expect(await silent.size()).toBe(0);
      await silent.setLimits({ ttlMs: Number.POSITIVE_INFINITY });
      expect(await silent.size()).toBe(7);
    });

    test.each([
      ['nothing', undefined, TypeError],
      ['no elements', { maxElements: 0 }, RangeError],
      ['a time that is a string', { ttlMs: '5' }, TypeError],
    ])('they cannot be changed to %s', async (_, limits, Class) => {
      const error = await rejection(store({ pool: { connect() {} } }).setLimits(limits));
      expect(error).toBeInstanceOf(Class);
      expect(error.code).toBe('ERR_INVALID_OPTION');
      expect(error.message).toMatch(/^limits/);
    });

    test('of concurrent migrations with different limits, one wins', async () => {
      const stores = Array.from({ length: 8 }, (_, index) =>
        store({ table: 'contested', maxElements: 10 + index }),
      );
      const outcomes = await Promise.allSettled(stores.map((each) => each.migrate()));
      const failures = outcomes.filter(({ status }) => status === 'rejected');
      expect(failures.map(({ reason }) => reason.code)).toEqual(Array(7).fill('ERR_STORE_OTHER_LIMITS'));
    });
  });

  test('more neighbours than PostgreSQL counts are all that there are', async () => {
    const made = await migrated();
    await made.compareAndAdd(entry('a', randomVector(1)));
    expect(await made.nearest(randomVector(1), Number.MAX_SAFE_INTEGER, MODEL)).toHaveLength(1);
  });

  describe('of another application', () => {
    test.each([
      ['table', 'CREATE TABLE # (number integer, customer text)', 'already exists'],
      ['view', 'CREATE VIEW # AS SELECT 1 AS number', 'already exists'],
      ['sequence', 'CREATE SEQUENCE #', 'already exists'],
      ['index', 'CREATE TABLE o# (n integer); CREATE INDEX # ON o# (n)', 'already exists'],
      ['type', 'CREATE TYPE # AS (number integer)', 'already exists'],
      ['partitioned table', 'CREATE TABLE # (n integer) PARTITION BY RANGE (n)', 'already exists'],
      ['table with our second name', 'CREATE TABLE #_meta (key text)', 'does not exist'],
      ['view with our second name', 'CREATE VIEW #_meta AS SELECT 1 AS id, 3 AS version', 'does not exist'],
    ])('%s is left alone, and named', async (what, statement, part) => {
      const table = `theirs_${what.replaceAll(' ', '_')}`;
      await pool().query(statement.replaceAll('#', table));
      const all =
        "SELECT relname, relkind, relnatts FROM pg_class WHERE relname LIKE 'theirs%' ORDER BY relname";
      const { rows: before } = await pool().query(all);
      const error = await expectRejection(store({ table }).migrate(), 'ERR_STORE_SCHEMA');
      for (const each of [part, 'name another table']) expect(error.message).toContain(each);
      expect(error.message).not.toContain('call migrate()');
      expect((await pool().query(all)).rows).toEqual(before);
    });

    test('change to a table of ours is no reason to call migrate again', async () => {
      const made = await migrated({ table: 'altered' });
      await pool().query('ALTER TABLE altered_meta RENAME max_elements TO bound');
      const error = await expectRejection(made.migrate(), 'ERR_STORE_SCHEMA', 'max_elements');
      expect(error.message).not.toContain('call migrate()');
    });
  });

  test('the extension may be in a schema of its own, out of the search path', async () => {
    await pool().query('CREATE DATABASE elsewhere');
    const database = pool({ database: 'elsewhere' });
    await database.query('CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions');
    await works(await migrated({ pool: database, index: 'hnsw' }));
  });

  describe('privileges', () => {
    // The statements of docs/shared-store.md.
    const GRANTS = `
      GRANT USAGE ON SCHEMA fleet TO agent;
      GRANT SELECT, INSERT ON fleet.knowledgepulse_novelty TO agent;
      GRANT SELECT, UPDATE (next_position, model, dtype, method) ON fleet.knowledgepulse_novelty_meta TO agent;
    `;

    test('an agent that may add and ask may do nothing else', async () => {
      const admin = pool();
      await admin.query('CREATE ROLE agent LOGIN');
      await admin.query('CREATE SCHEMA fleet');
      await migrated({ schema: 'fleet', table: 'knowledgepulse_novelty' });
      await admin.query(GRANTS);
      const agents = pool({ user: 'agent' });
      const restricted = store({
        ...{ pool: agents, schema: 'fleet', table: 'knowledgepulse_novelty' },
        sweepIntervalMs: Number.POSITIVE_INFINITY,
      });
      // There is nothing to make, so it may be called.
      await restricted.migrate();
      await restricted.compareAndAdd(entry('a', randomVector(1)));
      expect((await restricted.nearest(randomVector(1), 1, MODEL))[0].label).toBe('a');
      expect(await restricted.size()).toBe(1);
      for (const statement of [
        'DELETE FROM fleet.knowledgepulse_novelty',
        'UPDATE fleet.knowledgepulse_novelty SET label = NULL',
        'UPDATE fleet.knowledgepulse_novelty_meta SET version = 0',
        'UPDATE fleet.knowledgepulse_novelty_meta SET max_elements = 1',
        'TRUNCATE fleet.knowledgepulse_novelty',
        'DROP TABLE fleet.knowledgepulse_novelty',
        'CREATE TABLE fleet.more ()',
      ]) {
        expect((await rejection(agents.query(statement))).code).toBe('42501');
      }
      const error = await expectRejection(restricted.sweep(), 'ERR_STORE');
      expect(error.cause.code).toBe('42501');
      await admin.query('GRANT DELETE ON fleet.knowledgepulse_novelty TO agent');
      expect(await restricted.sweep()).toBe(0);
    });

    test('a user without CREATE is told who must migrate', async () => {
      const admin = pool();
      await admin.query('CREATE ROLE newcomer LOGIN');
      await admin.query('CREATE DATABASE bare');
      const error = await expectRejection(
        store({ pool: pool({ user: 'newcomer', database: 'bare' }) }).migrate(),
        'ERR_STORE',
      );
      expect(error.message).toMatch(/permission denied/);
    });

    test('the owner of a schema can migrate if the extension exists', async () => {
      const admin = pool();
      await admin.query('CREATE ROLE owner LOGIN; CREATE SCHEMA own AUTHORIZATION owner');
      await admin.query('CREATE EXTENSION IF NOT EXISTS vector');
      await works(await migrated({ pool: pool({ user: 'owner' }), schema: 'own', index: 'hnsw' }));
    });
  });
});
