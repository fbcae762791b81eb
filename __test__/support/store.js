'use strict';

// A PostgreSQL server for the tests of a file, stores on it, and a store in this process.

const { TraceMemory, VectorCache } = require('../..');
const { LocalMemory } = require('../../lib/store/local.js');
const { PostgresStore } = require('../../postgres.js');
const { startPostgres, unavailable } = require('./postgres.js');
const { rejectionOf } = require('./refusals.js');

const reason = unavailable();

/** As `describe`, skipped where there is no PostgreSQL. scripts/postgres.mjs has said why. */
const describeWithPostgres = reason === undefined ? describe : describe.skip;

const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };

/** A store in this process. `calls` are the numbers of entries that it was given; it fails with what `fail` returns for ids and a call. */
class MemoryStore {
  calls = [];
  stored = new Map();
  fail = () => undefined;

  constructor(novelty = 'lexical', bounds = {}) {
    this.novelty = novelty;
    this.memory = novelty === 'prefix' ? new VectorCache(bounds) : new TraceMemory({ novelty, ...bounds });
    this.local = new LocalMemory(this.memory);
  }

  async compareAndAdd(entries, call) {
    this.calls.push(entries.length);
    // Slower than the event loop, as a real one is.
    await new Promise((resolve) => setTimeout(resolve, 2));
    const ids = entries.map(({ id }) => id);
    const error = this.fail(ids, call);
    if (error !== undefined) throw error;
    if (!this.stored.has(call))
      this.stored.set(call, { ids, found: await this.local.compareAndAdd(entries) });
    return this.stored.get(call).found;
  }

  async compare(entry) {
    this.calls.push('compare');
    const error = this.fail([entry.id]);
    if (error !== undefined) throw error;
    return this.local.compare(entry);
  }

  async size() {
    const error = this.fail([]);
    if (error !== undefined) throw error;
    return this.memory.size;
  }

  /** The ids of the stored traces, in order. */
  get ids() {
    return [...this.stored.values()].flatMap(({ ids }) => ids);
  }
}

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
  context.store = ({ pool = context.pool(), novelty = 'lexical', ...more } = {}) =>
    new PostgresStore({ pool, novelty, table: `novelty_${++tables}`, ...more });
  context.url = () => {
    const { host, port, user, database } = context.server.connection();
    return `postgres://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
  };
  return context;
}

/** What a scorer gives a store of these traces. */
async function entriesOf(traces, novelty = 'lexical') {
  const { Scorer } = require('../..');
  const store = new MemoryStore(novelty, { maxElements: 1 });
  const captured = [];
  store.compareAndAdd = async (entries) => {
    captured.push(...entries);
    return entries.map(() => null);
  };
  await new Scorer({ memory: store }).evaluateValues(traces);
  return captured;
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
  MemoryStore,
  changeQueries,
  describeWithPostgres,
  entriesOf,
  entry,
  expectRejection,
  rejection: rejectionOf,
  useServer,
};
