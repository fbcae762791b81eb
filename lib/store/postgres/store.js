'use strict';

// The common part of stores of vectors and of traces: their public methods, the pool, the limits, and running statements.

const { randomUUID } = require('node:crypto');

const { cancellable } = require('../../calls/cancel.js');
const { attempt, codeOf, codedError } = require('../../calls/errors.js');
const {
  inRange,
  invalidOption,
  ofType,
  readCallOptions,
  readOptions,
  requireNumber,
} = require('../../calls/options.js');
const { isArray } = require('../../calls/reading.js');
const { readEntries, readEntry } = require('../entry.js');
const { warn } = require('../failures.js');
const { migrate } = require('./migration.js');
const schema = require('./schema.js');
const {
  StatementFailure,
  MAX_TIMER_MS,
  MIGRATION_MESSAGES,
  isConflict,
  isLost,
  runStatement,
  schemaError,
  stopStatement,
  storeError,
} = require('./statement.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyMethod } from '../../../index.js'
 * @import { OptionReader } from '../../calls/options.js'
 * @import { PgPool, PostgresVectorStore as Public } from '../../../postgres.js'
 * @import { Kind } from '../entry.js'
 */

/** @typedef {{ maxElements: number | null, ttlMs: number | null }} Limits null means any */

/** @typedef {{ signal?: AbortSignal, deadline?: number }} CallTimes `deadline` by `performance.now()` */

/** @typedef {ReturnType<typeof readShared>['settings'] & { novelty: NoveltyMethod, index: 'exact' | 'hnsw' }} Settings */

const { MAX_TTL_MS, SCHEMA_VERSION } = schema;

/** The largest `integer` of PostgreSQL, the type of a LIMIT's parameter. */
const MAX_SQL_INTEGER = 2 ** 31 - 1;

/** The least milliseconds of a call that are reserved for its answer. */
const MIN_ANSWER_MS = 20;

/** The shortest time limit: it leaves the server some milliseconds beside the answer. */
const MIN_TIMEOUT_MS = 50;

/** The most rows that one statement deletes, to keep its transaction short. */
const SWEEP_ROWS = 10_000;

/**
 * Returns the server's share of the remaining milliseconds. It is less than all, so that the server gives up first and certainly adds
 * nothing.
 *
 * @param {number} remaining
 */
function patienceFor(remaining) {
  return remaining - Math.max(MIN_ANSWER_MS, remaining / 10);
}

/** @typedef {{ call: string, signal: AbortSignal | undefined }} Adding */

/**
 * Compares one or more entries with every entry before them, and stores them.
 *
 * @typedef {(entries: NoveltyEntry[], adding: Adding) => Promise<NoveltyComparison[]>} Add
 */

/** The table of a store, for the classes of this folder: runs statements within the time limits. */
class Table {
  #parameters;
  isClosed = false;

  /**
   * @param {Settings} settings whose limits are those that the table must have
   * @param {Record<string, import('./schema.js').Parameters>} parameters of the functions
   */
  constructor(settings, parameters) {
    this.settings = settings;
    this.#parameters = parameters;
    this.names = schema.namesOf(settings);
    ignoreIdleErrors(settings.pool);
  }

  /** The deadline of a call that begins now, by `performance.now()`. */
  get deadline() {
    return performance.now() + this.settings.timeoutMs;
  }

  refuseClosed() {
    if (this.isClosed) throw codedError(Error, 'ERR_STORE_UNAVAILABLE', 'the store is closed');
  }

  /**
   * Calls a function of the table. Every function begins with the expected version and limits; one that adds ends with the milliseconds that
   * the server has.
   *
   * @param {keyof import('./schema.js').StoreNames} name
   * @param {unknown[]} values of the parameters between
   * @param {CallTimes} [times]
   */
  call(name, values, times) {
    const { maxElements, ttlMs } = this.settings.limits;
    const parameters = this.#parameters[name];
    const text = schema.called(this.names[name], parameters);
    const adds = 'patience_ms' in parameters ? patienceFor : undefined;
    return this.run(text, [SCHEMA_VERSION, maxElements, ttlMs, ...values], times, adds);
  }

  /**
   * Runs an idempotent statement. Repeats it after conflicts while time remains, and once after a lost connection, such as an idle one
   * after a restart of the server.
   *
   * @param {string} text
   * @param {unknown[]} values
   * @param {CallTimes} [times]
   * @param {(remaining: number) => number} [patienceFor] makes the last value from the remaining milliseconds
   * @returns {Promise<any[][]>} rows of texts and nulls
   */
  async run(text, values, { signal, deadline = this.deadline } = {}, patienceFor) {
    // For a statement, not for a call: a late cancellation must not stop the next statement.
    const statement = { text, values, patienceFor, tag: `knowledgepulse ${randomUUID()}` };
    // `runStatement` handles aborts; this only checks between attempts.
    return cancellable(
      () => this.#attempt(statement, signal, deadline),
      signal,
      () => false,
    );
  }

  /**
   * @param {import('./statement.js').Statement} statement
   * @param {AbortSignal | undefined} signal
   * @param {number} deadline
   */
  async #attempt(statement, signal, deadline) {
    this.refuseClosed();
    let lost = 0;
    for (let conflicts = 0; ; ) {
      try {
        return await runStatement(this.settings.pool, statement, { deadline, signal });
      } catch (failure) {
        if (!(failure instanceof StatementFailure)) throw failure;
        if (isConflict(failure)) {
          conflicts++;
          signal?.throwIfAborted();
        } else if (isLost(failure)) {
          lost++;
          // The server may still run the statement.
          const stopping = stopStatement(this.settings.pool, statement.tag, deadline);
          if (lost > 1) throw storeError(failure);
          await stopping;
          // The first attempt may have succeeded, so the call must not be reported as cancelled.
          if (signal?.aborted) throw storeError(failure);
        } else throw storeError(failure);
        const pause = Math.random() * Math.min(100, 5 * 2 ** conflicts);
        if (performance.now() + pause >= deadline) throw storeError(failure);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }
}

/** A novelty store in a PostgreSQL table that any number of processes share. */
class PostgresStore {
  #table;
  #kind;
  #add;
  /** @type {NodeJS.Timeout | null} */
  #sweeper = null;
  #hasWarned = false;

  /**
   * Makes a store without connecting.
   *
   * @param {Table} table
   * @param {Kind} kind of its entries
   * @param {Add} add
   */
  constructor(table, kind, add) {
    this.#table = table;
    this.#kind = kind;
    this.#add = add;
  }

  /** @type {Public['migrate']} */
  async migrate() {
    this.#table.refuseClosed();
    const { settings } = this.#table;
    await migrate(settings.pool, settings).catch((failure) => {
      throw storeError(failure, MIGRATION_MESSAGES);
    });
  }

  /** @type {Public['compareAndAdd']} */
  async compareAndAdd(entry, options) {
    const { signal, call = randomUUID() } = readCallOptions(options, { call: readUuid });
    const [comparison] = await this.#add([readEntry(entry, 'entry', this.#kind)], { signal, call });
    this.#scheduleSweep();
    return comparison;
  }

  /** @type {Public['compareAndAddBatch']} */
  async compareAndAddBatch(entries, options) {
    const { signal, call = randomUUID() } = readCallOptions(options, { call: readUuid });
    const read = readEntries(entries, this.#kind);
    signal?.throwIfAborted();
    if (read.length === 0) return [];
    const comparisons = await this.#add(read, { signal, call });
    this.#scheduleSweep();
    return comparisons;
  }

  /** @type {Public['size']} */
  async size(options) {
    const { signal } = readCallOptions(options);
    const [[size]] = await this.#table.call('size', [], { signal });
    return Number(size);
  }

  /** @type {Public['sweep']} */
  async sweep(options) {
    const { signal } = readCallOptions(options);
    for (let total = 0; ; ) {
      const [[deleted]] = await this.#table.call('sweep', [SWEEP_ROWS], { signal });
      // Null: another process is sweeping.
      total += Number(deleted);
      if (Number(deleted) < SWEEP_ROWS) return total;
    }
  }

  /** @type {Public['setLimits']} */
  async setLimits(limits, options) {
    const { signal } = readCallOptions(options);
    const { maxElements = null, ttlMs = null } = readOptions(limits, LIMITS, 'limits');
    const values = [SCHEMA_VERSION, maxElements, ttlMs];
    const rows = await this.#table.run(schema.setLimits(this.#table.names), values, { signal });
    if (rows.length === 0) throw schemaError('the table is of another version; call migrate()');
    const [[newElements, newTtl]] = rows;
    // A store with expected limits now expects these.
    const expected = this.#table.settings.limits;
    if (maxElements !== null || expected.maxElements !== null) expected.maxElements = Number(newElements);
    if (ttlMs !== null || expected.ttlMs !== null) expected.ttlMs = Number(newTtl);
    return { maxElements: Number(newElements), ttlMs: Number(newTtl) };
  }

  /** @type {Public['close']} */
  close() {
    this.#table.isClosed = true;
    clearTimeout(this.#sweeper ?? undefined);
    this.#sweeper = null;
  }

  /** Sweeps at random intervals while vectors are added, so that processes that start together do not sweep together. */
  #scheduleSweep() {
    const { sweepIntervalMs } = this.#table.settings;
    if (this.#sweeper !== null || this.#table.isClosed || sweepIntervalMs === Number.POSITIVE_INFINITY)
      return;
    const delay = Math.min(sweepIntervalMs * (0.5 + Math.random()), MAX_TIMER_MS);
    this.#sweeper = setTimeout(async () => {
      try {
        await this.sweep();
      } catch (error) {
        const passes = ['ERR_STORE_UNAVAILABLE', 'ERR_STORE_TIMEOUT'].includes(codeOf(error) ?? '');
        if (passes || this.#table.isClosed || this.#hasWarned) return;
        // Once: without sweeps results stay correct, but the table grows.
        this.#hasWarned = true;
        warn('Old vectors of the store could not be deleted', error);
      } finally {
        this.#sweeper = null;
      }
    }, delay);
    this.#sweeper.unref();
  }
}

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

/**
 * Replaces NUL and lone surrogates in an id, which PostgreSQL cannot store.
 *
 * @param {string | null} id
 */
function storable(id) {
  return id?.replace(/\0|\p{Surrogate}/gu, '\uFFFD') ?? null;
}

const LIMITS = {
  maxElements: inRange({ from: 1, whole: true }),
  ttlMs: readTtl,
};

const OPTIONS = {
  ...LIMITS,
  pool: readPool,
  table: nameOf(schema.MAX_NAME_BYTES),
  schema: nameOf(63),
  timeoutMs: inRange({ from: MIN_TIMEOUT_MS, to: MAX_TIMER_MS }),
  sweepIntervalMs: inRange({ from: 1 }),
};

/**
 * Reads the options of a store: the shared ones as settings, and those of `readers`.
 *
 * @template {Record<string, OptionReader<any>>} Readers
 * @param {unknown} options
 * @param {Readers} readers
 */
function readShared(options, readers) {
  if (options === null || typeof options !== 'object' || isArray(options)) {
    throw invalidOption(TypeError, 'options must be an object with a pool');
  }
  const given = readOptions(options, { ...OPTIONS, ...readers });
  const { pool = readPool(undefined, 'options.pool'), schema: named } = given;
  const { table = 'knowledgepulse_novelty', maxElements = null, ttlMs = null } = given;
  const { timeoutMs = 5000, sweepIntervalMs = 60_000 } = given;
  /** @type {Limits} */
  const limits = { maxElements, ttlMs };
  return { given, settings: { pool, table, schema: named, limits, timeoutMs, sweepIntervalMs } };
}

/**
 * Reads a pool: it has `connect`, and is not itself a connection.
 *
 * @type {OptionReader<PgPool>}
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

/** @type {OptionReader<number>} */
function readTtl(value, path) {
  const ttlMs = requireNumber(value, path, { from: 0 });
  return ttlMs > MAX_TTL_MS ? Number.POSITIVE_INFINITY : ttlMs;
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** @type {OptionReader<string>} */
function readUuid(value, path) {
  const call = ofType('string')(value, path);
  if (!UUID.test(call)) throw invalidOption(RangeError, `${path} must be a UUID`);
  return call;
}

/**
 * @param {number} maxBytes
 * @returns {OptionReader<string>}
 */
function nameOf(maxBytes) {
  return (value, path) => {
    const name = ofType('string')(value, path);
    if (name === '' || /\0|\p{Surrogate}/u.test(name) || Buffer.byteLength(name) > maxBytes) {
      throw invalidOption(RangeError, `${path} must be a name of 1 to ${maxBytes} bytes`);
    }
    return name;
  };
}

module.exports = { MAX_SQL_INTEGER, PostgresStore, Table, readShared, storable };
