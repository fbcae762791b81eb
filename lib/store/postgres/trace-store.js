'use strict';

// A novelty memory of traces in PostgreSQL, shared by all who use its table. traces.js says how it compares and adds.

const { randomUUID } = require('node:crypto');

const { oneOf, readCallOptions, requireNumber } = require('../../calls/options.js');
const { requireReceiver } = require('../../calls/receiver.js');
const { DIMENSIONS } = require('../../embedding.js');
const { custom, inspectAs } = require('../../inspect.js');
const { readEntries, readEntry } = require('../entry.js');
const { otherMethod } = require('./statement.js');
const {
  MAX_SQL_INTEGER,
  Table,
  newTag,
  patienceFor,
  readAddOptions,
  readShared,
  storable,
} = require('./table.js');

/**
 * @import { AddOptions, CallOptions, NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour } from '../../../index.js'
 * @import { PostgresStoreLimits, PostgresTraceStoreOptions } from '../../../postgres.js'
 */

/**
 * A novelty store of traces in a table of PostgreSQL, which any number of processes share.
 *
 * @implements {NoveltyStore}
 */
class PostgresTraceStore {
  #table;
  /** What compares traces. */
  #traces;
  #novelty;

  static {
    requireReceiver(
      PostgresTraceStore,
      (value) => typeof value === 'object' && value !== null && #table in value,
    );
  }

  /**
   * Makes a store; the database is not asked yet. Throws `ERR_INVALID_OPTION`.
   *
   * @param {PostgresTraceStoreOptions} options
   */
  constructor(options) {
    const { given, settings } = readShared(options, { novelty: oneOf(['lexical', 'full']) });
    this.#novelty = given.novelty ?? 'lexical';
    const table = new Table({ ...settings, novelty: this.#novelty, index: 'exact' });
    // The addon is loaded only where it is needed.
    const { TraceTable } = require('./traces.js');
    /** @type {import('./traces.js').Ask} */
    const ask = (text, values, { signal, deadline, patienceFor }) =>
      table.run({ text, values, patienceFor, tag: newTag() }, signal, deadline);
    this.#traces = new TraceTable(table.names, this.#novelty, () => table.expected(), ask);
    this.#table = table;
  }

  /**
   * How the scorers compare that it serves.
   *
   * @returns {'lexical' | 'full'}
   */
  get novelty() {
    return this.#novelty;
  }

  /** @type {import('../../inspect.js').Inspect} */
  [custom](depth, options) {
    return inspectAs('PostgresTraceStore', this.#table.shown, depth, options);
  }

  /**
   * Makes what the store needs in the database, as far as it is not there. Rejects with `ERR_STORE_…`.
   *
   * @returns {Promise<void>}
   */
  async migrate() {
    await this.#table.migrate();
  }

  /**
   * Compares an entry with everything stored before it, and stores it, once even if the connection is lost. Rejects with `ERR_STORE_…`.
   *
   * @param {NoveltyEntry} entry
   * @param {AddOptions} [options]
   * @returns {Promise<NoveltyComparison>}
   */
  async compareAndAdd(entry, options) {
    const read = readAddOptions(options);
    const [comparison] = await this.#compareAndAdd([readEntry(entry, 'entry', this.#kind)], read);
    return comparison;
  }

  /**
   * As one `compareAndAdd` after another, all or nothing, in one round trip.
   *
   * @param {readonly NoveltyEntry[]} entries
   * @param {AddOptions} [options]
   * @returns {Promise<NoveltyComparison[]>}
   */
  async compareAndAddBatch(entries, options) {
    const { signal, call } = readAddOptions(options);
    const read = readEntries(entries, this.#kind);
    if (read.length === 0) {
      signal?.throwIfAborted();
      return [];
    }
    return this.#compareAndAdd(read, { signal, call });
  }

  /**
   * Rejects: the store keeps no vectors. `nearestTraces` is the question for it.
   *
   * @returns {Promise<StoredNeighbour[]>}
   */
  async nearest() {
    throw otherMethod('it keeps traces, not vectors; ask nearestTraces');
  }

  /**
   * The `count` stored traces that are most similar to an entry, the most similar first. Stores nothing.
   *
   * @param {NoveltyEntry} entry
   * @param {number} count
   * @param {CallOptions} [options]
   * @returns {Promise<StoredNeighbour[]>}
   */
  async nearestTraces(entry, count, options) {
    const { signal } = readCallOptions(options);
    const read = readEntry(entry, 'entry', this.#kind);
    requireNumber(count, 'count', { from: 0, whole: true });
    const amount = Math.min(count, MAX_SQL_INTEGER);
    return this.#traces.nearest(read, amount, { signal, deadline: this.#table.deadline });
  }

  /**
   * How many of them count.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async size(options) {
    return this.#table.size(options);
  }

  /**
   * Deletes what no longer counts, and returns how many that were.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async sweep(options) {
    return this.#table.sweep(options);
  }

  /**
   * Changes the limits of the table, for all who share it, and returns all of them.
   *
   * @param {Partial<PostgresStoreLimits>} limits
   * @param {CallOptions} [options]
   * @returns {Promise<PostgresStoreLimits>}
   */
  async setLimits(limits, options) {
    return this.#table.setLimits(limits, options);
  }

  /**
   * Stops the sweeps; calls reject from now on. The pool is the caller's to end.
   *
   * @returns {void}
   */
  close() {
    this.#table.close();
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @param {ReturnType<typeof readAddOptions>} options
   * @returns {Promise<NoveltyComparison[]>}
   */
  async #compareAndAdd(entries, { signal, call = randomUUID() }) {
    const storing = entries.map((entry) => ({ ...entry, id: storable(entry.id) }));
    const times = { deadline: this.#table.deadline, patienceFor };
    const nearest = await this.#traces.compareAndAdd(storing, { call, signal, ...times });
    this.#table.scheduleSweep();
    return nearest.map((neighbour) => [neighbour]);
  }

  /** @returns {import('../entry.js').Kind} */
  get #kind() {
    return { dimensions: DIMENSIONS, isUnit: true, method: this.#novelty };
  }
}

module.exports = { PostgresTraceStore };
