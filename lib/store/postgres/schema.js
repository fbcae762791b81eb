'use strict';

// The SQL of a store of vectors, and the names of its objects. Names are quoted; values are parameters.
//
// Anyone with CREATE on a schema of the search path can plant functions, operators and types that run with their caller's rights. So
// functions and migration set a search path, and every other statement casts its parameters and qualifies functions, operators and types.

const { DIMENSIONS } = require('../../embedding.js');

/** Increases with every change to the tables or functions of a store. */
const SCHEMA_VERSION = 4;

/** The conditions that the functions raise. */
const RAISED = {
  schema: 'KP001',
  otherModel: 'KP002',
  tooLate: 'KP003',
  otherLimits: 'KP004',
  otherMethod: 'KP005',
};

const SUFFIXES = {
  table: '',
  meta: '_meta',
  call: '_call',
  find: '_find',
  look: '_look',
  lookAll: '_look_all',
  add: '_add',
  nearest: '_nearest',
  size: '_size',
  sweep: '_sweep',
  hnsw: '_hnsw',
  words: '_words',
  summary: '_summary',
  sample: '_sample',
  draw: '_draw',
  position: '_position',
};

/** The longest name: PostgreSQL would cut longer ones, and two could become the same. */
const MAX_NAME_BYTES = 63 - Math.max(...Object.values(SUFFIXES).map((suffix) => suffix.length));

/** The longest finite time to live in milliseconds, six thousand years: PostgreSQL's calendar begins in 4713 BC. */
const MAX_TTL_MS = 2e14;

/** @typedef {Record<keyof typeof SUFFIXES, string>} StoreNames the quoted names of a store's objects */

/**
 * The names that `migrate` needs: an index is created by its unqualified name.
 *
 * @typedef {StoreNames & { indexes: StoreNames } & Record<'extension' | 'extensionLiteral' | 'type' | 'tableLiteral' | 'quote', string>} Names
 */

/**
 * Returns the SQL of the meta table, which has a single row.
 *
 * Positions are assigned under the lock of that row, so they have no gaps and follow the commits: the newest `n` vectors have the `n`
 * highest positions.
 *
 * @param {Names} names
 */
const metaTable = ({ meta }) => `
CREATE TABLE ${meta} (
  id integer PRIMARY KEY CHECK (id = 1),
  version integer NOT NULL,
  model text,
  dtype text,
  -- The name of the method by which traces became vectors; null as long as nobody has named it.
  method text,
  next_position bigint NOT NULL,
  -- The limits of all who share the table. "Infinity": for ever.
  max_elements bigint NOT NULL,
  ttl_ms double precision NOT NULL
-- Every addition updates the row: room for that on its page keeps it out of the index.
) WITH (fillfactor = 10);
`;

/** @param {Names} names */
const tables = ({ table, type, indexes }) => `
CREATE TABLE ${table} (
  position bigint PRIMARY KEY,
  added timestamptz NOT NULL,
  call uuid NOT NULL,
  embedding ${type}(${DIMENSIONS}) NOT NULL,
  label text
);
-- In the row whatever the length of the label: a scan reads it.
ALTER TABLE ${table} ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX ${indexes.call} ON ${table} (call);
`;

/** @param {Names} names */
const metaRow = ({ meta }) =>
  `INSERT INTO ${meta} (id, version, next_position, max_elements, ttl_ms, method) VALUES (1, ${SCHEMA_VERSION}, 0, $1, $2, $3)`;

/**
 * Returns the SQL that sets the limits that are not null, and selects all.
 *
 * @param {StoreNames} names
 */
const setLimits = ({ meta }) =>
  `UPDATE ${meta} SET max_elements = coalesce($2::bigint, max_elements), ttl_ms = coalesce($3::double precision, ttl_ms) ` +
  'WHERE id OPERATOR(pg_catalog.=) 1 AND version OPERATOR(pg_catalog.=) $1::integer RETURNING max_elements, ttl_ms';

/** @param {Names} names */
const hnswIndex = ({ table, indexes, extension }) =>
  `CREATE INDEX ${indexes.hnsw} ON ${table} USING hnsw (embedding ${extension}.vector_ip_ops)`;

/** @param {string[]} parts */
function quoted(...parts) {
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.');
}

/**
 * The parameters of a function, in order: SQL types by names. A type is a keyword or qualified, because statements are parsed with the
 * caller's search path.
 *
 * @typedef {Readonly<Record<string, string>>} Parameters
 */

/** @param {Parameters} parameters */
function declared(parameters) {
  return Object.entries(parameters)
    .map(([name, type]) => `${name} ${type}`)
    .join(', ');
}

/**
 * Returns a query of a function with `$1` and so on. Arguments are cast to their parameters' types, so that a planted overload with other
 * types is never called.
 *
 * @param {string} name
 * @param {Parameters} parameters
 */
function called(name, parameters) {
  const values = Object.values(parameters).map((type, index) => `$${index + 1}::${type}`);
  return `SELECT * FROM ${name}(${values.join(', ')})`;
}

/**
 * Returns a vector in pgvector's text form, `[1,2.5]`.
 *
 * @param {Float32Array} vector
 */
function vectorLiteral(vector) {
  return `[${vector.join(',')}]`;
}

/**
 * Returns the names of a store's objects; without a schema, the search path resolves them.
 *
 * @param {{ table: string, schema?: string }} settings
 */
function namesOf({ table, schema: named }) {
  const prefix = named === undefined ? [] : [named];
  const entries = Object.entries(SUFFIXES).map(([part, suffix]) => [part, quoted(...prefix, table + suffix)]);
  return /** @type {StoreNames} */ (Object.fromEntries(entries));
}

module.exports = {
  MAX_NAME_BYTES,
  MAX_TTL_MS,
  RAISED,
  SCHEMA_VERSION,
  SUFFIXES,
  called,
  declared,
  hnswIndex,
  metaRow,
  metaTable,
  namesOf,
  quoted,
  setLimits,
  tables,
  vectorLiteral,
};
