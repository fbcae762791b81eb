'use strict';

// Stores for tests: one in this process, and those on a PostgreSQL server of the tests of a file.

const { Scorer } = require('../..');
const { addon } = require('../../lib/loader.js');
const { PostgresStore } = require('../../postgres.js');
const { startPostgres, unavailable } = require('../support/postgres.js');
const { needing } = require('../support/needs.js');
const { rejectionOf } = require('../support/refusals.js');

/** The most similar of entries to another one, of equal ones the oldest; null without any. */
async function nearestOf(known, entry, method) {
  if (known.length === 0) return null;
  const none = { lexical: null, contained: null, embedded: null };
  if (method === 'prefix') {
    const similarities = known.map(({ vector }) =>
      vector.reduce((sum, component, index) => sum + component * entry.vector[index], 0),
    );
    const similarity = Math.max(...similarities);
    return { ...none, id: known[similarities.indexOf(similarity)].id, similarity };
  }
  const sample = await addon.NativeTraceSample.of([], method === 'full' ? 384 : 0);
  const found = await sample.compare(
    known.map(({ packed }) => packed),
    [entry.packed],
    null,
    Number.POSITIVE_INFINITY,
  );
  const [{ index, ...parts }] = JSON.parse(found);
  return { ...none, ...parts, id: known[index].id };
}

/** A store in this process. `calls` are the numbers of entries that it was given; it fails with what `fail` returns for ids and a call. */
class MemoryStore {
  calls = [];
  stored = new Map();
  known = [];
  fail = () => undefined;

  constructor(method = 'lexical', fallback = undefined, { maxElements = Number.POSITIVE_INFINITY } = {}) {
    this.method = method;
    this.fallback = fallback;
    this.maxElements = maxElements;
  }

  async compare(entries, call) {
    this.calls.push(call === null ? 'compare' : entries.length);
    // Slower than the event loop, as a real one is.
    await new Promise((resolve) => setTimeout(resolve, 2));
    const ids = entries.map(({ id }) => id);
    const error = this.fail(ids, call);
    if (error !== undefined) throw error;
    if (call === null) return [await nearestOf(this.known, entries[0], this.method)];
    if (!this.stored.has(call)) {
      const found = [];
      for (const entry of entries) {
        found.push(await nearestOf(this.known, entry, this.method));
        this.known.push(entry);
        if (this.known.length > this.maxElements) this.known.shift();
      }
      this.stored.set(call, { ids, found });
    }
    return this.stored.get(call).found;
  }

  async size() {
    const error = this.fail([]);
    if (error !== undefined) throw error;
    return this.known.length;
  }

  /** The ids of the stored traces, in order. */
  get ids() {
    return [...this.stored.values()].flatMap(({ ids }) => ids);
  }
}

/** What a scorer gives a store of these traces. */
async function entriesOf(traces) {
  const store = new MemoryStore();
  await new Scorer({ memory: store }).scoreAll(traces);
  return store.known;
}

const reason = unavailable();

/** As `describe`, skipped where there is no PostgreSQL. */
const describeWithPostgres = (name, tests) =>
  needing(reason === undefined, `PostgreSQL: ${reason}`, describe)(name, tests);

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
  return context;
}

/** An entry of a store of embeddings. */
const entry = (id, vector) => ({ id, vector, packed: null, model: MODEL });

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
  useServer,
};
