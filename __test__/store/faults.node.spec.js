'use strict';

// What goes wrong with a database: each failure has its code, nothing is half stored, and the next call works.

const { setTimeout: sleep } = require('node:timers/promises');

const { VectorCache, Scorer, embedderStatus } = require('../..');
const { StoreWithFallback } = require('../../lib/store/fallback.js');
const { makeTrace } = require('../support/make-trace.js');
const { warningsWhile } = require('../support/warnings.js');
const {
  MODEL,
  changeQueries,
  describeWithPostgres,
  entry,
  expectRejection,
  lostConnection,
  randomVector,
  rejection,
  useServer,
} = require('../support/store.js');

describeWithPostgres('faults', () => {
  const context = useServer();
  const { pool, store, migrated } = context;

  /** A store with an entry in it, on a pool of its own. */
  async function stored({ connection, ...options } = {}) {
    const database = pool(connection);
    const made = await migrated({ pool: database, ...options });
    await made.compareAndAdd(entry('first', randomVector(1)));
    return { made, database };
  }

  /** The four calls. */
  const calls = (made) => [
    made.compareAndAdd(entry('x', randomVector(99))),
    made.compareAndAddBatch([entry('y', randomVector(98))]),
    made.nearest(randomVector(1), 1, MODEL),
    made.size(),
  ];

  /** Holds what an addition must lock, on a connection of its own, until it is called. */
  async function lock(table) {
    const client = await pool().connect();
    await client.query('BEGIN');
    await client.query(`SELECT 1 FROM ${table}_meta FOR UPDATE`);
    return async () => {
      await client.query('ROLLBACK');
      client.release();
    };
  }

  /**
   * Puts a body around a function of a store: PL/pgSQL in which `looked` is what the function has returned, and a name
   * with `$` before it is one of the table's.
   */
  async function wrap(table, name, body) {
    const database = pool();
    const { rows } = await database.query(
      `SELECT pg_get_function_arguments(oid) AS parameters, pg_get_function_result(oid) AS result,
              array_to_string(proargnames, ', ') AS passed
       FROM pg_proc WHERE proname = $1`,
      [`${table}_${name}`],
    );
    const [{ parameters, result, passed }] = rows;
    await database.query(`
      ALTER FUNCTION ${table}_${name} RENAME TO ${table}_${name}_itself;
      CREATE FUNCTION ${table}_${name}(${parameters.replaceAll(/\bvector/g, 'public.vector')}) RETURNS ${result}
      LANGUAGE plpgsql AS $wrapped$
      DECLARE
        looked ${result} := public.${table}_${name}_itself(${passed});
      BEGIN
        ${body.replaceAll('$', `public.${table}_`)}
        RETURN looked;
      END
      $wrapped$`);
  }

  /** The first look waits until `unlock` of {@link holdLooks} is called. */
  const waitOnce = (atCancel) => `
    IF nextval('$looks') = 1 THEN
      LOOP
        BEGIN
          PERFORM pg_advisory_xact_lock(1);
          EXIT;
        EXCEPTION WHEN query_canceled THEN ${atCancel};
        END;
      END LOOP;
    END IF;`;

  const refuseUnderLock = `
    IF EXISTS (
      SELECT FROM pg_locks
      WHERE pid = pg_backend_pid() AND relation = '$meta'::regclass AND mode = 'RowShareLock'
    ) THEN
      RAISE EXCEPTION 'looked under the lock';
    END IF;`;

  async function holdLooks(table) {
    const client = await pool().connect();
    await client.query(`CREATE SEQUENCE ${table}_looks`);
    await client.query('SELECT pg_advisory_lock(1)');
    return async () => {
      await client.query('SELECT pg_advisory_unlock(1)');
      client.release();
    };
  }

  /** Waits until none of the server's processes is at an addition to a table. */
  async function waitForAdditions(table) {
    const observer = pool();
    const busy = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%${table}_add%' AND state = 'active' AND pid <> pg_backend_pid()`;
    while ((await observer.query(busy)).rows.length > 0) await sleep(10);
  }

  /** Loses the next connection; `when` is given what sends the statement, and settles when it is to be lost. */
  function loseNext(database, when) {
    let isLost = false;
    changeQueries(database, (query) => async (config) => {
      if (isLost) return query(config);
      isLost = true;
      await when(() => query(config).catch(() => {}));
      throw lostConnection();
    });
  }

  test('down at the start: each call rejects at once, and works when the server is there', async () => {
    const { made } = await stored();
    await context.server.stop();
    for (const call of calls(made)) {
      const error = await expectRejection(call, 'ERR_STORE_UNAVAILABLE');
      expect(error.cause).toBeDefined();
    }
    const fresh = store();
    expect((await rejection(fresh.migrate())).code).toBe('ERR_STORE_UNAVAILABLE');
    await context.server.start();
    expect(await made.size()).toBe(1);
    await fresh.migrate();
    expect(await fresh.size()).toBe(0);
  });

  test('a server that restarts is not noticed by calls before and after', async () => {
    const { made } = await stored();
    await context.server.stop();
    await context.server.start();
    // The pool still holds the connection to the server that was.
    expect(await made.compareAndAdd(entry('again', randomVector(1)))).toEqual([
      { label: 'first', similarity: expect.closeTo(1, 6) },
    ]);
    expect(await made.size()).toBe(2);
  });

  test('a connection that is killed while it waits: the call is made again, and stored once', async () => {
    const { made } = await stored({ table: 'killed' });
    const unlock = await lock('killed');
    const adding = made.compareAndAdd(entry('once', randomVector(2)));
    await waitForLocks();
    await pool().query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = $1', [
      'Lock',
    ]);
    await waitForLocks();
    await unlock();
    const [neighbour] = await adding;
    expect(neighbour.label).toBe('first');
    expect(await made.size()).toBe(2);
  });

  async function waitForLocks() {
    const observer = pool();
    for (;;) {
      const { rows } = await observer.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
      if (rows.length > 0) return;
      await sleep(10);
    }
  }

  test("a connection that breaks in the pool's callback does not end the process", async () => {
    const { made, database } = await stored();
    const connect = database.connect.bind(database);
    database.connect = (callback) =>
      connect((error, client, release) => {
        callback(error, client, release);
        // The code that awaits the connection has not continued yet.
        client.emit('error', new Error('broken'));
      });
    expect(await made.size()).toBe(1);
    await made.migrate();
  });

  test('an answer that is lost on its way: the call is made again, does not find itself, and is stored once', async () => {
    const { made, database } = await stored();
    const lost = randomVector(2);
    // The connection breaks when the server has committed and before its answer is read.
    let breaks = 1;
    changeQueries(database, (query) => async (config) => {
      const result = await query(config);
      if (breaks-- > 0) throw lostConnection();
      return result;
    });
    const comparisons = await made.compareAndAddBatch([
      entry('second', lost),
      entry('third', lost, randomVector(1)),
    ]);
    expect(comparisons).toEqual([
      [{ label: 'first', similarity: expect.any(Number) }],
      [
        { label: 'second', similarity: expect.closeTo(1, 6) },
        { label: 'first', similarity: expect.closeTo(1, 6) },
      ],
    ]);
    expect(comparisons[0][0].similarity).toBeLessThan(0.5);
    expect(breaks).toBeLessThan(1);
    expect(await made.size()).toBe(4);
  });

  test.each([
    ['that the server cancels', 'RAISE'],
    ['that goes on', 'NULL'],
  ])('a lost attempt %s: the call is stored once', async (_, atCancel) => {
    const table = `orphan_${atCancel.toLowerCase()}`;
    const { made, database } = await stored({ table });
    await wrap(table, 'look', waitOnce(atCancel));
    const unlock = await holdLooks(table);
    // The server does not notice: it is looking.
    loseNext(database, async (send) => {
      send();
      await waitForLocks();
    });
    const [neighbour] = await made.compareAndAdd(entry('once', randomVector(2)));
    expect(neighbour.label).toBe('first');
    if (atCancel === 'RAISE') await waitForAdditions(table);
    await unlock();
    await waitForAdditions(table);
    expect(await made.size()).toBe(2);
    const { rows } = await pool().query(`SELECT next_position FROM ${table}_meta`);
    expect(rows).toEqual([{ next_position: '2' }]);
  });

  test('a repeated call searches without the lock', async () => {
    const table = 'unlocked';
    const { made, database } = await stored({ table });
    for (const name of ['look', 'look_all']) await wrap(table, name, refuseUnderLock);
    loseNext(database, async () => {});
    expect(await made.compareAndAdd(entry('a', randomVector(1)))).toEqual([
      { label: 'first', similarity: expect.closeTo(1, 6) },
    ]);
    loseNext(database, async () => {});
    const seeds = [2, 3, 4];
    const batch = seeds.map((seed) => entry(`b${seed}`, randomVector(seed)));
    expect(await made.compareAndAddBatch(batch)).toHaveLength(3);
    expect(await made.size()).toBe(5);
  });

  test('a stored call is answered without the lock', async () => {
    const table = 'answered';
    const { made, database } = await stored({ table });
    let unlock;
    loseNext(database, async (send) => {
      await send();
      unlock = await lock(table);
    });
    const seeds = [1, 2, 2];
    const comparisons = await made.compareAndAddBatch(
      seeds.map((seed, index) => entry(`${index}`, randomVector(seed))),
    );
    expect(comparisons.map(([{ label }]) => label)).toEqual(['first', expect.any(String), '1']);
    await unlock();
    expect(await made.size()).toBe(4);
  });

  test('a long search after evictions does not run under the lock', async () => {
    const table = 'displaced';
    const { made, database } = await stored({ table, maxElements: 20_000 });
    await made.compareAndAdd(entry('filling', randomVector(2)));
    await database.query(`
      INSERT INTO ${table} SELECT 1 + i, clock_timestamp(), gen_random_uuid(), embedding, label
        FROM ${table}, generate_series(1, 19998) i WHERE position = 1;
      UPDATE ${table}_meta SET next_position = 20000`);
    await wrap(table, 'look', waitOnce('RAISE') + refuseUnderLock);
    const unlock = await holdLooks(table);
    const adding = made.compareAndAdd(entry('a', randomVector(1)));
    await waitForLocks();
    await made.compareAndAdd(entry('next', randomVector(3)));
    await unlock();
    expect((await adding)[0].label).not.toBe('first');
    expect(await made.size()).toBe(20_000);
  });

  describe('a call with a name', () => {
    const call = '8c5ad0c3-0d36-4d4e-b2a5-0a3a5d8f6c11';
    const batch = [entry('a', randomVector(1)), entry('b', randomVector(1), randomVector(3))];

    test('is stored once, and answered as the first time', async () => {
      const { made } = await stored({ table: 'named' });
      const other = store({ table: 'named' });
      const answer = await made.compareAndAddBatch(batch, { call });
      expect(answer[1][0].label).toBe('first');
      await made.compareAndAdd(entry('later', randomVector(3)));
      for (const again of [made, other])
        expect(await again.compareAndAddBatch(batch, { call })).toEqual(answer);
      expect(await made.size()).toBe(5);
      const single = '0C7F3C39-6B36-4D64-9A0E-6A53D9D7C0F3';
      await made.compareAndAdd(entry('single', randomVector(4)), { call: single });
      await other.compareAndAdd(entry('single', randomVector(4)), { call: single.toLowerCase() });
      expect(await made.size()).toBe(6);
    });

    test('is stored once when it is made many times at once', async () => {
      const { made } = await stored({ table: 'named_crowd' });
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => made.compareAndAddBatch(batch, { call })),
      );
      for (const answer of answers) expect(answer).toEqual(answers[0]);
      expect(await made.size()).toBe(4);
    });

    test('is that of its entries', async () => {
      const { made } = await stored({ table: 'named_other' });
      await made.compareAndAddBatch(batch, { call });
      await expectRejection(made.compareAndAdd(batch[0], { call }), 'ERR_STORE', call);
      expect(await made.size()).toBe(4);
    });

    test.each([
      ['a name that is no UUID', 'my call', RangeError],
      ['a number', 7, TypeError],
    ])('%s is refused', async (_, wrong, Class) => {
      const made = store({ pool: { connect() {} } });
      for (const adding of [
        made.compareAndAdd(batch[0], { call: wrong }),
        made.compareAndAddBatch([], { call: wrong }),
      ]) {
        const error = await rejection(adding);
        expect(error).toBeInstanceOf(Class);
        expect(error.code).toBe('ERR_INVALID_OPTION');
      }
    });
  });

  test('expired, unswept vectors hide none from an index that gives up', async () => {
    const table = 'hidden';
    const settings = { table, index: 'hnsw', efSearch: 1, ttlMs: 86_400_000 };
    const { made, database } = await stored({
      ...settings,
      connection: { options: '-c hnsw.max_scan_tuples=1 -c max_parallel_workers_per_gather=0' },
    });
    await database.query(`
      INSERT INTO ${table} SELECT i, clock_timestamp() - interval '2 days', gen_random_uuid(), embedding, 'old'
        FROM ${table}, generate_series(-2000, -1) i WHERE position = 0`);
    await database.query(
      `UPDATE ${table} SET embedding = (SELECT embedding FROM ${table} WHERE position = -1)`,
    );
    await made.compareAndAdd(entry('far', randomVector(2)));
    await database.query(`DELETE FROM ${table} WHERE position = 0`);
    expect((await made.nearest(randomVector(1), 1, MODEL))[0]?.label).toBe('far');
    expect((await made.compareAndAdd(entry('near', randomVector(1))))[0]?.label).toBe('far');
  });

  test('an answer that is lost twice rejects', async () => {
    const { made, database } = await stored();
    changeQueries(database, () => () => Promise.reject(lostConnection()));
    const error = await expectRejection(made.size(), 'ERR_STORE_UNAVAILABLE');
    expect(error.cause.code).toBe('ECONNRESET');
  });

  test('an answer that is lost for good: the scorer goes on, and sends the same call later', async () => {
    const { made, database } = await stored();
    let isDown = true;
    changeQueries(database, (query) => async (config) => {
      // What is sent is carried out.
      const result = await query(config);
      if (isDown) throw lostConnection();
      return result;
    });
    const memory = new StoreWithFallback(made, new VectorCache());
    const ask = (id, ...seeds) => memory.ask(entry(id, ...seeds.map(randomVector)), true);
    await warningsWhile(async () => {
      const answers = await Promise.all([ask('second', 2, 3), ask('third', 2)]);
      expect(answers.map(({ isLocal }) => isLocal)).toEqual([true, true]);
    });
    expect((await rejection(memory.flush())).code).toBe('ERR_STORE_UNAVAILABLE');
    isDown = false;
    await memory.flush();
    expect(await made.size()).toBe(4);
  });

  test('slow: the call rejects in time, nothing is stored, and the connections stay clean', async () => {
    const { made, database } = await stored({ table: 'slow', timeoutMs: 300, connection: { max: 2 } });
    const unlock = await lock('slow');
    const errors = await Promise.all(
      [1, 2, 3].map((seed) => rejection(made.compareAndAdd(entry('late', randomVector(seed))))),
    );
    for (const error of errors) expect(error.code).toBe('ERR_STORE_TIMEOUT');
    await unlock();
    await sleep(50);
    expect(await made.size()).toBe(1);
    expect(database.totalCount - database.idleCount).toBe(0);
    expect(await made.compareAndAdd(entry('in time', randomVector(3)))).toEqual([expect.anything()]);
  });

  test('a server that does not answer at all: the call rejects in time, and its connection is closed', async () => {
    const { made, database } = await stored({ timeoutMs: 300, connection: { max: 1 } });
    let hangs = true;
    changeQueries(database, (query) => (config) => {
      if (!hangs) return query(config);
      hangs = false;
      const [tag] = /^.*?\*\//.exec(config.text);
      return query({ ...config, text: `${tag} SELECT pg_sleep(30)`, values: [] });
    });
    expect((await rejection(made.size())).code).toBe('ERR_STORE_TIMEOUT');
    expect(await made.size()).toBe(1);
    // The server was told to stop, too.
    const observer = pool();
    for (;;) {
      const { rows } = await observer.query(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)' AND state = 'active'",
      );
      if (rows.length === 0) break;
      await sleep(20);
    }
  });

  test('no connection to be had: the call rejects in time, and takes none with it', async () => {
    const { made, database } = await stored({ timeoutMs: 200, connection: { max: 1 } });
    const client = await database.connect();
    await expectRejection(made.size(), 'ERR_STORE_TIMEOUT', 'connection');
    client.release();
    expect(await made.size()).toBe(1);
    expect(database.idleCount).toBe(1);
  });

  test('a signal cancels a call that waits in the server', async () => {
    const { made, database } = await stored({ table: 'aborted', timeoutMs: 60_000 });
    const unlock = await lock('aborted');
    const controller = new AbortController();
    const reason = new Error('not any more');
    const adding = rejection(made.compareAndAdd(entry('x', randomVector(2)), { signal: controller.signal }));
    await waitForLocks();
    controller.abort(reason);
    expect(await adding).toBe(reason);
    await unlock();
    expect(await made.size()).toBe(1);
    expect(database.totalCount).toBe(database.idleCount);
  });

  test('a signal that has no reason rejects with one all the same', async () => {
    const { made, database } = await stored({ table: 'reasonless', connection: { max: 2 } });
    /** Aborts a call when `isWaiting` settles. */
    const abortWhen = async (isWaiting) => {
      let abort;
      const signal = {
        aborted: false,
        addEventListener: (_, listener) => {
          abort = listener;
        },
      };
      const adding = rejection(made.compareAndAdd(entry('x', randomVector(2)), { signal }));
      await isWaiting();
      signal.aborted = true;
      abort();
      expect((await adding)?.name).toBe('AbortError');
    };
    const unlock = await lock('reasonless');
    await abortWhen(waitForLocks);
    await unlock();
    const clients = [await database.connect(), await database.connect()];
    await abortWhen(() => sleep(20));
    for (const client of clients) client.release();
    expect(await made.size()).toBe(1);
  });

  test("the time limit of the user's own connection is one too", async () => {
    const { made } = await stored({ table: 'limited', connection: { statement_timeout: 100 } });
    const unlock = await lock('limited');
    const error = await rejection(made.compareAndAdd(entry('x', randomVector(2))));
    await unlock();
    expect(error.code).toBe('ERR_STORE_TIMEOUT');
    expect(error.cause.code).toBe('57014');
    expect(await made.size()).toBe(1);
  });

  test('read-only: nothing can be added, and all can be asked', async () => {
    const { made } = await stored({ table: 'standby' });
    const reading = store({
      ...{ table: 'standby', pool: pool({ options: '-c default_transaction_read_only=on' }) },
    });
    await expectRejection(reading.compareAndAdd(entry('x', randomVector(2))), 'ERR_STORE_READ_ONLY');
    expect((await reading.nearest(randomVector(1), 1, MODEL))[0].label).toBe('first');
    expect(await reading.size()).toBe(1);
    await reading.migrate();
    expect(
      (await rejection(store({ pool: pool({ options: '-c default_transaction_read_only=on' }) }).migrate()))
        .code,
    ).toBe('ERR_STORE_READ_ONLY');
    expect(await made.size()).toBe(1);
  });

  test('another isolation level by default costs repetitions, and no duplicates', async () => {
    const { made } = await stored({ table: 'isolated' });
    for (const level of ['repeatable read', 'serializable']) {
      const isolated = store({
        ...{ table: 'isolated', timeoutMs: 60_000 },
        pool: pool({ options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` }),
      });
      const seed = level.length;
      const comparisons = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          isolated.compareAndAdd(entry(`${level} ${index}`, randomVector(seed))),
        ),
      );
      expect(comparisons.filter(([{ similarity }]) => similarity < 0.9)).toHaveLength(1);
    }
    expect(await made.size()).toBe(17);
  });

  test('a disk that is full, as the server tells it', async () => {
    const { made, database } = await stored({ table: 'full_trigger' });
    await database.query(`
      CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file'; END $$;
      CREATE TRIGGER no_space BEFORE INSERT ON full_trigger FOR EACH ROW EXECUTE FUNCTION no_space()`);
    const error = await expectRejection(
      made.compareAndAddBatch([entry('x', randomVector(2)), entry('y', randomVector(3))]),
      'ERR_STORE_FULL',
    );
    expect(error.cause.code).toBe('53100');
    await database.query('DROP TRIGGER no_space ON full_trigger');
    expect(await made.size()).toBe(1);
    await made.compareAndAdd(entry('x', randomVector(2)));
    // No position was used up.
    const { rows } = await database.query('SELECT position FROM full_trigger ORDER BY position');
    expect(rows.map(({ position }) => Number(position))).toEqual([0, 1]);
  });

  test('sweeps happen by themselves, and a failure of them is told once', async () => {
    const { made, database } = await stored({ table: 'swept', maxElements: 3, sweepIntervalMs: 5 });
    const count = async () => Number((await database.query('SELECT count(*) FROM swept')).rows[0].count);
    for (let seed = 0; seed < 10; seed++) await made.compareAndAdd(entry('x', randomVector(seed)));
    while ((await count()) > 3) {
      await made.compareAndAdd(entry('x', randomVector(1)));
      await sleep(5);
    }
    expect(await made.size()).toBe(3);
    const warnings = await warningsWhile(async (warnings) => {
      await database.query('ALTER FUNCTION swept_sweep RENAME TO gone');
      while (warnings.length === 0) {
        await made.compareAndAdd(entry('x', randomVector(1)));
        await sleep(5);
      }
      for (let round = 0; round < 10; round++) {
        await made.compareAndAdd(entry('x', randomVector(1)));
        await sleep(10);
      }
    });
    expect(warnings.map(({ code }) => code)).toEqual(['ERR_STORE_SCHEMA']);
  });

  test('a closed store refuses, and its pool still works', async () => {
    const { made, database } = await stored();
    made.close();
    expect((await rejection(made.size())).code).toBe('ERR_STORE_UNAVAILABLE');
    await database.query('SELECT 1');
  });

  test('calls that make no sense are refused before the database is asked', async () => {
    const made = store({ pool: { connect: () => expect(true).toBe(false) } });
    const whole = entry('a', randomVector(1));
    const withModel = (model) => ({ ...whole, model });
    const filled = (number) => entry('a', new Float32Array(384).fill(number));
    for (const [call, name, code] of [
      [made.compareAndAdd(null), 'TypeError', 'ERR_INVALID_ENTRY'],
      [made.compareAndAdd({ ...whole, id: 7 }), 'TypeError', 'ERR_INVALID_ENTRY'],
      [made.compareAndAdd({ ...whole, vectors: [] }), 'TypeError', 'ERR_INVALID_ENTRY'],
      [made.compareAndAdd(withModel(null)), 'TypeError', 'ERR_INVALID_ENTRY'],
      [made.compareAndAdd(withModel({ model: 'm' })), 'TypeError', 'ERR_INVALID_ENTRY'],
      [made.compareAndAdd(entry('a', [1, 2])), 'TypeError', 'ERR_INVALID_VECTOR'],
      [made.compareAndAdd(entry('a', new Float32Array(383))), 'RangeError', 'ERR_INVALID_VECTOR'],
      [made.compareAndAdd(filled(0)), 'RangeError', 'ERR_INVALID_VECTOR'],
      [made.compareAndAdd(filled(Number.NaN)), 'RangeError', 'ERR_INVALID_VECTOR'],
      [made.compareAndAddBatch('no'), 'TypeError', 'ERR_INVALID_ENTRY'],
      [
        made.compareAndAddBatch([whole, withModel({ ...MODEL, dtype: 'q8' })]),
        'Error',
        'ERR_STORE_OTHER_MODEL',
      ],
      [made.compareAndAdd(whole, { signla: null }), 'TypeError', 'ERR_INVALID_OPTION'],
      [made.nearest(randomVector(1), 1, MODEL, { method: 7 }), 'TypeError', 'ERR_INVALID_OPTION'],
      [made.setLimits({ maxElement: 1 }), 'TypeError', 'ERR_INVALID_OPTION'],
      [made.nearest(randomVector(1), -1, MODEL), 'RangeError', 'ERR_INVALID_OPTION'],
      [made.nearest(randomVector(1), 1, {}), 'TypeError', 'ERR_INVALID_ENTRY'],
      [made.size({ signal: 'no' }), 'TypeError', 'ERR_INVALID_OPTION'],
    ]) {
      expect(await rejection(call)).toMatchObject({ name, code });
    }
  });

  test('a vector without length resembles nothing', async () => {
    const { made } = await stored();
    expect(await made.nearest(new Float32Array(384), 1, MODEL)).toEqual([{ label: 'first', similarity: 0 }]);
  });

  describe('a Scorer on the store', () => {
    const traces = Array.from({ length: 6 }, (_, index) => ({
      ...makeTrace({ objective: `Task ${index}: ${['bake bread', 'fly a kite', 'sort mail'][index % 3]}` }),
      id: `trace ${index}`,
    }));

    test('gives the scores that a cache gives', async () => {
      expect((await embedderStatus()).available).toBe(true);
      const shared = await migrated();
      const scorer = new Scorer({ memory: shared });
      const expected = await new Scorer({ memory: new VectorCache() }).evaluateValues(traces);
      const scores = await scorer.evaluateValues(traces);
      for (const [index, score] of scores.entries()) expect(score).toBeCloseTo(expected[index], 6);
      expect(await shared.size()).toBe(traces.length);
    });

    test('rejects with the code of the store, or falls back and recovers', async () => {
      const shared = await migrated();
      const strict = new Scorer({ memory: shared });
      const lenient = new Scorer({ memory: shared, fallback: new VectorCache() });
      await lenient.evaluateValue(traces[0]);
      await context.server.stop();
      expect((await rejection(strict.evaluateValue(traces[1]))).code).toBe('ERR_STORE_UNAVAILABLE');
      expect(await lenient.evaluateValue(traces[1])).toBeGreaterThan(0);
      await context.server.start();
      // It leaves the store alone for a second.
      await sleep(1100);
      await lenient.evaluateValue(traces[2]);
      expect(await shared.size()).toBe(3);
    });
  });
});
