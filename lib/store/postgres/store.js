'use strict';

// What the stores of vectors and of traces in PostgreSQL share: their public methods on a table.

const { randomUUID } = require('node:crypto');

const { custom, inspectAs } = require('../../inspect.js');
const { readEntries, readEntry } = require('../entry.js');
const { readAddOptions } = require('./table.js');

/**
 * @import { AddOptions, CallOptions, NoveltyComparison, NoveltyEntry } from '../../../index.js'
 * @import { PostgresStoreLimits } from '../../../postgres.js'
 * @import { Kind } from '../entry.js'
 */

/** @typedef {{ call: string, signal: AbortSignal | undefined }} Adding */

/**
 * Compares entries, which are not empty, with everything before them, and stores them.
 *
 * @typedef {(entries: NoveltyEntry[], adding: Adding) => Promise<NoveltyComparison[]>} Add
 */

/**
 * Whether a value is a store whose constructor has run.
 *
 * @type {(value: unknown) => boolean}
 */
let isStore;

/** A novelty store in a table of PostgreSQL, which any number of processes share. */
class PostgresStore {
  #table;
  #kind;
  #add;

  static {
    isStore = (value) => typeof value === 'object' && value !== null && #table in value;
  }

  /**
   * @param {InstanceType<typeof import('./table.js').Table>} table
   * @param {Kind} kind what its entries must be
   * @param {Add} add
   */
  constructor(table, kind, add) {
    this.#table = table;
    this.#kind = kind;
    this.#add = add;
  }

  /** @type {import('../../inspect.js').Inspect} */
  [custom](depth, options) {
    return inspectAs(this.constructor.name, this.#table.shown, depth, options);
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
    const { signal, call = randomUUID() } = readAddOptions(options);
    const [comparison] = await this.#add([readEntry(entry, 'entry', this.#kind)], { signal, call });
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
    const { signal, call = randomUUID() } = readAddOptions(options);
    const read = readEntries(entries, this.#kind);
    if (read.length > 0) return this.#add(read, { signal, call });
    signal?.throwIfAborted();
    return [];
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
}

module.exports = { PostgresStore, isStore };
