'use strict';

// The SQL of a store. Every transaction sets a search path of PostgreSQL's own schema, so names of others are qualified, and nothing that
// somebody plants in a schema is meant by a statement.

const { DIMENSIONS } = require('../vector-cache.js');

/** @import { NoveltyMethod } from '../../index.js' */

/**
 * @typedef {object} Names
 * @property {string} table
 * @property {string} words the table of words
 * @property {string} hnsw the index, without a schema
 * @property {string} extension the schema of pgvector
 */

/** The column with the data of a trace, by the method that compares it. */
const COLUMNS = { prefix: 'embedding', lexical: 'words', full: 'words_and_embedding' };

/** The time limit of a statement in the server, in milliseconds. */
const STATEMENT_MS = 10_000;

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';

const SEARCH_PATH = 'SET LOCAL search_path = pg_catalog, pg_temp';

/** Keeps the first schema of the caller's search path, where tables without a schema are. */
const KEEP_SCHEMA =
  "SELECT pg_catalog.set_config('knowledgepulse.schema', coalesce(pg_catalog.current_schema()::pg_catalog.text, ''), true)";

/** Locks by which processes that open a store wait for one another. */
const OPENING =
  'SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(7741340157230116965)';

/** Settings of a lookup by words, which must go through the index on them. */
const BY_WORDS =
  'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = off';

/** Settings of a search by an HNSW index, which the planner leaves out of small tables. */
const BY_HNSW =
  "SET LOCAL hnsw.ef_search = 100; SET LOCAL hnsw.iterative_scan = 'strict_order'; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off";

/** The statements that begin the opening of a store. */
const BEGIN_OPENING = [BEGIN, KEEP_SCHEMA, SEARCH_PATH, OPENING].join('; ');

/**
 * Returns the statements that begin a call.
 *
 * @param {NoveltyMethod} method
 * @param {boolean} hnsw
 * @param {bigint} [lock] of calls that add
 */
function beginCall(method, hnsw, lock) {
  const limits = `SET LOCAL statement_timeout = ${STATEMENT_MS}; SET LOCAL lock_timeout = ${STATEMENT_MS}; SET LOCAL jit = off`;
  const settings = method === 'prefix' ? (hnsw ? [BY_HNSW] : []) : [BY_WORDS];
  const locked = lock === undefined ? [] : [`SELECT pg_advisory_xact_lock(${lock})`];
  return [BEGIN, SEARCH_PATH, limits, ...settings, ...locked].join('; ');
}

/** Selects the columns of a table, the schema of pgvector, and whether there is an index. Values: schema, table and index. */
const LOOK = `
  SELECT (
    SELECT string_agg(a.attname, ' ') FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
  ), (
    SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
  ), EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $3)`;

/**
 * Returns the statements that create the tables.
 *
 * @param {Names} names
 * @param {NoveltyMethod} method
 */
function create({ table, words, extension }, method) {
  const column = COLUMNS[method];
  const type = method === 'prefix' ? `${extension}.vector(${DIMENSIONS})` : 'bytea';
  const traces = `
    CREATE TABLE ${table} (
      position bigint PRIMARY KEY,
      -- The id of the call that added the trace, and which of its traces it is: a call that is repeated adds nothing.
      call uuid NOT NULL,
      entry integer NOT NULL,
      added timestamptz NOT NULL,
      label text,
      model text,
      ${column} ${type} NOT NULL,
      -- The words by which the trace is found.
      found bigint[],
      UNIQUE (call, entry)
    ) WITH (toast_tuple_target = 8160)`;
  // Neither can be compressed, and a scan of embeddings reads no second table.
  const storage = `ALTER TABLE ${table} ALTER COLUMN ${column} SET STORAGE ${method === 'prefix' ? 'PLAIN' : 'EXTERNAL'}`;
  const index = `CREATE TABLE ${words} (word bigint, trace bigint, PRIMARY KEY (word, trace))`;
  return method === 'prefix' ? [traces, storage] : [traces, storage, index];
}

/** @param {Names} names */
const createHnsw = ({ table, hnsw, extension }) =>
  `CREATE INDEX ${hnsw} ON ${table} USING hnsw (embedding ${extension}.vector_cosine_ops)`;

/** @typedef {ReturnType<typeof statementsOf>} Statements */

/**
 * Returns the statements of calls by their names. Their values stand in their comments.
 *
 * @param {Names} names
 * @param {NoveltyMethod} method
 */
function statementsOf({ table, words, extension }, method) {
  const column = COLUMNS[method];
  const oldest = `DELETE FROM ${table} WHERE position IN (SELECT position FROM ${table} WHERE position < $1::bigint ORDER BY position LIMIT $2::bigint)`;
  return {
    /**
     * Selects the positions that a call is compared with: from the first one up to, but without, the second; whether the call is stored
     * already; and the model of the newest trace. Values: the call or null, the number of traces to compare with, and their time to live in
     * milliseconds or null.
     */
    view: `
      SELECT coalesce((
          SELECT position FROM ${table}
          WHERE position >= beyond - $2::bigint AND ($3::float8 IS NULL OR added > clock_timestamp() - $3::float8 * interval '1 ms')
          ORDER BY position LIMIT 1
        ), beyond), beyond, own IS NOT NULL, (SELECT model FROM ${table} ORDER BY position DESC LIMIT 1)
      FROM (
        SELECT own, coalesce(own, (SELECT position + 1 FROM ${table} ORDER BY position DESC LIMIT 1), 0) AS beyond
        FROM (SELECT (SELECT min(position) FROM ${table} WHERE call = $1::uuid) AS own) AS stored
      ) AS counted`,

    /**
     * Selects the nearest embedding to each of some, with its label and similarity, among those before it: of several, the first ones are
     * stored already. Values: the embeddings, the positions of `view`, and the number of traces to compare with.
     */
    nearest: `
      -- Materialised, because a text would be read again for each row.
      WITH asked AS MATERIALIZED (
        SELECT vector::${extension}.vector AS vector, entry - 1 AS entry FROM unnest($1::text[]) WITH ORDINALITY AS given(vector, entry)
      )
      SELECT asked.entry, found.label, 1 - found.distance
      FROM asked CROSS JOIN LATERAL (
        SELECT label, embedding OPERATOR(${extension}.<=>) asked.vector AS distance FROM ${table}
        WHERE position >= greatest($2::bigint, $3::bigint + asked.entry - $4::bigint) AND position < $3::bigint + asked.entry
        ORDER BY embedding OPERATOR(${extension}.<=>) asked.vector LIMIT 1
      ) AS found`,

    /** Has the next search read the whole table. */
    scan: "SELECT set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true)",

    /** Selects traces by their positions. */
    traces: `SELECT position, label, encode(${column}, 'base64') FROM ${table} WHERE position = ANY($1::bigint[]) ORDER BY position`,

    /**
     * Selects the traces that share most with each of some, and the newest one, each with the entries that it is for. Values: columns of
     * words with the numbers of their entries and their shares, the positions of `view`, and the number of traces for an entry.
     */
    candidates: `
      SELECT t.position, t.label, encode(t.${column}, 'base64'), chosen.entries
      FROM (
        SELECT trace, string_agg(entry::text, ',') AS entries
        FROM (
          SELECT asked.entry, w.trace, row_number() OVER (PARTITION BY asked.entry ORDER BY sum(asked.share) DESC, w.trace DESC) AS rank
          FROM unnest($1::int[], $2::bigint[], $3::float8[]) AS asked(entry, word, share) JOIN ${words} AS w ON w.word = asked.word
          WHERE w.trace >= $4::bigint AND w.trace < $5::bigint GROUP BY asked.entry, w.trace
        ) AS ranked WHERE rank <= $6::bigint GROUP BY trace
        UNION ALL SELECT $5::bigint - 1, NULL
      ) AS chosen JOIN ${table} AS t ON t.position = chosen.trace`,

    /** Adds embeddings. Values: the first position, the call, the model, the labels, and the embeddings. */
    addVectors: `
      INSERT INTO ${table} (position, call, entry, added, label, model, embedding)
      SELECT $1::bigint + entry - 1, $2::uuid, entry, clock_timestamp(), label, $3::text, data::${extension}.vector
      FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS given(label, data, entry) ON CONFLICT (call, entry) DO NOTHING`,

    /** Adds traces with the words by which they are found. Values: as of `addVectors`, and columns of words with the numbers of their entries. */
    addWords: `
      WITH found AS (
        SELECT entry, array_agg(word) AS words FROM unnest($6::int[], $7::bigint[]) AS given(entry, word) GROUP BY entry
      ), added AS (
        INSERT INTO ${table} (position, call, entry, added, label, model, ${column}, found)
        SELECT $1::bigint + given.entry - 1, $2::uuid, given.entry, clock_timestamp(), label, $3::text, data::bytea, words
        FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS given(label, data, entry) LEFT JOIN found ON found.entry = given.entry - 1
        ON CONFLICT (call, entry) DO NOTHING RETURNING position, found
      )
      INSERT INTO ${words} (word, trace) SELECT unnest(found), position FROM added`,

    /**
     * Deletes the oldest traces, and the words by which they are found. Values: the position of the first trace that stays, and the most
     * traces to delete.
     */
    evict:
      method === 'prefix'
        ? oldest
        : `
      WITH gone AS (${oldest} RETURNING position, found)
      DELETE FROM ${words} AS w USING (SELECT position, unnest(found) AS word FROM gone) AS old WHERE w.word = old.word AND w.trace = old.position`,
  };
}

/** @param {string[]} parts */
const quoted = (...parts) => parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.');

module.exports = { BEGIN_OPENING, COLUMNS, LOOK, beginCall, create, createHnsw, quoted, statementsOf };
