'use strict';

// The tables and functions of a store of traces, as SQL. A change to them raises `SCHEMA_VERSION`. trace-store.js calls them.

const {
  ATTRIBUTES,
  EXPECTED,
  ORIGIN,
  PARAMETERS: COMMON,
  checkOrigin,
  checkTime,
  checkVersion,
  findFunction,
  oldestAt,
  sizeFunction,
  sweepFunction,
} = require('./functions.js');
const { declared } = require('./schema.js');

/** @import { Names, StoreNames } from './schema.js' */

/** Up to this many traces, all are compared without a lookup. */
const SMALL = 64;

/**
 * The number of positions in a row of postings, at most 32,768. Each addition rewrites the rows of its words, and reading a row takes a
 * microsecond: crates/index/DESIGN.md has figures.
 */
const BLOCK = 16_384;

/** The most concurrent additions that a call compares with; with more, it starts again. */
const MOST_NEW = 1024;

/** The first half of the advisory lock keys of additions: the letters `kpna`. */
const ADD_LOCK = 0x6b706e61;

/** The parameters of the functions that statements call. */
const PARAMETERS = {
  size: COMMON.size,
  sweep: COMMON.sweep,
  look: {
    ...EXPECTED,
    ...ORIGIN,
    // Null to add nothing.
    new_call: 'pg_catalog.uuid',
    new_amount: 'integer',
    // The position of the caller's statistics.
    known_summary: 'bigint',
    asked_words: 'bigint[]',
  },
  add: {
    ...EXPECTED,
    ...ORIGIN,
    // The id of the call, the same when the call is repeated.
    new_call: 'pg_catalog.uuid',
    // The next position at the caller's lookup; all later traces are compared.
    seen: 'bigint',
    new_words: 'pg_catalog.bytea[]',
    new_embeddings: 'pg_catalog.bytea[]',
    new_labels: 'pg_catalog.text[]',
    // The indexed words of the traces; entries are numbered from 0.
    found_entries: 'integer[]',
    found_words: 'bigint[]',
    found_weights: 'smallint[]',
    new_draws: 'double precision[]',
    patience_ms: 'double precision',
  },
  sample: {
    ...EXPECTED,
    // The statistics to replace; null to make them in any case.
    replaced: 'bigint',
    amount: 'integer',
    most: 'integer',
    with_embedding: 'integer',
  },
};

/** @param {Names} names */
const tables = ({ table, words, summary, indexes }) => `
CREATE TABLE ${table} (
  position bigint PRIMARY KEY,
  added timestamptz NOT NULL,
  call uuid NOT NULL,
  -- A number by chance, with an embedding by that: the traces with the smallest ones are the sample that the statistics are made of.
  draw double precision NOT NULL,
  -- The trace: 10 bytes for each of its words, and the embedding of its digest where that is compared.
  words bytea NOT NULL,
  embedding bytea,
  label text
) WITH (toast_tuple_target = 8160);
-- Neither can be compressed.
ALTER TABLE ${table} ALTER COLUMN words SET STORAGE EXTERNAL, ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE INDEX ${indexes.call} ON ${table} (call);
CREATE INDEX ${indexes.draw} ON ${table} (draw);
-- The traces that are found by a word, of ${BLOCK} positions: 4 bytes with the highest bit and the number of the block, and 4 for each trace,
-- of which 2 are its distance to the first position, and 2 the weight of the word. So the blocks of a word need nothing between them. An
-- addition appends to the rows, which stay on their pages where there is room.
CREATE TABLE ${words} (
  word bigint,
  block bigint,
  data bytea NOT NULL,
  PRIMARY KEY (word, block)
) WITH (toast_tuple_target = 8160, fillfactor = 70);
ALTER TABLE ${words} ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX ${indexes.position} ON ${words} USING brin (block);
-- The statistics, made when "position" was the next one.
CREATE TABLE ${summary} (
  id integer PRIMARY KEY CHECK (id = 1),
  position bigint NOT NULL,
  data bytea,
  -- How many bytes suffice for comparing.
  common_bytes integer,
  -- Since when somebody makes them anew.
  making timestamptz
);
ALTER TABLE ${summary} ALTER COLUMN data SET STORAGE EXTERNAL;
INSERT INTO ${summary} (id, position) VALUES (1, 0);
`;

/** The rows that the functions return, of several kinds. Bytes are in base 64, which takes two thirds of hexadecimal digits. */
const ROWS = `RETURNS TABLE (kind text, number bigint, label text, data text)`;

/**
 * Returns the SQL that sets `lowest` to the oldest position within the limits.
 *
 * @param {Names} names
 * @param {string} [now]
 */
const findLowest = ({ table }, now) => `
  lowest := greatest(known.next_position - known.max_elements, 0);
  IF known.ttl_ms < 'infinity' THEN
    lowest := coalesce((
      SELECT stored.position FROM ${table} stored
      WHERE stored.position >= lowest AND stored.added > ${oldestAt(now)} ORDER BY stored.position LIMIT 1
    ), known.next_position);
  END IF;`;

/** The SQL that returns the next position and the oldest position within the limits. */
const returnSeen = `
  RETURN QUERY VALUES ('seen', known.next_position, known.max_elements::text, NULL::text), ('lowest', lowest, NULL, NULL);`;

/**
 * Returns the SQL that selects traces by positions. It also runs alone, so it works with any search path.
 *
 * @param {StoreNames} names
 * @param {string} condition
 */
const selectTraces = ({ table }, condition) =>
  "SELECT 'trace', stored.position, stored.label, " +
  "pg_catalog.encode(stored.words OPERATOR(pg_catalog.||) coalesce(stored.embedding, ''), 'base64') " +
  `FROM ${table} stored WHERE ${condition} ORDER BY stored.position`;

/**
 * Returns the SQL that selects the rows of the table of words for traces from a position on.
 *
 * @param {string} first
 * @param {string} columns the entries, counted from 0, and their words with the weights
 */
const selectPostings = (first, columns) => `
    SELECT posting.word, (${first} + posting.entry) / ${BLOCK}, int4send(((${first} + min(posting.entry)) / ${BLOCK} - 2147483648)::integer) || string_agg(
        int2send(((${first} + posting.entry) % ${BLOCK})::smallint) || int2send(posting.weight), ''::bytea ORDER BY posting.entry
      )
    FROM unnest(${columns}) AS posting(entry, word, weight)
    GROUP BY 1, 2`;

/**
 * Returns the function that looks up postings and the state before an addition. For a call that is stored already, that is the state
 * at the time of its addition.
 *
 * @param {Names} names
 */
const lookFunction = (names) => `
CREATE FUNCTION ${names.look}(${declared(PARAMETERS.look)}) ${ROWS}
${ATTRIBUTES} SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS ${names.quote}
#variable_conflict use_column
DECLARE
  known record;
  now timestamptz := clock_timestamp();
  lowest bigint;
  beginning bigint;
BEGIN${checkVersion(names)}${checkOrigin}
  beginning := CASE WHEN new_call IS NOT NULL THEN ${names.find}(new_call, new_amount) END;
  IF beginning IS NOT NULL THEN
    known.next_position := beginning;
    now := (SELECT min(stored.added) FROM ${names.table} stored WHERE stored.call = new_call);
    RETURN QUERY VALUES ('stored', beginning, NULL::text, NULL::text);
  END IF;${findLowest(names, 'now')}${returnSeen}
  IF known.next_position - lowest <= ${SMALL} THEN
    RETURN QUERY ${selectTraces(names, 'stored.position >= lowest AND stored.position < known.next_position')};
    RETURN;
  END IF;
  RETURN QUERY SELECT 'summary', made.position, NULL::text,
      CASE WHEN made.position <> known_summary THEN encode(substring(made.data FROM 1 FOR made.common_bytes), 'base64') END
    FROM ${names.summary} made WHERE made.id = 1;
  -- What was added since "known" was read is left to the caller.
  RETURN QUERY SELECT 'postings', NULL::bigint, NULL::text, encode(
      string_agg(int4send(found.number::integer - 1) || int4send(octet_length(found.data)) || found.data, ''::bytea), 'base64'
    )
    FROM (
      SELECT asked.number, (
        SELECT string_agg(posting.data, ''::bytea) FROM ${names.words} posting
        WHERE posting.word = asked.word AND posting.block >= lowest / ${BLOCK}
      ) AS data
      FROM unnest(asked_words) WITH ORDINALITY AS asked(word, number)
    ) found WHERE found.data IS NOT NULL;
END
${names.quote};
`;

/**
 * Returns the function that adds traces and returns their first position. Traces between the caller's lookup and that position are
 * still to be compared. A lock until the commit serialises additions, so positions follow the commits, and a later read sees all traces
 * before that position.
 *
 * @param {Names} names
 */
const addFunction = (names) => `
CREATE FUNCTION ${names.add}(${declared(PARAMETERS.add)}) ${ROWS}
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
  IF ${names.find}(new_call, amount) IS NOT NULL THEN
    RETURN QUERY VALUES ('stored', NULL::bigint, NULL::text, NULL::text);
    RETURN;
  END IF;
  IF known.next_position - seen > ${MOST_NEW} THEN
    RETURN QUERY VALUES ('behind', NULL::bigint, NULL::text, NULL::text);
    RETURN;
  END IF;${findLowest(names)}${checkTime}
  UPDATE ${names.meta} m SET next_position = known.next_position + amount, model = new_model, dtype = new_dtype WHERE m.id = 1;
  INSERT INTO ${names.table} (position, added, call, draw, words, embedding, label)
    SELECT known.next_position + new.index - 1, clock_timestamp(), new_call, coalesce(new.draw, random()), new.words, new.embedding, new.label
    FROM unnest(new_words, new_embeddings, new_labels, new_draws) WITH ORDINALITY AS new(words, embedding, label, draw, index);
  INSERT INTO ${names.words} AS held (word, block, data)
    ${selectPostings('known.next_position', 'found_entries, found_words, found_weights')}
    ON CONFLICT (word, block) DO UPDATE SET data = held.data || substring(excluded.data FROM 5);
  RETURN QUERY VALUES ('added', known.next_position, NULL::text, NULL::text);${returnSeen}
END
${names.quote};
`;

/**
 * Returns the function that reads the data for statistics: all traces up to `amount`, otherwise the previous statistics and at most `most`
 * traces since; and the embeddings of a sample. One caller at a time replaces statistics; its claim expires after half a minute.
 *
 * @param {Names} names
 */
const sampleFunction = (names) => `
CREATE FUNCTION ${names.sample}(${declared(PARAMETERS.sample)}) ${ROWS}
${ATTRIBUTES} AS ${names.quote}
#variable_conflict use_column
DECLARE
  known record;
  lowest bigint;
  former record;
BEGIN${checkVersion(names)}
  IF replaced IS NOT NULL THEN
    UPDATE ${names.summary} made SET making = clock_timestamp()
      WHERE made.id = 1 AND made.position = replaced
        AND coalesce(made.making < clock_timestamp() - interval '30 s', true);
    IF NOT FOUND THEN
      RETURN;
    END IF;
  END IF;${findLowest(names)}${returnSeen}
  SELECT made.position, made.data INTO former FROM ${names.summary} made WHERE made.id = 1;
  IF known.next_position - lowest <= amount OR former.data IS NULL THEN
    RETURN QUERY SELECT 'trace', stored.position, NULL::text, encode(stored.words, 'base64') FROM ${names.table} stored
      WHERE stored.position >= lowest AND stored.position < known.next_position ORDER BY stored.draw LIMIT most;
  ELSE
    RETURN QUERY VALUES ('summary', former.position, NULL::text, encode(former.data, 'base64'));
    -- Not by the index on these numbers: the range has few of them.
    RETURN QUERY SELECT 'trace', stored.position, NULL::text, encode(stored.words, 'base64') FROM ${names.table} stored
      WHERE stored.position >= greatest(former.position, lowest) AND stored.position < known.next_position
      ORDER BY stored.draw + 0 LIMIT most;
  END IF;
  RETURN QUERY SELECT 'embedded', stored.position, NULL::text, encode(stored.embedding, 'base64') FROM ${names.table} stored
    WHERE stored.position >= lowest AND stored.position < known.next_position ORDER BY stored.draw LIMIT with_embedding;
END
${names.quote};
`;

/**
 * Returns the SQL that deletes the words of swept traces in blocks without remaining traces.
 *
 * @param {Names} names
 */
const sweepWords = ({ table, words }) => `
  DELETE FROM ${words} posting WHERE posting.block < coalesce(
    (SELECT stored.position FROM ${table} stored ORDER BY stored.position LIMIT 1), known.next_position
  ) / ${BLOCK};`;

/** @param {Names} names */
const functions = (names) =>
  [findFunction, lookFunction, addFunction, sampleFunction, sizeFunction]
    .map((make) => make(names))
    .concat(sweepFunction(names, sweepWords(names)))
    .join('');

/**
 * Returns the SQL that selects the traces at positions `$1` and from `$2` to `$3`. With OR, the planner would scan the table.
 *
 * @param {StoreNames} names
 */
const selectPositions = (names) =>
  selectTraces(
    names,
    'stored.position OPERATOR(pg_catalog.=) ANY($1::bigint[] OPERATOR(pg_catalog.||) ' +
      'ARRAY(SELECT pg_catalog.generate_series($2::bigint, $3::bigint)))',
  );

/**
 * Returns the SQL that replaces older statistics.
 *
 * @param {StoreNames} names
 */
const replaceSummary = ({ summary }) =>
  `UPDATE ${summary} SET position = $1::bigint, data = $2::pg_catalog.bytea, common_bytes = $3::integer, making = NULL ` +
  'WHERE id OPERATOR(pg_catalog.=) 1 AND position OPERATOR(pg_catalog.<) $1::bigint';

module.exports = { BLOCK, PARAMETERS, functions, replaceSummary, selectPositions, selectPostings, tables };
