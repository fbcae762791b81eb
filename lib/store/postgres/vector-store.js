'use strict';

// A novelty memory of vectors in PostgreSQL, shared by all who use its table. functions.js says how it compares and adds.

const { randomUUID } = require('node:crypto');

const { inRange, ofType, oneOf, readCallOptions, requireNumber } = require('../../calls/options.js');
const { requireReceiver } = require('../../calls/receiver.js');
const { DIMENSIONS } = require('../../embedding.js');
const { custom, inspectAs } = require('../../inspect.js');
const { originOf, readEntries, readEntry, readMethod, readModel, readVector } = require('../entry.js');
const { PARAMETERS } = require('./functions.js');
const schema = require('./schema.js');
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
 * @import { AddOptions, CallOptions, NearestOptions, NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour,
 *   VectorModel } from '../../../index.js'
 * @import { PostgresStoreLimits, PostgresVectorStoreOptions } from '../../../postgres.js'
 */

/** What is stored: embeddings, whose inner product is their cosine. */
const KIND = { dimensions: DIMENSIONS, isUnit: true };

const MAX_EF_SEARCH = 1000;

const OPTIONS = {
  index: oneOf(['exact', 'hnsw']),
  efSearch: inRange({ from: 1, to: MAX_EF_SEARCH, whole: true }),
};

/**
 * A novelty store of vectors in a table of PostgreSQL, which any number of processes share.
 *
 * @implements {NoveltyStore}
 */
class PostgresVectorStore {
  #table;
  /** How widely the index is searched; null where every vector is looked at. */
  #efSearch;

  static {
    requireReceiver(
      PostgresVectorStore,
      (value) => typeof value === 'object' && value !== null && #table in value,
    );
  }

  /**
   * Makes a store; the database is not asked yet. Throws `ERR_INVALID_OPTION`.
   *
   * @param {PostgresVectorStoreOptions} options
   */
  constructor(options) {
    const { given, settings } = readShared(options, OPTIONS);
    const { index = 'exact', efSearch = 100 } = given;
    this.#efSearch = index === 'hnsw' ? efSearch : null;
    this.#table = new Table({ ...settings, novelty: 'prefix', index });
  }

  /**
   * How the scorers compare that it serves.
   *
   * @returns {'prefix'}
   */
  get novelty() {
    return 'prefix';
  }

  /** @type {import('../../inspect.js').Inspect} */
  [custom](depth, options) {
    return inspectAs('PostgresVectorStore', this.#table.shown, depth, options);
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
    const [comparison] = await this.#compareAndAdd([readEntry(entry, 'entry', KIND)], read);
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
    const read = readEntries(entries, KIND);
    if (read.length === 0) {
      signal?.throwIfAborted();
      return [];
    }
    return this.#compareAndAdd(read, { signal, call });
  }

  /**
   * The `count` stored vectors that are most similar to a vector, the most similar first. Stores nothing.
   *
   * @param {Float32Array} vector
   * @param {number} count
   * @param {VectorModel} model
   * @param {NearestOptions} [options]
   * @returns {Promise<StoredNeighbour[]>}
   */
  async nearest(vector, count, model, options) {
    const { signal, method } = readCallOptions(options, { method: ofType('string') });
    const { vector: query, length } = readVector(vector, 'vector', DIMENSIONS);
    const { model: name, dtype } = readModel(model, 'model');
    requireNumber(count, 'count', { from: 0, whole: true });
    const efSearch = this.#efSearch;
    const values = [
      ...[...this.#table.expected(), name, dtype, readMethod(method, 'options.method', 'ERR_INVALID_OPTION')],
      ...[schema.vectorLiteral(query), Math.min(count, MAX_SQL_INTEGER)],
      efSearch && Math.max(efSearch, Math.min(count, MAX_EF_SEARCH)),
    ];
    const text = `SELECT similarity, nearest_label FROM ${schema.called(this.#table.names.nearest, PARAMETERS.nearest)}`;
    const rows = await this.#table.ask(text, values, signal);
    // A vector of length 0 has similarity 0 to everything.
    return rows.map(([similarity, label]) => ({
      label: /** @type {string | null} */ (label),
      similarity: length === 0 ? 0 : Number(similarity) / length,
    }));
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
   */
  async #compareAndAdd(entries, { signal, call = randomUUID() }) {
    const { method, ...origin } = originOf(entries);
    // Vectors are always of a model.
    const identity = /** @type {VectorModel} */ (origin.model);
    /** @type {string[]} */
    const vectors = [];
    /** @type {Array<string | null>} */
    const labels = [];
    /** @type {number[]} */
    const befores = [];
    for (const entry of entries) {
      const label = storable(entry.id);
      const before = vectors.length;
      for (const vector of entry.vectors) {
        vectors.push(schema.vectorLiteral(vector));
        labels.push(label);
        befores.push(before);
      }
    }
    const efSearch = this.#efSearch;
    const text = `SELECT similarity, nearest_label FROM ${schema.called(this.#table.names.add, PARAMETERS.add)}`;
    const values = [
      ...[...this.#table.expected(), identity.model, identity.dtype, method, call, vectors, labels, befores],
      efSearch,
    ];
    const rows = await this.#table.run({ text, values, patienceFor, tag: newTag() }, signal);
    this.#table.scheduleSweep();
    const found = rows.map(([similarity, label]) =>
      similarity === null
        ? null
        : { label: /** @type {string | null} */ (label), similarity: Number(similarity) },
    );
    return entries.map((entry) => found.splice(0, entry.vectors.length));
  }
}

module.exports = { PostgresVectorStore };
