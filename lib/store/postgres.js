'use strict';

// A novelty memory in PostgreSQL. A call is one transaction under an advisory lock: it finds what its traces are compared with, and adds them.

const { createHash, randomUUID } = require('node:crypto');

const { attempt, codedError, fromAddon } = require('../calls/errors.js');
const { inRange, invalidOption, ofType, oneOf, readOptions, requireObject } = require('../calls/options.js');
const { addon } = require('../loader.js');
const { describe } = require('../calls/reading.js');
const { METHODS, nativeOf } = require('../trace-memory.js');
const { DIMENSIONS } = require('../vector-cache.js');
const sql = require('./sql.js');
const { flush } = require('./fallback.js');
const { transact } = require('./transaction.js');

/**
 * @import { TraceMemory } from '../../index.js'
 * @import { PgPool, PostgresStore as Public } from '../../postgres.js'
 * @import { NativeTraceSample } from '../binding.js'
 * @import { Entry, Neighbour, Store } from './calls.js'
 * @import { Names } from './sql.js'
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

/**
 * Positions from `lowest` to before `beyond` are compared; the traces from `oldest` on are in the table.
 *
 * @typedef {{ lowest: number, beyond: number, isStored: boolean, oldest: number }} View
 */

/** @typedef {{ position: number, id: string | null, bytes: Buffer, entries: number[] }} Stored `entries` it is a candidate for */

/**
 * A novelty memory in a PostgreSQL table that any number of processes share.
 *
 * @implements {Public}
 * @implements {Store}
 */
class PostgresStore {
  #settings;
  /** @type {Promise<Names> | undefined} the names, once the tables are there */
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
    const names = await this.#open();
    const { method, pool } = this.#settings;
    const begin = sql.beginCall(method, false);
    const { lowest, beyond } = await transact(pool, begin, (query) => this.#view(query, names, null, null));
    return beyond - lowest;
  }

  /** @type {Public['flush']} */
  flush() {
    return flush(this);
  }

  /** @type {Store['compare']} */
  async compare(entry) {
    const [nearest] = await this.#call([entry], null);
    return nearest;
  }

  /** @type {Store['compareAndAdd']} */
  async compareAndAdd(entries, call = randomUUID()) {
    return this.#call(entries, call);
  }

  /**
   * @param {readonly Entry[]} entries
   * @param {string | null} call null to add nothing
   * @returns {Promise<Array<Neighbour | null>>}
   */
  async #call(entries, call) {
    const names = await this.#open();
    const { method, pool, hnsw, maxElements } = this.#settings;
    const [{ model }] = entries;
    const origin = model && `${model.model} (${model.dtype})`;
    const begin = sql.beginCall(method, hnsw, call === null ? undefined : lockOf(names));
    return transact(pool, begin, async (query) => {
      const view = await this.#view(query, names, call, origin);
      const adds = call !== null && !view.isStored;
      const labels = entries.map(({ id }) => storable(id));
      const data = entries.map((entry) => dataOf(entry, method));
      const values = [view.beyond, call, origin, labels, data];
      let found;
      if (method === 'prefix') {
        if (adds) await query(sql.addVectors(names), values);
        found = await this.#compareVectors(query, names, view, data);
      } else {
        const compared = await this.#compareTraces(query, names, view, entries);
        if (adds) await query(sql.addWords(names, method), [...values, ...compared.words]);
        found = compared.found;
      }
      if (!adds) return found;
      const stays = Math.max(view.lowest, view.beyond + entries.length - maxElements);
      if (view.oldest < stays) await query(sql.evict(names, method), [stays, entries.length + EVICTED]);
      return found;
    });
  }

  /**
   * @param {Query} query
   * @param {Names} names
   * @param {string | null} call
   * @param {string | null} origin the model of the call's embeddings
   * @returns {Promise<View>}
   */
  async #view(query, names, call, origin) {
    const { maxElements, ttlMs } = this.#settings;
    const values = [call, maxElements, ttlMs > MAX_TTL_MS ? null : ttlMs];
    const [[lowest, beyond, isStored, model, oldest]] = await query(sql.view(names), values);
    const view = {
      lowest: Number(lowest),
      beyond: Number(beyond),
      isStored: isStored === 't',
      oldest: Number(oldest ?? beyond),
    };
    if (origin !== null && model !== null && model !== origin && view.lowest < view.beyond) {
      const message = `the table of the store has embeddings of ${model}, not of ${origin}: use that model, or another table`;
      throw codedError(Error, 'ERR_MEMORY_MISMATCH', message);
    }
    return view;
  }

  /**
   * @param {Query} query
   * @param {Names} names
   * @param {View} view
   * @param {string[]} vectors
   */
  async #compareVectors(query, names, { lowest, beyond }, vectors) {
    const { hnsw, maxElements } = this.#settings;
    // The first entry of an empty store has none before it.
    const expected = vectors.length - (lowest < beyond ? 0 : 1);
    if (expected === 0) return [null];
    const ask = () => query(sql.nearest(names), [vectors, lowest, beyond, maxElements]);
    let rows = await ask();
    if (hnsw && rows.length < expected) {
      // The index gives up after some thousands of expired neighbours.
      await query(sql.SCAN, []);
      rows = await ask();
    }
    /** @type {Array<Neighbour | null>} */
    const found = vectors.map(() => null);
    for (const [entry, id, similarity] of rows) {
      found[Number(entry)] = neighbourOf(id, { similarity: Number(similarity) });
    }
    return found;
  }

  /**
   * @param {Query} query
   * @param {Names} names
   * @param {View} view
   * @param {readonly Entry[]} entries
   */
  async #compareTraces(query, names, view, entries) {
    const { lowest, beyond } = view;
    const { maxElements } = this.#settings;
    const traces = entries.map(packed);
    const size = beyond - lowest;
    const isSmall = size <= CANDIDATES;
    const all = isSmall ? await this.#read(query, names, range(lowest, beyond)) : [];
    const sample = isSmall
      ? await this.#sampleOf([...all.map(({ bytes }) => bytes), ...traces])
      : await this.#sampleFor(query, names, lowest, beyond);
    const [numbers, hashes] = fromAddon(() =>
      sample.heaviest(traces, size + entries.length, INDEXED_WORDS, Number.POSITIVE_INFINITY),
    );
    const words = [array(numbers), array(hashes)];
    const known = isSmall ? all : await this.#candidates(query, names, view, traces, sample);
    const bytes = known.map((stored) => stored.bytes);
    // The newest trace is a candidate for every entry, because those without shared words are compared too.
    const isOne = (/** @type {Stored} */ stored, /** @type {number} */ entry) =>
      stored.entries.includes(entry) || stored.position === beyond - 1;
    const candidates = () =>
      entries.map((_, entry) =>
        Uint32Array.from(known.flatMap((stored, index) => (isOne(stored, entry) ? [index] : []))),
      );
    const similar = await fromAddon(() =>
      isSmall
        ? sample.compare(bytes, traces, null, maxElements)
        : sample.compare(bytes, traces, candidates(), size),
    );
    const ids = [...known.map(({ id }) => id), ...entries.map(({ id }) => storable(id))];
    /** @type {Array<{ index: number, similarity: number } | null>} */
    const nearest = JSON.parse(similar);
    const found = nearest.map((each) => each && neighbourOf(ids[each.index], each));
    return { found, words };
  }

  /**
   * Returns the traces that share the rarest words with entries.
   *
   * @param {Query} query
   * @param {Names} names
   * @param {View} view
   * @param {Uint8Array[]} traces the entries in bytes
   * @param {NativeTraceSample} sample
   */
  async #candidates(query, names, { lowest, beyond }, traces, sample) {
    const asked = fromAddon(() => sample.heaviest(traces, beyond - lowest, ASKED_WORDS, ASKED_TRACES));
    const count = Math.min(CANDIDATES, Math.ceil(CALL_CANDIDATES / traces.length));
    const values = [...asked.map((column) => array(column)), lowest, beyond, count];
    const rows = await query(sql.candidates(names, this.#settings.method), values);
    return rows.map(storedOf);
  }

  /**
   * Returns a sample of the traces of a store, which is renewed when too many are new.
   *
   * @param {Query} query
   * @param {Names} names
   * @param {number} lowest
   * @param {number} beyond
   */
  async #sampleFor(query, names, lowest, beyond) {
    const size = beyond - lowest;
    const latest = this.#sample;
    if (latest !== undefined && Math.abs(size - latest.size) <= latest.size * STALENESS) return latest.native;
    const count = Math.min(size, SAMPLE);
    const positions = Array.from(
      { length: count },
      (_, index) => lowest + Math.floor((index * size) / count),
    );
    const stored = await this.#read(query, names, positions);
    const native = await this.#sampleOf(stored.map(({ bytes }) => bytes));
    this.#sample = { size, native };
    return native;
  }

  /** The components of a stored embedding; 0 where words alone are compared. */
  get #dimensions() {
    return this.#settings.method === 'full' ? DIMENSIONS : 0;
  }

  /** @param {Uint8Array[]} traces */
  async #sampleOf(traces) {
    return fromAddon(() => addon.NativeTraceSample.of(traces, this.#dimensions));
  }

  /**
   * @param {Query} query
   * @param {Names} names
   * @param {number[]} positions
   */
  async #read(query, names, positions) {
    const rows = await query(sql.traces(names, this.#settings.method), [array(positions)]);
    return rows.map(storedOf);
  }

  /** Creates the tables unless they exist, once; after a failure again. */
  #open() {
    this.#opened ??= open(this.#settings).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }
}

/**
 * @param {ReturnType<typeof readSettings>} settings
 * @returns {Promise<Names>}
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
      return names;
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
 * Returns the key of the advisory lock of additions.
 *
 * @param {Names} names
 */
const lockOf = ({ table }) => createHash('sha256').update(table).digest().readBigInt64LE();

/**
 * @param {any[]} row
 * @returns {Stored}
 */
function storedOf([position, id, data, entries]) {
  const bytes = Buffer.from(data, 'base64');
  return { position: Number(position), id, bytes, entries: entries?.split(',').map(Number) ?? [] };
}

/**
 * @param {string | null} id
 * @param {{ similarity: number, lexical?: number | null, contained?: number | null, embedded?: number | null }} parts
 * @returns {Neighbour}
 */
function neighbourOf(id, { similarity, lexical = null, contained = null, embedded = null }) {
  return { id, similarity, lexical, contained, embedded };
}

/**
 * Returns the bytes of an entry with words for the addon: its words, then its embedding if it has one. All platforms of the addon are
 * little-endian.
 *
 * @param {Entry} entry
 * @returns {Uint8Array}
 */
function packed({ words, vector }) {
  const bytes = /** @type {Uint8Array} */ (words);
  if (vector === null) return bytes;
  return Buffer.concat([bytes, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)]);
}

/**
 * Returns the data of a trace as a text of PostgreSQL.
 *
 * @param {Entry} entry
 * @param {keyof typeof sql.COLUMNS} method
 */
function dataOf(entry, method) {
  if (method === 'prefix') return `[${entry.vector}]`;
  return `\\x${Buffer.from(packed(entry)).toString('hex')}`;
}

/** @param {Pick<readonly number[], 'join'> | Pick<BigInt64Array, 'join'>} numbers */
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

/** @type {WeakSet<object>} the pools with our listener */
const listening = new WeakSet();

/**
 * Listens for errors of idle connections, which would otherwise end the process; the pool drops them.
 *
 * @param {PgPool & { on?: (event: 'error', listener: () => void) => unknown }} pool
 */
function ignoreIdleErrors(pool) {
  if (listening.has(pool) || typeof pool.on !== 'function') return;
  listening.add(pool);
  pool.on('error', ignore);
}

const OPTIONS = {
  pool: readPool,
  table: readTable,
  method: oneOf(METHODS),
  maxElements: inRange({ from: 1, whole: true }),
  ttlMs: inRange({ from: 0 }),
  hnsw: ofType('boolean'),
  fallback: readFallback,
};

/** @param {unknown} options */
function readSettings(options) {
  const given = readOptions(requireObject(options, 'options'), OPTIONS);
  const { pool = readPool(undefined, 'options.pool'), table: named, method } = given;
  const { maxElements = 100_000, ttlMs = Number.POSITIVE_INFINITY, hnsw = false, fallback } = given;
  if (method === undefined) {
    throw invalidOption(TypeError, "options.method must be 'prefix', 'lexical' or 'full'");
  }
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

/** @type {import('../calls/options.js').OptionReader<TraceMemory>} */
function readFallback(value, path) {
  if (nativeOf(value) !== undefined) return /** @type {TraceMemory} */ (value);
  throw invalidOption(TypeError, `${path} must be a TraceMemory, got ${describe(value)}`);
}

/**
 * Reads a pool: it has `connect`, and is not itself a connection.
 *
 * @param {unknown} value
 * @param {string} path
 * @returns {PgPool}
 */
function readPool(value, path) {
  const isPool = attempt(() => {
    const { connect, query, totalCount } = /** @type {Record<string, unknown>} */ (value);
    const isConnection = typeof query === 'function' && totalCount === undefined;
    return typeof value === 'object' && typeof connect === 'function' && !isConnection;
  }, false);
  if (isPool) return /** @type {PgPool} */ (value);
  throw invalidOption(TypeError, `${path} must be a Pool of the package pg`);
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

module.exports = { PostgresStore, packed };
