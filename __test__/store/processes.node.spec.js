'use strict';

// Many processes on one store, some of which are killed, and so is the server.

const { fork } = require('node:child_process');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { describeWithPostgres, useServer } = require('../support/store.js');

const PROCESSES = 8;

describeWithPostgres('many processes', () => {
  const context = useServer();
  const { pool, store } = context;
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
    [false, 1, 60],
    [false, 16, 8],
    [true, 1, 40],
  ])('all add the same at once, hnsw %s, %d at a time', async (hnsw, batch, rounds) => {
    const { table, workers } = await startWorkers({ hnsw, batch, rounds });
    const results = await Promise.all(workers.map(({ done }) => done));
    expect(results.map(({ code }) => code)).toEqual(Array(PROCESSES).fill(0));
    expect(await check(table, results, { hasLost: false })).toBe(PROCESSES * batch * rounds);
  });

  test('processes that are killed leave whole entries or none', async () => {
    const { table, workers } = await startWorkers({ batch: 4, rounds: 1000 });
    for (const [index, worker] of workers.entries()) {
      while (worker.lines() < 20 + index * 16) await sleep(5);
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
    const { table, workers } = await startWorkers({ batch: 2, rounds: 120, patient: true });
    const lines = () => workers.reduce((sum, worker) => sum + worker.lines(), 0);
    for (let time = 1; time <= 3; time++) {
      while (lines() < time * 300) await sleep(5);
      await context.server.kill();
      await context.server.start();
    }
    const results = await Promise.all(workers.map(({ done }) => done));
    expect(results.map(({ code }) => code)).toEqual(Array(PROCESSES).fill(0));
    const errors = results.flatMap(({ told }) => told).filter(({ error }) => error !== undefined);
    expect(errors.filter(({ error }) => error !== 'ERR_STORE_UNAVAILABLE')).toEqual([]);
    // Each worker has repeated its calls until they were acknowledged.
    expect(await check(table, results, { hasLost: false })).toBe(PROCESSES * 240);
  });
});
