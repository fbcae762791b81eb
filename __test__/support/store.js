'use strict';

// A PostgreSQL server for the tests of a file, and stores on it.

const { PostgresStore } = require('../../postgres.js');
const { startPostgres, unavailable } = require('./postgres.js');
const { rejectionOf } = require('./refusals.js');

const reason = unavailable();

/** As `describe`, skipped where there is no PostgreSQL. scripts/postgres.mjs has said why. */
const describeWithPostgres = reason === undefined ? describe : describe.skip;

const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };

/** Starts a server before the tests of a file and removes it after them. Its pools and stores end with the test that asks for them. */
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
  context.store = ({ pool = context.pool(), method = 'lexical', ...more } = {}) =>
    new PostgresStore({ pool, method, table: `novelty_${++tables}`, ...more });
  context.url = () => {
    const { host, port, user, database } = context.server.connection();
    return `postgres://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
  };
  return context;
}

/** An entry of a store of embeddings. */
const entry = (id, vector) => ({ id, vector, words: null, model: MODEL });

/** Has the pool hand out connections whose `query` is what `change` makes of it. */
function changeQueries(database, change) {
  const connect = database.connect.bind(database);
  database.connect = (callback) =>
    connect((error, client, release) => {
      if (client) client.query = change(Object.getPrototypeOf(client).query.bind(client));
      callback(error, client, release);
    });
}

/** Expects that a call rejects with an `Error` of a code, whose message has these parts, and returns it. */
async function expectRejection(call, code, ...parts) {
  const error = await rejectionOf(call);
  expect(error).toBeInstanceOf(Error);
  expect(error.code).toBe(code);
  for (const part of parts) expect(error.message).toContain(part);
  return error;
}

module.exports = {
  MODEL,
  changeQueries,
  describeWithPostgres,
  entry,
  expectRejection,
  rejection: rejectionOf,
  useServer,
};
