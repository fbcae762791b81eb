'use strict';

// The public methods that the PostgreSQL stores of vectors and of traces share.

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
 * Compares one or more entries with every entry before them, and stores them.
 *
 * @typedef {(entries: NoveltyEntry[], adding: Adding) => Promise<NoveltyComparison[]>} Add
 */

/**
 * Returns whether a value is a store whose constructor has run.
 *
 * @type {(value: unknown) => boolean}
 */
let isStore;

/** A novelty store in a PostgreSQL table that any number of processes share. */
class PostgresStore {
  #table;
  #kind;
  #add;

  static {
    isStore = (value) => typeof value === 'object' && value !== null && #table in value;
  }

  /**
   * @param {InstanceType<typeof import('./table.js').Table>} table
   * @param {Kind} kind of its entries
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
   * Creates the missing objects of the store in the database. Rejects with `ERR_STORE_…`.
   *
   * @returns {Promise<void>}
   */
  async migrate() {
    await this.#table.migrate();
  }

  /**
   * Compares an entry with every entry stored before it, then stores it, once even if the connection is lost. Rejects with `ERR_STORE_…`.
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
   * Does `compareAndAdd` for one entry after another, for all or none, in one round trip.
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
   * Returns the number of vectors or traces within the limits.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async size(options) {
    return this.#table.size(options);
  }

  /**
   * Deletes vectors or traces beyond the limits, and returns their number.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async sweep(options) {
    return this.#table.sweep(options);
  }

  /**
   * Changes the limits of the table for every process, and returns them.
   *
   * @param {Partial<PostgresStoreLimits>} limits
   * @param {CallOptions} [options]
   * @returns {Promise<PostgresStoreLimits>}
   */
  async setLimits(limits, options) {
    return this.#table.setLimits(limits, options);
  }

  /**
   * Stops the sweeps and makes later calls reject. The caller ends the pool.
   *
   * @returns {void}
   */
  close() {
    this.#table.close();
  }
}

module.exports = { PostgresStore, isStore };
