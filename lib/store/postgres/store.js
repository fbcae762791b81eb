'use strict';

// The public methods that the PostgreSQL stores of vectors and of traces share.

const { randomUUID } = require('node:crypto');

const { custom, inspectAs } = require('../../inspect.js');
const { readEntries, readEntry } = require('../entry.js');
const { readAddOptions } = require('./table.js');

/**
 * @import { NoveltyComparison, NoveltyEntry } from '../../../index.js'
 * @import { PostgresVectorStore as Public } from '../../../postgres.js'
 * @import { Kind } from '../entry.js'
 */

/** @typedef {{ call: string, signal: AbortSignal | undefined }} Adding */

/**
 * Compares one or more entries with every entry before them, and stores them.
 *
 * @typedef {(entries: NoveltyEntry[], adding: Adding) => Promise<NoveltyComparison[]>} Add
 */

/** @type {(value: unknown) => boolean} returns whether a value is a store whose constructor has run */
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

  /** @type {Public['migrate']} */
  async migrate() {
    await this.#table.migrate();
  }

  /** @type {Public['compareAndAdd']} */
  async compareAndAdd(entry, options) {
    const { signal, call = randomUUID() } = readAddOptions(options);
    const [comparison] = await this.#add([readEntry(entry, 'entry', this.#kind)], { signal, call });
    return comparison;
  }

  /** @type {Public['compareAndAddBatch']} */
  async compareAndAddBatch(entries, options) {
    const { signal, call = randomUUID() } = readAddOptions(options);
    const read = readEntries(entries, this.#kind);
    if (read.length > 0) return this.#add(read, { signal, call });
    signal?.throwIfAborted();
    return [];
  }

  /** @type {Public['size']} */
  async size(options) {
    return this.#table.size(options);
  }

  /** @type {Public['sweep']} */
  async sweep(options) {
    return this.#table.sweep(options);
  }

  /** @type {Public['setLimits']} */
  async setLimits(limits, options) {
    return this.#table.setLimits(limits, options);
  }

  /** @type {Public['close']} */
  close() {
    this.#table.close();
  }
}

module.exports = { PostgresStore, isStore };
