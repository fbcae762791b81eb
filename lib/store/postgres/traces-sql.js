'use strict';

// The tables and functions of a PgVectorStore of traces, as SQL. A change to them raises `SCHEMA_VERSION`. traces.js calls them.

const {
  ATTRIBUTES,
  EXPECTED,
  OLDEST,
  checkOrigin,
  checkTime,
  checkVersion,
  findFunction,
  sizeFunction,
  sweepFunction,
} = require('./functions.js');

/** @import { Names } from './schema.js' */

/** With at most so many traces, all are compared, and nothing is looked up. */
const SMALL = 64;

/** How many traces a word finds at most, the newest ones, however wrong the estimate is. */
const MOST_FINDS = 2000;

/** How many traces that others have added meanwhile are returned at most; with more, the call begins anew. */
const MOST_NEW = 256;

/** The first half of the keys of the locks of additions: the letters `kpna`. */
const ADD_LOCK = 0x6b706e61;

/**
 * The tables, beside the meta table.
 *
 * @param {Names} names
 */
const tables = ({ table, words, summary, callIndexName, drawIndexName, positionIndexName }) => `
CREATE TABLE IF NOT EXISTS ${table} (
  position bigint PRIMARY KEY,
  added timestamptz NOT NULL,
  call uuid NOT NULL,
  -- A random number: the traces with the smallest ones are the sample that the statistics are made of.
  draw double precision NOT NULL,
  -- The trace: 10 bytes for each of its words, and the embedding of its digest where that is compared.
  words bytea NOT NULL,
  embedding bytea,
  label text,
  -- What it was nearest to when it came, as JSON: the answer to the call, should that be made again.
  nearest text
) WITH (toast_tuple_target = 8160);
-- Neither can be compressed.
ALTER TABLE ${table} ALTER COLUMN words SET STORAGE EXTERNAL, ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS ${callIndexName} ON ${table} (call);
CREATE INDEX IF NOT EXISTS ${drawIndexName} ON ${table} (draw);
-- By which words a trace is found, and how much each counts.
CREATE TABLE IF NOT EXISTS ${words} (
  word bigint,
  position bigint,
  weight real NOT NULL,
  PRIMARY KEY (word, position) INCLUDE (weight)
);
CREATE INDEX IF NOT EXISTS ${positionIndexName} ON ${words} USING brin (position);
-- The statistics, made when "position" was the next one.
CREATE TABLE IF NOT EXISTS ${summary} (
  id integer PRIMARY KEY CHECK (id = 1),
  position bigint NOT NULL,
  data bytea,
  -- Since when somebody makes them anew.
  making timestamptz
);
INSERT INTO ${summary} (id, position) VALUES (1, 0) ON CONFLICT DO NOTHING;
`;

/** What the functions return: rows of several kinds. */
const ROWS = `RETURNS TABLE (kind text, number bigint, query integer, label text, words bytea, embedding bytea)`;

/**
 * Sets `lowest` to the position of the oldest trace that counts.
 *
 * @param {Names} names
 */
const findLowest = ({ table }) => `
  lowest := greatest(known.next_position - known.max_elements, 0);
  IF known.ttl_ms < 'infinity' THEN
    lowest := coalesce((
      SELECT stored.position FROM ${table} stored
      WHERE stored.position >= lowest AND stored.added > ${OLDEST} ORDER BY stored.position LIMIT 1
    ), known.next_position);
  END IF;`;

/**
 * The rows of a call that is stored already.
 *
 * @param {Names} names
 */
const returnStored = ({ table }) => `
    RETURN QUERY SELECT 'stored', stored.position, NULL::integer, stored.nearest, NULL::bytea, NULL::bytea
      FROM ${table} stored WHERE stored.call = new_call ORDER BY stored.position;
    RETURN;`;

/**
 * The rows that every answer begins with: the next position, and the oldest that counts.
 */
const returnSeen = `
  RETURN QUERY VALUES ('seen', known.next_position, NULL::integer, known.max_elements::text, NULL::bytea, NULL::bytea),
    ('lowest', lowest, NULL, NULL, NULL, NULL);`;

/**
 * The traces with these positions.
 *
 * @param {Names} names
 * @param {string} condition
 */
const returnTraces = ({ table }, condition) => `
  RETURN QUERY SELECT 'trace', stored.position, NULL::integer, stored.label, stored.words, stored.embedding
    FROM ${table} stored WHERE ${condition} ORDER BY stored.position;`;

/**
 * The candidates for several queries, each of which is some words with weights. The score of a trace is the sum of the products of the
 * weights, which is about the cosine.
 *
 * @param {Names} names
 */
const lookFunction = (names) => `
CREATE OR REPLACE FUNCTION ${names.look}(${EXPECTED},
  new_model text, new_dtype text, new_method text,
  -- Null if nothing is to be added.
  new_call uuid,
  new_amount integer,
  -- The statistics that the caller knows.
  known_summary bigint,
  asked_queries integer[], asked_words bigint[], asked_weights real[],
  candidates integer
) ${ROWS}
${ATTRIBUTES} SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS ${names.quote}
#variable_conflict use_column
DECLARE
  known record;
  lowest bigint;
  found_queries integer[];
  found bigint[];
BEGIN${checkVersion(names)}${checkOrigin}
  IF new_call IS NOT NULL AND ${names.find}(new_call, new_amount) IS NOT NULL THEN${returnStored(names)}
  END IF;${findLowest(names)}${returnSeen}
  IF known.next_position - lowest <= ${SMALL} THEN${returnTraces(names, 'stored.position >= lowest AND stored.position < known.next_position')}
    RETURN;
  END IF;
  RETURN QUERY SELECT 'summary', made.position, NULL::integer, NULL::text,
      CASE WHEN made.position <> known_summary THEN made.data END, NULL::bytea
    FROM ${names.summary} made WHERE made.id = 1;
  SELECT array_agg(ranked.query), array_agg(ranked.position) INTO found_queries, found FROM (
    SELECT scored.query, scored.position,
      row_number() OVER (PARTITION BY scored.query ORDER BY scored.score DESC, scored.position) AS rank
    FROM (
      SELECT asked.query, posted.position, sum(asked.weight * posted.weight) AS score
      FROM unnest(asked_queries, asked_words, asked_weights) AS asked(query, word, weight)
      CROSS JOIN LATERAL (
        SELECT posting.position, posting.weight FROM ${names.words} posting
        WHERE posting.word = asked.word AND posting.position >= lowest AND posting.position < known.next_position
        ORDER BY posting.position DESC LIMIT ${MOST_FINDS}
      ) posted
      GROUP BY asked.query, posted.position
    ) scored
  ) ranked WHERE ranked.rank <= candidates;
  RETURN QUERY SELECT 'candidate', pair.position, pair.query, NULL::text, NULL::bytea, NULL::bytea
    FROM unnest(found_queries, found) AS pair(query, position);
  -- The newest too, so that there is one where no words are shared.${returnTraces(names, 'stored.position = ANY(found || (known.next_position - 1))')}
END
${names.quote};
`;

/**
 * Adds traces if nobody has added any since the caller has looked, and otherwise returns what was added. Additions take place one after
 * another under a lock that lasts until the commit. READ COMMITTED gives each statement of the function a snapshot of its own, so
 * those after the lock see everything that was committed before it was granted.
 *
 * @param {Names} names
 */
const addFunction = (names) => `
CREATE OR REPLACE FUNCTION ${names.add}(${EXPECTED},
  new_model text, new_dtype text, new_method text,
  -- One for each call, and the same when it is made again.
  new_call uuid,
  -- The next position when the caller looked.
  seen bigint,
  new_words bytea[], new_embeddings bytea[], new_labels text[], new_nearest text[],
  -- By which words the traces are found; the entries count from 0.
  found_entries integer[], found_words bigint[], found_weights real[],
  patience_ms double precision
) ${ROWS}
${ATTRIBUTES} AS ${names.quote}
#variable_conflict use_column
DECLARE
  began constant timestamptz := clock_timestamp();
  amount constant integer := cardinality(new_words);
  known record;
  lowest bigint;
BEGIN
  PERFORM set_config('lock_timeout', greatest(least(patience_ms, 2147483647), 1)::integer::text, true);
  PERFORM pg_advisory_xact_lock(${ADD_LOCK}, ${names.tableLiteral}::regclass::oid::bigint::bit(32)::integer);${checkVersion(names)}${checkOrigin}
  IF ${names.find}(new_call, amount) IS NOT NULL THEN${returnStored(names)}
  END IF;
  IF known.next_position <> seen THEN${findLowest(names)}${returnSeen}
    IF known.next_position - seen <= ${MOST_NEW} THEN${returnTraces(names, 'stored.position >= greatest(seen, lowest) AND stored.position < known.next_position')}
    END IF;
    RETURN;
  END IF;${checkTime}
  UPDATE ${names.meta} m SET next_position = seen + amount, model = new_model, dtype = new_dtype WHERE m.id = 1;
  INSERT INTO ${names.table} (position, added, call, draw, words, embedding, label, nearest)
    SELECT seen + new.index - 1, clock_timestamp(), new_call, random(), new.words, new.embedding, new.label, new.nearest
    FROM unnest(new_words, new_embeddings, new_labels, new_nearest) WITH ORDINALITY AS new(words, embedding, label, nearest, index);
  INSERT INTO ${names.words} (word, position, weight)
    SELECT posting.word, seen + posting.entry, posting.weight
    FROM unnest(found_entries, found_words, found_weights) AS posting(entry, word, weight);
  RETURN QUERY VALUES ('added', seen, NULL::integer, NULL::text, NULL::bytea, NULL::bytea);
END
${names.quote};
`;

/**
 * The sample that statistics are made of. One caller at a time makes those that replace others; it gives up after half a minute.
 *
 * @param {Names} names
 */
const sampleFunction = (names) => `
CREATE OR REPLACE FUNCTION ${names.sample}(${EXPECTED},
  -- The statistics that are to be replaced; null to make some in any case.
  replaced bigint,
  amount integer,
  with_embedding integer
) ${ROWS}
${ATTRIBUTES} AS ${names.quote}
#variable_conflict use_column
DECLARE
  known record;
  lowest bigint;
BEGIN${checkVersion(names)}
  IF replaced IS NOT NULL THEN
    UPDATE ${names.summary} made SET making = clock_timestamp()
      WHERE made.id = 1 AND made.position = replaced
        AND coalesce(made.making < clock_timestamp() - interval '30 s', true);
    IF NOT FOUND THEN
      RETURN;
    END IF;
  END IF;${findLowest(names)}${returnSeen}
  RETURN QUERY SELECT 'trace', drawn.position, NULL::integer, NULL::text, drawn.words,
      CASE WHEN row_number() OVER (ORDER BY drawn.draw) <= with_embedding THEN drawn.embedding END
    FROM (
      SELECT stored.position, stored.draw, stored.words, stored.embedding FROM ${names.table} stored
      WHERE stored.position >= lowest AND stored.position < known.next_position ORDER BY stored.draw LIMIT amount
    ) drawn;
END
${names.quote};
`;

/**
 * Deletes the words of the traces that were swept.
 *
 * @param {Names} names
 */
const sweepWords = ({ table, words }) => `
  DELETE FROM ${words} posting WHERE posting.position < coalesce(
    (SELECT stored.position FROM ${table} stored ORDER BY stored.position LIMIT 1), known.next_position
  );`;

/** @param {Names} names */
const functions = (names) =>
  [findFunction, lookFunction, addFunction, sampleFunction, sizeFunction]
    .map((make) => make(names))
    .concat(sweepFunction(names, sweepWords(names)))
    .join('');

module.exports = { functions, tables };
