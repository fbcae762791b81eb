'use strict';

// A novelty memory of traces in PostgreSQL. traces.js compares and adds.

const { oneOf, readCallOptions, requireNumber } = require('../../calls/options.js');
const { requireReceiver } = require('../../calls/receiver.js');
const { DIMENSIONS } = require('../../embedding.js');
const { readEntry } = require('../entry.js');
const { detected } = require('./statement.js');
const { MAX_SQL_INTEGER, PostgresStore, isStore, readShared, storable, tableOf } = require('./store.js');
const { PARAMETERS } = require('./traces-sql.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore } from '../../../index.js'
 * @import { PostgresTraceStore as Public, PostgresTraceStoreOptions } from '../../../postgres.js'
 * @import { Adding } from './store.js'
 */

/**
 * A novelty store of traces in a PostgreSQL table that any number of processes share.
 *
 * @implements {NoveltyStore}
 */
class PostgresTraceStore extends PostgresStore {
  #table;
  #traces;
  #kind;

  static {
    requireReceiver(PostgresTraceStore, isStore);
  }

  /** @param {PostgresTraceStoreOptions} options */
  constructor(options) {
    const { given, settings } = readShared(options, { novelty: oneOf(['lexical', 'full']) });
    const { novelty = 'lexical' } = given;
    const kind = { dimensions: DIMENSIONS, isUnit: true, method: novelty };
    super({ ...settings, novelty, index: 'exact' }, PARAMETERS, kind, (entries, adding) =>
      this.#compareAndAdd(entries, adding),
    );
    // Loads the addon only where it is needed.
    const { TraceTable } = require('./traces.js');
    this.#table = tableOf(this);
    this.#traces = new TraceTable(this.#table, novelty);
    this.#kind = kind;
  }

  /** @returns {'lexical' | 'full'} */
  get novelty() {
    return this.#kind.method;
  }

  /** @type {Public['nearest']} */
  async nearest() {
    throw detected('ERR_STORE_OTHER_METHOD', 'it keeps traces, not vectors; ask nearestTraces');
  }

  /** @type {Public['nearestTraces']} */
  async nearestTraces(entry, count, options) {
    const { signal } = readCallOptions(options);
    const read = readEntry(entry, 'entry', this.#kind);
    requireNumber(count, 'count', { from: 0, whole: true });
    const amount = Math.min(count, MAX_SQL_INTEGER);
    return this.#traces.nearest(read, amount, { signal, deadline: this.#table.deadline() });
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @param {Adding} adding
   * @returns {Promise<NoveltyComparison[]>}
   */
  async #compareAndAdd(entries, { signal, call }) {
    const storing = entries.map((entry) => ({ ...entry, id: storable(entry.id) }));
    const nearest = await this.#traces.compareAndAdd(storing, call, {
      signal,
      deadline: this.#table.deadline(),
    });
    return nearest.map((neighbour) => [neighbour]);
  }
}

module.exports = { PostgresTraceStore };
