'use strict';

// A novelty memory in PostgreSQL. A call is one transaction under an advisory lock: it finds what its traces are compared with, and adds them.

const { createHash, randomUUID } = require('node:crypto');

const { attempt, codedError, fromAddon } = require('../calls/errors.js');
const { inRange, invalidOption, kindOf, ofType, oneOf, readOptions } = require('../calls/options.js');
const { addon } = require('../loader.js');
const { METHODS, readMemory } = require('../trace-memory.js');
const { DIMENSIONS } = require('../vector-cache.js');
const sql = require('./sql.js');
const { flush } = require('./fallback.js');
const { transact } = require('./transaction.js');

/**
 * @import { PgPool, PostgresStore as Public } from '../../postgres.js'
 * @import { NativeTraceSample } from '../binding.js'
 * @import { Entry, Neighbour, Store } from './calls.js'
 * @import { Statements } from './sql.js'
 * @import { Query } from './transaction.js'
 */

const DEFAULT_TABLE = 'knowledgepulse_novelty';

/** The longest name of a table: PostgreSQL has 63 bytes, and `_words` and `_hnsw` follow. */
const MAX_NAME_BYTES = 57;

/** The longest time to live in milliseconds, six thousand years. A longer one is for ever. */
const MAX_TTL_MS = 2e14;

/** The time limit of an opening, which may build an index: the longest delay of a timer. */
const OPENING_MS = 2 ** 31 - 1;

/** The heaviest words of a trace, by which it is found. */
const INDEXED_WORDS = 48;

/** The most words of a trace that are looked up, and about how many traces have them together. */
const ASKED_WORDS = 256;
const ASKED_TRACES = 12_000;

/** The traces that an entry is compared with, and all entries of a call. Up to the first number all traces are compared. */
const CANDIDATES = 96;
const CALL_CANDIDATES = 2048;

/** The most traces whose words are counted. They are counted anew when this share of the traces is new. */
const SAMPLE = 4096;
const STALENESS = 1 / 16;

/** The most traces that a call deletes, beside as many as it adds. */
const EVICTED = 100;

/** @typedef {{ lowest: number, beyond: number, isStored: boolean }} View positions from `lowest` to before `beyond` are compared */

/** @typedef {{ position: number, id: string | null, bytes: Buffer, entries: number[] }} Stored `entries` it is a candidate for */

/** @typedef {(statement: keyof Statements, values: unknown[]) => Promise<any[][]>} Ask runs a statement in the transaction of a call */

/**
 * A novelty memory in a PostgreSQL table that any number of processes share.
 *
 * @implements {Public}
 * @implements {Store}
 */
class PostgresStore {
  #settings;
  /** @type {ReturnType<typeof open> | undefined} once the tables are there */
  #opened;
  /** @type {{ size: number, native: NativeTraceSample } | undefined} the latest sample, and the number of traces at its making */
  #sample;

  /** @param {ConstructorParameters<typeof Public>[0]} options */
  constructor(options) {
    this.#settings = readSettings(options);
    ignoreIdleErrors(this.#settings.pool);
  }

  get method() {
    return this.#settings.method;
  }

  /** The memory that stands in for the store while it fails. */
  get fallback() {
    return this.#settings.fallback;
  }

  /** @type {Public['size']} */
  async size() {
    const { lowest, beyond } = await this.#transact(false, (ask) => this.#view(ask, null, null));
    return beyond - lowest;
  }

  /** @type {Public['flush']} */
  flush() {
    return flush(this);
  }

  /** @type {Store['compare']} */
  async compare(entries, call = randomUUID()) {
    const { method, maxElements } = this.#settings;
    const [{ model }] = entries;
    const origin = model && `${model.model} (${model.dtype})`;
    return this.#transact(call !== null, async (ask) => {
      const view = await this.#view(ask, call, origin);
      const adds = call !== null && !view.isStored;
      const labels = entries.map(({ id }) => storable(id));
      const data = entries.map((entry) => dataOf(entry, method));
      const values = [view.beyond, call, origin, labels, data];
      let found;
      if (method === 'prefix') {
        if (adds) await ask('addVectors', values);
        found = await this.#compareVectors(ask, view, data);
      } else {
        const compared = await this.#compareTraces(ask, view, entries);
        if (adds) await ask('addWords', [...values, ...compared.words]);
        found = compared.found;
      }
      if (!adds) return found;
      const stays = Math.max(view.lowest, view.beyond + entries.length - maxElements);
      if (stays > 0) await ask('evict', [stays, entries.length + EVICTED]);
      return found;
    });
  }

  /**
   * Runs `work` in a transaction, under the lock of additions if it adds.
   *
   * @template T
   * @param {boolean} adds
   * @param {(ask: Ask) => Promise<T>} work
   */
  async #transact(adds, work) {
    const { pool, method, hnsw } = this.#settings;
    // Opened once; after a failure again.
    this.#opened ??= open(this.#settings).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
    const { statements, lock } = await this.#opened;
    const begin = sql.beginCall(method, hnsw, adds ? lock : undefined);
    return transact(pool, begin, (query) =>
      work((statement, values) => query(statements[statement], values)),
    );
  }

  /**
   * @param {Ask} ask
   * @param {string | null} call
   * @param {string | null} origin the model of the call's embeddings
   * @returns {Promise<View>}
   */
  async #view(ask, call, origin) {
    const { maxElements, ttlMs } = this.#settings;
    const values = [call, maxElements, ttlMs > MAX_TTL_MS ? null : ttlMs];
    const [[lowest, beyond, isStored, model]] = await ask('view', values);
    const view = { lowest: Number(lowest), beyond: Number(beyond), isStored: isStored === 't' };
    if (origin !== null && model !== null && model !== origin && view.lowest < view.beyond) {
      const message = `the table of the store has embeddings of ${model}, not of ${origin}: use that model, or another table`;
      throw codedError(Error, 'ERR_MEMORY_MISMATCH', message);
    }
    return view;
  }

  /**
   * @param {Ask} ask
   * @param {View} view
   * @param {string[]} vectors
   */
  async #compareVectors(ask, { lowest, beyond }, vectors) {
    const { hnsw, maxElements } = this.#settings;
    // The first entry of an empty store has none before it.
    const expected = vectors.length - (lowest < beyond ? 0 : 1);
    if (expected === 0) return [null];
    const values = [vectors, lowest, beyond, maxElements];
    let rows = await ask('nearest', values);
    if (hnsw && rows.length < expected) {
      // The index gives up after some thousands of expired neighbours.
      await ask('scan', []);
      rows = await ask('nearest', values);
    }
    /** @type {Array<Neighbour | null>} */
    const found = vectors.map(() => null);
    for (const [entry, id, similarity] of rows) {
      const parts = { lexical: null, contained: null, embedded: null };
      found[Number(entry)] = { id, similarity: Number(similarity), ...parts };
    }
    return found;
  }

  /**
   * @param {Ask} ask
   * @param {View} view
   * @param {readonly Entry[]} entries
   */
  async #compareTraces(ask, { lowest, beyond }, entries) {
    const { maxElements } = this.#settings;
    const traces = entries.map(({ packed }) => /** @type {Uint8Array} */ (packed));
    const size = beyond - lowest;
    const isSmall = size <= CANDIDATES;
    const all = isSmall ? await readTraces(ask, range(lowest, beyond)) : [];
    const sample = isSmall
      ? await this.#sampleOf([...all.map(({ bytes }) => bytes), ...traces])
      : await this.#sampleFor(ask, lowest, size);
    const heaviest = (/** @type {[memory: number, most: number, budget: number]} */ ...limits) =>
      fromAddon(() => sample.heaviest(traces, ...limits)).map((column) => array(column));
    const [numbers, hashes] = heaviest(size + entries.length, INDEXED_WORDS, Number.POSITIVE_INFINITY);
    let known = all;
    if (!isSmall) {
      // Those that share the rarest words with entries.
      const count = Math.min(CANDIDATES, Math.ceil(CALL_CANDIDATES / traces.length));
      const asked = heaviest(size, ASKED_WORDS, ASKED_TRACES);
      known = (await ask('candidates', [...asked, lowest, beyond, count])).map(storedOf);
    }
    // The newest trace is a candidate for every entry, because those without shared words are compared too.
    const isOne = (/** @type {Stored} */ stored, /** @type {number} */ entry) =>
      stored.entries.includes(entry) || stored.position === beyond - 1;
    const candidatesOf = (/** @type {unknown} */ _, /** @type {number} */ entry) =>
      Uint32Array.from(known.flatMap((stored, index) => (isOne(stored, entry) ? [index] : [])));
    const candidates = isSmall ? null : entries.map(candidatesOf);
    const bytes = known.map((stored) => stored.bytes);
    const reach = isSmall ? maxElements : size;
    const similar = await fromAddon(() => sample.compare(bytes, traces, candidates, reach));
    const ids = [...known.map(({ id }) => id), ...entries.map(({ id }) => storable(id))];
    /** @type {Array<{ index: number } & Omit<Neighbour, 'id'> | null>} */
    const nearest = JSON.parse(similar);
    const found = nearest.map((each) => {
      if (each === null) return null;
      const { index, ...parts } = each;
      return { id: ids[index], ...parts };
    });
    return { found, words: [numbers, hashes] };
  }

  /**
   * Returns a sample of the traces of a store, which is renewed when too many are new.
   *
   * @param {Ask} ask
   * @param {number} lowest
   * @param {number} size
   */
  async #sampleFor(ask, lowest, size) {
    const latest = this.#sample;
    if (latest !== undefined && Math.abs(size - latest.size) <= latest.size * STALENESS) return latest.native;
    const count = Math.min(size, SAMPLE);
    const positions = range(0, count).map((index) => lowest + Math.floor((index * size) / count));
    const stored = await readTraces(ask, positions);
    const native = await this.#sampleOf(stored.map(({ bytes }) => bytes));
    this.#sample = { size, native };
    return native;
  }

  /** @param {Uint8Array[]} traces */
  async #sampleOf(traces) {
    // The components of a stored embedding; none where words alone are compared.
    const dimensions = this.#settings.method === 'full' ? DIMENSIONS : 0;
    return fromAddon(() => addon.NativeTraceSample.of(traces, dimensions));
  }
}

/**
 * @param {Ask} ask
 * @param {number[]} positions
 */
const readTraces = async (ask, positions) => (await ask('traces', [array(positions)])).map(storedOf);

/**
 * Creates the tables unless they exist. Returns the statements of calls, and the key of the advisory lock of additions.
 *
 * @param {ReturnType<typeof readSettings>} settings
 */
async function open({ pool, schema, table, method, hnsw }) {
  return transact(
    pool,
    sql.BEGIN_OPENING,
    async (query) => {
      const [[current]] = await query('SELECT current_setting($1)', ['knowledgepulse.schema']);
      const namespace = schema ?? current;
      if (namespace === '') throw schemaError('the search path has no schema to create tables in; name one');
      const index = `${table}_hnsw`;
      const look = () => query(sql.LOOK, [namespace, table, index]);
      let [[columns, extension, isIndexed]] = await look();
      if (method === 'prefix' && extension === null) {
        await createExtension(query, namespace);
        [[columns, extension, isIndexed]] = await look();
      }
      const names = {
        table: sql.quoted(namespace, table),
        words: sql.quoted(namespace, `${table}_words`),
        hnsw: sql.quoted(index),
        extension: sql.quoted(extension ?? ''),
      };
      if (columns === null) {
        for (const statement of sql.create(names, method)) await query(statement, []);
      } else requireMethod(columns.split(' '), method, table);
      if (hnsw && isIndexed !== 't') await query(sql.createHnsw(names), []);
      const lock = createHash('sha256').update(names.table).digest().readBigInt64LE();
      return { statements: sql.statementsOf(names, method), lock };
    },
    OPENING_MS,
  );
}

/**
 * @param {Query} query
 * @param {string} namespace
 */
async function createExtension(query, namespace) {
  try {
    await query(`CREATE EXTENSION vector SCHEMA ${sql.quoted(namespace)}`, []);
  } catch (cause) {
    const message =
      "method 'prefix' needs the extension pgvector, which cannot be created in the database; have an administrator create it, " +
      `or use method 'lexical' or 'full', which need no extension: ${/** @type {Error} */ (cause).message}`;
    throw codedError(Error, 'ERR_STORE_SCHEMA', message, cause);
  }
}

/**
 * @param {string[]} columns
 * @param {keyof typeof sql.COLUMNS} method
 * @param {string} table
 */
function requireMethod(columns, method, table) {
  const isOurs = ['position', 'call', 'entry', 'found'].every((column) => columns.includes(column));
  const methods = /** @type {Array<typeof method>} */ (Object.keys(sql.COLUMNS));
  const held = methods.find((each) => columns.includes(sql.COLUMNS[each]));
  if (!isOurs || held === undefined) throw schemaError(`${table} is not a table of a store; name another`);
  if (held === method) return;
  const message = `the table ${table} is of method '${held}', not of '${method}': use that method, or another table`;
  throw codedError(Error, 'ERR_MEMORY_MISMATCH', message);
}

/** @param {string} message */
const schemaError = (message) => codedError(Error, 'ERR_STORE_SCHEMA', message);

/**
 * @param {any[]} row
 * @returns {Stored}
 */
function storedOf([position, id, data, entries]) {
  const bytes = Buffer.from(data, 'base64');
  return { position: Number(position), id, bytes, entries: entries?.split(',').map(Number) ?? [] };
}

/**
 * Returns the data of a trace as a text of PostgreSQL.
 *
 * @param {Entry} entry
 * @param {keyof typeof sql.COLUMNS} method
 */
function dataOf({ vector, packed }, method) {
  return method === 'prefix' ? `[${vector}]` : `\\x${Buffer.from(packed ?? []).toString('hex')}`;
}

/** @param {{ join(): string }} numbers */
const array = (numbers) => `{${numbers.join()}}`;

/**
 * @param {number} from
 * @param {number} to
 */
const range = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

/**
 * Replaces NUL and lone surrogates in an id, which PostgreSQL cannot store.
 *
 * @param {string | null} id
 */
const storable = (id) => id?.replace(/\0|\p{Surrogate}/gu, '\uFFFD') ?? null;

const ignore = () => {};

/**
 * Listens for errors of idle connections, which would otherwise end the process; the pool drops them.
 *
 * @param {PgPool & Partial<import('node:events').EventEmitter>} pool
 */
function ignoreIdleErrors(pool) {
  if (pool.listeners?.('error').includes(ignore) === false) pool.on?.('error', ignore);
}

const OPTIONS = {
  pool: kindOf(isPool, 'a Pool of the package pg'),
  table: readTable,
  method: oneOf(METHODS),
  maxElements: inRange({ from: 1, whole: true }),
  ttlMs: inRange({ from: 0 }),
  hnsw: ofType('boolean'),
  fallback: readMemory,
};

/** @param {unknown} options */
function readSettings(options) {
  const {
    pool,
    table: named,
    method,
    ...others
  } = readOptions(options, OPTIONS, 'options', ['pool', 'method']);
  const { maxElements = 100_000, ttlMs = Number.POSITIVE_INFINITY, hnsw = false, fallback } = others;
  if (hnsw && method !== 'prefix') {
    throw invalidOption(RangeError, "options.hnsw is for method 'prefix': others compare words");
  }
  if (fallback !== undefined && fallback.method !== method) {
    const message = `options.fallback compares by method '${fallback.method}', and the store by '${method}': use a memory of that method`;
    throw codedError(Error, 'ERR_MEMORY_MISMATCH', message);
  }
  const { schema, table } = named ?? { schema: undefined, table: DEFAULT_TABLE };
  return { pool, schema, table, method, maxElements, ttlMs, hnsw, fallback };
}

/**
 * Whether a value is a pool: it has `connect`, and is not itself a connection.
 *
 * @param {unknown} value
 * @returns {value is PgPool}
 */
function isPool(value) {
  return attempt(() => {
    const { connect, query, totalCount } = /** @type {Record<string, unknown>} */ (value);
    const isConnection = typeof query === 'function' && totalCount === undefined;
    return typeof value === 'object' && typeof connect === 'function' && !isConnection;
  }, false);
}

/**
 * Reads a name, which may begin with a schema and a dot.
 *
 * @param {unknown} value
 * @param {string} path
 */
function readTable(value, path) {
  const name = ofType('string')(value, path);
  const dot = name.indexOf('.');
  const [schema, table] = dot === -1 ? [undefined, name] : [name.slice(0, dot), name.slice(dot + 1)];
  const isName = (/** @type {string} */ part, /** @type {number} */ most) =>
    part !== '' && !/\0|\p{Surrogate}/u.test(part) && Buffer.byteLength(part) <= most;
  if (isName(table, MAX_NAME_BYTES) && (schema === undefined || isName(schema, 63))) return { schema, table };
  const message = `${path} must be a name of 1 to ${MAX_NAME_BYTES} bytes, or a schema, a dot and a name`;
  throw invalidOption(RangeError, message);
}

module.exports = { PostgresStore };
