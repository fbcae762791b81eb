'use strict';

// A novelty memory of vectors in PostgreSQL. functions.js compares and adds.

const { inRange, ofType, oneOf, readCallOptions, requireNumber } = require('../../calls/options.js');
const { DIMENSIONS } = require('../../embedding.js');
const { originOf, readMethod, readModel, readVector } = require('../entry.js');
const { PARAMETERS } = require('./functions.js');
const schema = require('./schema.js');
const { MAX_SQL_INTEGER, PostgresStore, Table, readShared, storable } = require('./store.js');

/**
 * @import { NoveltyEntry, NoveltyStore, VectorModel } from '../../../index.js'
 * @import { PostgresVectorStore as Public, PostgresVectorStoreOptions } from '../../../postgres.js'
 * @import { Adding } from './store.js'
 */

/** The entries: embeddings of length 1, whose inner product is the cosine. */
const KIND = { dimensions: DIMENSIONS, isUnit: true };

const MAX_EF_SEARCH = 1000;

const OPTIONS = {
  index: oneOf(['exact', 'hnsw']),
  efSearch: inRange({ from: 1, to: MAX_EF_SEARCH, whole: true }),
};

/**
 * A novelty store of vectors in a PostgreSQL table that any number of processes share.
 *
 * @implements {NoveltyStore}
 */
class PostgresVectorStore extends PostgresStore {
  #table;
  #efSearch;

  /** @param {PostgresVectorStoreOptions} options */
  constructor(options) {
    const { given, settings } = readShared(options, OPTIONS);
    const { index = 'exact', efSearch = 100 } = given;
    const table = new Table({ ...settings, novelty: 'prefix', index }, PARAMETERS);
    super(table, KIND, (entries, adding) => this.#compareAndAdd(entries, adding));
    this.#table = table;
    this.#efSearch = index === 'hnsw' ? efSearch : null;
  }

  /** @returns {'prefix'} */
  get novelty() {
    return 'prefix';
  }

  /** @type {Public['nearest']} */
  async nearest(vector, count, model, options) {
    const { signal, method } = readCallOptions(options, { method: ofType('string') });
    const { vector: query, length } = readVector(vector, 'vector', DIMENSIONS);
    const { model: name, dtype } = readModel(model, 'model');
    requireNumber(count, 'count', { from: 0, whole: true });
    const efSearch = this.#efSearch;
    const values = [
      ...[name, dtype],
      readMethod(method, 'options.method', 'ERR_INVALID_OPTION'),
      schema.vectorLiteral(query),
      Math.min(count, MAX_SQL_INTEGER),
      efSearch && Math.max(efSearch, Math.min(count, MAX_EF_SEARCH)),
    ];
    const rows = await this.#table.call('nearest', values, { signal });
    // A vector of length 0 has similarity 0 to every vector.
    return rows.map(([similarity, label]) => ({
      label,
      similarity: length === 0 ? 0 : Number(similarity) / length,
    }));
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @param {Adding} adding
   */
  async #compareAndAdd(entries, { signal, call }) {
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
    const values = [identity.model, identity.dtype, method, call, vectors, labels, befores, this.#efSearch];
    const rows = await this.#table.call('add', values, { signal });
    const found = rows.map(([similarity, label]) =>
      similarity === null ? null : { label, similarity: Number(similarity) },
    );
    return entries.map((entry) => found.splice(0, entry.vectors.length));
  }
}

module.exports = { PostgresVectorStore };
