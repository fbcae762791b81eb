'use strict';

// The tables of a store of vectors as SQL, and the names of all that is made for it. Names come in quoted; everything else is a
// parameter.
//
// Whoever may create in a schema of the search path can plant functions, operators and types there, which run with the rights of whoever
// calls them. So the functions and the migration have a search path of their own, and every other statement casts its parameters and
// names functions, operators and types with their schema.

const { DIMENSIONS } = require('../../embedding.js');

/** Goes up with every change to the tables below or to the functions of `functions.js`. */
const SCHEMA_VERSION = 3;

/** What the functions raise, besides PostgreSQL's own conditions. */
const RAISED = {
  schema: 'KP001',
  otherModel: 'KP002',
  tooLate: 'KP003',
  otherLimits: 'KP004',
  otherMethod: 'KP005',
};

/** The suffixes of the names of all that is made for a store. */
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

/** PostgreSQL cuts longer names, after which two could be the same. */
const MAX_NAME_BYTES = 63 - Math.max(...Object.values(SUFFIXES).map((suffix) => suffix.length));

/** How long a vector can live in milliseconds, six thousand years: the calendar of PostgreSQL begins in 4713 BC. */
const MAX_TTL_MS = 2e14;

/**
 * The tables, indexes and functions of a store beside its table and that of its row, for the check that all of them exist: of vectors, and
 * of traces for novelty by words.
 */
const PARTS = /** @type {const} */ ({
  vectors: {
    tables: [],
    indexes: { call: 'btree' },
    functions: ['find', 'look', 'lookAll', 'add', 'nearest', 'size', 'sweep'],
  },
  traces: {
    tables: ['words', 'summary'],
    indexes: { call: 'btree', draw: 'btree', position: 'brin' },
    functions: ['find', 'look', 'add', 'sample', 'size', 'sweep'],
  },
});

/** The methods by which traces are compared by their words. */
const TRACE_METHODS = ['lexical', 'full'];

/** Everything that the statements call by name. */
const CALLED = /** @type {const} */ ([
  ...[
    'table',
    'meta',
    'words',
    'summary',
    'find',
    'look',
    'lookAll',
    'add',
    'nearest',
    'sample',
    'size',
    'sweep',
  ],
]);

/**
 * What the statements call by name, quoted: what is called on every use, and what only `migrate` names.
 *
 * @typedef {Record<typeof CALLED[number], string>} CalledNames
 * @typedef {CalledNames & Record<'extension' | 'extensionLiteral' | 'type' | 'tableLiteral' | 'indexName' |
 *   'callIndexName' | 'drawIndexName' | 'positionIndexName' | 'quote', string>} Names
 */

/**
 * The table with the store's row.
 *
 * Positions are given out under the lock of the single row of the meta table, so they have no gaps, and are in the
 * order of the commits: the newest `n` vectors are those of the `n` highest positions.
 *
 * @param {Names} names
 */
const metaTable = ({ meta }) => `
CREATE TABLE IF NOT EXISTS ${meta} (
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

/**
 * The table of vectors.
 *
 * @param {Names} names
 */
const tables = ({ table, type, callIndexName }) => `
CREATE TABLE IF NOT EXISTS ${table} (
  position bigint PRIMARY KEY,
  added timestamptz NOT NULL,
  call uuid NOT NULL,
  embedding ${type}(${DIMENSIONS}) NOT NULL,
  label text
);
-- In the row whatever the length of the label: a scan reads it.
ALTER TABLE ${table} ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX IF NOT EXISTS ${callIndexName} ON ${table} (call);
`;

/**
 * The row of the meta table, unless it is there.
 *
 * @param {Pick<Names, 'meta'>} names
 */
const metaRow = ({ meta }) =>
  `INSERT INTO ${meta} (id, version, next_position, max_elements, ttl_ms, method) VALUES (1, ${SCHEMA_VERSION}, 0, $1, $2, $3) ` +
  'ON CONFLICT DO NOTHING';

/**
 * Sets the limits that are not null, and returns all.
 *
 * @param {Pick<Names, 'meta'>} names
 */
const setLimits = ({ meta }) =>
  `UPDATE ${meta} SET max_elements = coalesce($2::bigint, max_elements), ttl_ms = coalesce($3::double precision, ttl_ms) ` +
  'WHERE id OPERATOR(pg_catalog.=) 1 AND version OPERATOR(pg_catalog.=) $1::integer RETURNING max_elements, ttl_ms';

/** @param {Names} names */
const hnswIndex = ({ table, indexName, extension }) =>
  `CREATE INDEX ${indexName} ON ${table} USING hnsw (embedding ${extension}.vector_ip_ops)`;

/**
 * A name as SQL: whatever is in it is a part of it.
 *
 * @param {string[]} parts
 */
function quoted(...parts) {
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.');
}

/**
 * The parameters of a function: their SQL types by their names, in order. A type is a keyword or named with its schema, because
 * statements are read by the search path of the caller.
 *
 * @typedef {Readonly<Record<string, string>>} Parameters
 */

/**
 * The parameters of a function as its declaration has them.
 *
 * @param {Parameters} parameters
 */
function declared(parameters) {
  return Object.entries(parameters)
    .map(([name, type]) => `${name} ${type}`)
    .join(', ');
}

/**
 * A call of a function with `$1` and so on. Each argument is cast to the type of its parameter, so that no overload with other types,
 * which anybody may make who may create in the schema, is called instead.
 *
 * @param {string} name
 * @param {Parameters} parameters
 */
function called(name, parameters) {
  const values = Object.values(parameters).map((type, index) => `$${index + 1}::${type}`);
  return `${name}(${values.join(', ')})`;
}

/**
 * A vector as PostgreSQL reads one, `[1,2.5]`: pgvector's text input, of which a number is read as JavaScript writes it.
 *
 * @param {Float32Array} vector
 */
function vectorLiteral(vector) {
  return `[${vector.join(',')}]`;
}

/**
 * The names that the statements call, of which the search path says where they are if no schema was named.
 *
 * @param {{ table: string, schema?: string }} settings
 * @returns {CalledNames}
 */
function namesOf({ table, schema: named }) {
  const prefix = named === undefined ? [] : [named];
  const entries = CALLED.map((name) => [name, quoted(...prefix, table + SUFFIXES[name])]);
  return /** @type {CalledNames} */ (Object.fromEntries(entries));
}

module.exports = {
  MAX_NAME_BYTES,
  MAX_TTL_MS,
  PARTS,
  RAISED,
  SCHEMA_VERSION,
  SUFFIXES,
  TRACE_METHODS,
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
