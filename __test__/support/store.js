'use strict';

// A PostgreSQL server for the tests of a file, and stores on it.

const { LocalStore, Scorer, TraceMemory } = require('../..');
const { PostgresTraceStore, PostgresVectorStore } = require('../../postgres.js');
const { startPostgres, unavailable } = require('./postgres.js');
const { rejectionOf } = require('./refusals.js');
const { clusteredVector, randomVector } = require('./vectors.js');

const reason = unavailable();

/** As `describe`, skipped where there is no PostgreSQL. scripts/postgres.mjs has said why. */
const describeWithPostgres = reason === undefined ? describe : describe.skip;

const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };

/**
 * Starts a server before the tests of a file and removes it after them. What it returns has pools and stores, which end
 * with the test that asks for them.
 */
function useServer(options) {
  const { Pool } = require('pg');
  const context = { server: undefined };
  const ends = [];
  let tables = 0;

  beforeAll(async () => {
    if (reason === undefined) context.server = await startPostgres(options);
  });
  afterEach(async () => {
    while (ends.length > 0) await ends.pop()();
  });
  afterAll(() => context.server?.remove());

  context.pool = (connection = {}) => {
    const pool = new Pool(context.server.connection(connection));
    // Servers are stopped while it idles.
    pool.on('error', () => {});
    ends.push(() => pool.end());
    return pool;
  };
  /** A store that has not been migrated. */
  context.store = ({ pool = context.pool(), novelty = 'prefix', ...more } = {}) => {
    const options = { pool, table: `novelty_${++tables}`, ...more };
    const store =
      novelty === 'prefix'
        ? new PostgresVectorStore(options)
        : new PostgresTraceStore({ ...options, novelty });
    ends.push(() => store.close());
    return store;
  };
  context.migrated = async (more) => {
    const store = context.store(more);
    await store.migrate();
    return store;
  };
  return context;
}

/** Has the pool hand out connections whose `query` is what `change` makes of it. */
function changeQueries(database, change) {
  const connect = database.connect.bind(database);
  database.connect = (callback) =>
    connect((error, client, release) => {
      if (client) client.query = change(Object.getPrototypeOf(client).query.bind(client));
      callback(error, client, release);
    });
}

const lostConnection = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** What a scorer gives a store of these traces. */
async function entriesOf(traces) {
  const captured = [];
  const capturing = new LocalStore(new TraceMemory());
  capturing.compareAndAddBatch = async (entries) => {
    captured.push(...entries);
    return entries.map(() => [null]);
  };
  await new Scorer({ memory: capturing }).evaluateValues(traces);
  return captured;
}

/** Expects that a call rejects with an `Error` of a code, whose message has these parts, and returns it. */
async function expectRejection(call, code, ...parts) {
  const error = await rejectionOf(call);
  expect(error).toBeInstanceOf(Error);
  expect(error.code).toBe(code);
  for (const part of parts) expect(error.message).toContain(part);
  return error;
}

const entry = (id, ...vectors) => ({ id, vectors, model: MODEL });

module.exports = {
  MODEL,
  changeQueries,
  clusteredVector,
  describeWithPostgres,
  entriesOf,
  entry,
  expectRejection,
  lostConnection,
  randomVector,
  rejection: rejectionOf,
  useServer,
};
