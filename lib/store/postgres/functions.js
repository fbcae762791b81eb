'use strict';

// The functions of a store of vectors, as SQL. A change to them raises `SCHEMA_VERSION`.

const { MAX_TTL_MS, RAISED, declared } = require('./schema.js');

/** @import { Names } from './schema.js' */

/**
 * The settings of functions. The search path is fixed, so that no caller changes what names mean. Just-in-time compilation costs
 * more than it saves.
 */
const ATTRIBUTES = 'LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off';

const META_COLUMNS = 'm.version, m.model, m.dtype, m.method, m.next_position, m.max_elements, m.ttl_ms';

/** The parameters of {@link checkVersion}; null limits mean any. */
const EXPECTED = {
  expected_version: 'integer',
  expected_elements: 'bigint',
  expected_ttl_ms: 'double precision',
};

/** The parameters of {@link checkOrigin}; the method is null if unknown. */
const ORIGIN = {
  new_model: 'pg_catalog.text',
  new_dtype: 'pg_catalog.text',
  new_method: 'pg_catalog.text',
};

/** The parameters of the functions that statements call. */
const PARAMETERS = {
  add: {
    ...EXPECTED,
    ...ORIGIN,
    // The id of the call, the same when the call is repeated.
    new_call: 'pg_catalog.uuid',
    new_embeddings: 'pg_catalog.text[]',
    new_labels: 'pg_catalog.text[]',
    // For each vector, the number of vectors of earlier entries.
    befores: 'integer[]',
    ef_search: 'integer',
    patience_ms: 'double precision',
  },
  nearest: {
    ...EXPECTED,
    ...ORIGIN,
    new_embedding: 'pg_catalog.text',
    amount: 'integer',
    ef_search: 'integer',
  },
  size: EXPECTED,
  sweep: { ...EXPECTED, amount: 'integer' },
};

/**
 * Reads and checks the meta row. Expects a variable `known`.
 *
 * @param {Names} names
 */
const checkVersion = ({ meta }) => `
  SELECT ${META_COLUMNS} INTO known FROM ${meta} m WHERE m.id = 1;
  IF known.version IS DISTINCT FROM expected_version THEN
    RAISE EXCEPTION USING ERRCODE = '${RAISED.schema}', MESSAGE =
      format('the schema is of version %s, not %s', coalesce(known.version::text, 'unknown'), expected_version);
  END IF;
  IF known.max_elements <> expected_elements OR known.ttl_ms <> expected_ttl_ms THEN
    RAISE EXCEPTION USING ERRCODE = '${RAISED.otherLimits}', MESSAGE = format(
      'the table has maxElements %s and ttlMs %s, not %s and %s',
      known.max_elements, known.ttl_ms,
      coalesce(expected_elements, known.max_elements), coalesce(expected_ttl_ms, known.ttl_ms)
    );
  END IF;`;

/** Expects the parameters {@link ORIGIN}. */
const checkOrigin = `
  IF known.model <> new_model OR known.dtype <> new_dtype THEN
    RAISE EXCEPTION USING ERRCODE = '${RAISED.otherModel}', MESSAGE =
      format('the vectors are of %s (%s), not of %s (%s)', known.model, known.dtype, new_model, new_dtype);
  END IF;
  IF known.method <> new_method THEN
    RAISE EXCEPTION USING ERRCODE = '${RAISED.otherMethod}', MESSAGE =
      format('the vectors are of novelty %L, not of novelty %L', known.method, new_method);
  END IF;`;

/** `ef_search` is null for an exact search. */
const prepareSearch = `
  IF ef_search IS NOT NULL THEN
    PERFORM set_config('hnsw.ef_search', ef_search::text, true);
    -- Goes on where those that it finds have expired.
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);
  END IF;`;

/**
 * Returns the expression of the time since when entries have not expired.
 *
 * @param {string} [now]
 */
const oldestAt = (now = 'clock_timestamp()') =>
  `CASE WHEN known.ttl_ms > ${MAX_TTL_MS} THEN '-infinity' ELSE ${now} - known.ttl_ms * interval '1 ms' END`;

/** Expects a variable `began` and a parameter `patience_ms`. */
const checkTime = `
  IF extract(epoch FROM clock_timestamp() - began) * 1000 > patience_ms THEN
    RAISE EXCEPTION USING ERRCODE = '${RAISED.tooLate}', MESSAGE = 'there was no time left to add';
  END IF;`;

/**
 * Vectors have length 1, so the negative inner product (`<#>`) orders them as the cosine does, and is cheaper.
 *
 * @param {Names} names
 * @param {string} vector
 */
const distance = ({ extension }, vector) => `(stored.embedding OPERATOR(${extension}.<#>) ${vector})`;

/**
 * As `distance`, but in a form without an index.
 *
 * @param {Names} names
 * @param {string} vector
 */
const exactDistance = (names, vector) => `(${distance(names, vector)} + 0)`;

/**
 * Returns the position of a call's first vector; null if the call is not stored. Computed from the last vector, because the first ones
 * may have been swept.
 *
 * @param {Names} names
 */
const findFunction = (names) => `
CREATE FUNCTION ${names.find}(wanted uuid, amount integer) RETURNS bigint
-- With the value, the planner knows that it is rare.
${ATTRIBUTES} SET plan_cache_mode = force_custom_plan AS ${names.quote}
DECLARE
  last bigint;
  stored_amount bigint;
BEGIN
  -- The sum keeps the planner from going through the positions instead of the index on calls.
  SELECT max(stored.position + 0), count(*) INTO last, stored_amount FROM ${names.table} stored
    WHERE stored.call = wanted;
  IF stored_amount > amount THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE =
      format('call %s is stored already, with other entries', wanted);
  END IF;
  RETURN last - amount + 1;
END
${names.quote};
`;

/**
 * Returns the position of the vector nearest to `query`, from `lowest` on and, unless null, below `beyond`.
 *
 * @param {Names} names
 */
const lookFunction = (names) => `
CREATE FUNCTION ${names.look}(
  query ${names.type}, lowest bigint, beyond bigint, oldest timestamptz, by_index boolean
) RETURNS bigint
${ATTRIBUTES} SET plan_cache_mode = force_custom_plan SET enable_sort = on AS ${names.quote}
DECLARE
  nearest bigint;
BEGIN
  IF by_index THEN
    -- Ends with the function. Without, the planner leaves out the index of a table that it thinks is small.
    PERFORM set_config('enable_sort', 'off', true);
    nearest := (
      SELECT stored.position FROM ${names.table} stored
      WHERE stored.position >= lowest AND stored.added > oldest
      ORDER BY ${distance(names, 'query')} LIMIT 1
    );
    IF nearest IS NOT NULL THEN
      RETURN nearest;
    END IF;
    -- The index gives up after some thousands that do not count any more and are not swept yet.
    PERFORM set_config('enable_sort', 'on', true);
  END IF;
  -- Of PL/pgSQL's statements, RETURN is one that lets a scan use parallel workers.
  IF beyond IS NULL THEN
    RETURN (
      SELECT stored.position FROM ${names.table} stored
      WHERE stored.position >= lowest AND stored.added > oldest
      ORDER BY ${exactDistance(names, 'query')}, stored.position LIMIT 1
    );
  ELSE
    RETURN (
      SELECT stored.position FROM ${names.table} stored
      WHERE stored.position >= lowest AND stored.position < beyond AND stored.added > oldest
      ORDER BY ${exactDistance(names, 'query')}, stored.position LIMIT 1
    );
  END IF;
END
${names.quote};
`;

/**
 * Returns the positions, from `lowest` on and below `beyond`, of the vectors nearest to each of `queries`, exactly. 64 queries take two
 * scans: one for the smallest distances, one for their vectors. Reading a row costs more than comparing it, so 64 queries take as
 * long as ten scans for one.
 *
 * -1 means that the vector was deleted between the scans.
 *
 * @param {Names} names
 */
const lookAllFunction = (names) => `
CREATE FUNCTION ${names.lookAll}(
  queries ${names.type}[], lowest bigint, beyond bigint, oldest timestamptz
) RETURNS bigint[]
${ATTRIBUTES} AS ${names.quote}
DECLARE
  distance constant text := 'stored.embedding OPERATOR(' || ${names.extensionLiteral} || '.<#>) $1[';
  source constant text :=
    '] FROM ' || ${names.tableLiteral} ||
    ' stored WHERE stored.position >= $2 AND stored.position < $3 AND stored.added > $4';
  part ${names.type}[];
  distances double precision[];
  positions bigint[];
  found bigint[] := '{}';
BEGIN
  FOR start IN 1..cardinality(queries) BY 64 LOOP
    part := queries[start:start + 63];
    EXECUTE 'SELECT ARRAY[' || (
      SELECT string_agg('min(' || distance || i || '])', ', ' ORDER BY i) FROM generate_series(1, cardinality(part)) i
    ) || source INTO distances USING part, lowest, beyond, oldest;
    EXECUTE 'SELECT ARRAY[' || (
      SELECT string_agg('min(stored.position) FILTER (WHERE ' || distance || i || '] = $5[' || i || '])', ', ' ORDER BY i)
      FROM generate_series(1, cardinality(part)) i
    ) || source INTO positions USING part, lowest, beyond, oldest, distances;
    found := found || ARRAY(
      SELECT coalesce(best.position, CASE WHEN best.distance IS NOT NULL THEN -1 END)
      FROM unnest(positions, distances) WITH ORDINALITY AS best(position, distance, index) ORDER BY best.index
    );
  END LOOP;
  RETURN found;
END
${names.quote};
`;

/**
 * Compares and adds. The search runs first, without a lock. Then the function locks the meta row until the commit, compares with what
 * was committed since, and inserts. Under READ COMMITTED each statement has its own snapshot, so those after the lock see every earlier
 * commit: of two calls that add the same, one sees the other's. With a snapshot for the transaction (REPEATABLE READ, SERIALIZABLE), the
 * lock fails with a serialization failure instead.
 *
 * A call that is stored already is only compared, without a lock. Two attempts of a call may overlap, so each looks for the other again
 * under the lock. A nearest vector that expires or is displaced meanwhile raises a serialization failure, which asks for another attempt.
 *
 * @param {Names} names
 */
const addFunction = (names) => `
CREATE FUNCTION ${names.add}(${declared(PARAMETERS.add)}) RETURNS TABLE (similarity double precision, nearest_label text)
${ATTRIBUTES} AS ${names.quote}
DECLARE
  began constant timestamptz := clock_timestamp();
  queries constant ${names.type}[] := new_embeddings::${names.type}[];
  amount constant integer := cardinality(new_embeddings);
  known record;
  previous record;
  oldest timestamptz;
  -- Where the vectors of the call begin, and what comes from where on was not looked at before the lock.
  beginning bigint;
  seen bigint;
  lowest bigint;
  remaining double precision;
  candidates bigint[];
BEGIN${checkVersion(names)}${checkOrigin}${prepareSearch}

  oldest := ${oldestAt()};
  beginning := ${names.find}(new_call, amount);
  seen := coalesce(beginning, known.next_position);
  candidates := array_fill(NULL::bigint, ARRAY[amount]);
  IF amount > 2 AND (ef_search IS NULL OR beginning IS NOT NULL) THEN
    -- From where the first entry is compared.
    candidates := ${names.lookAll}(queries, seen - known.max_elements, seen, oldest);
    FOR i IN 1..amount LOOP
      lowest := seen + befores[i] - known.max_elements;
      -- Those that are too old for a later entry, or were deleted in between.
      IF candidates[i] < greatest(lowest, 0) THEN${checkTime}
        candidates[i] := ${names.look}(queries[i], lowest, seen, oldest, false);
      END IF;
    END LOOP;
  ELSE
    FOR i IN 1..amount LOOP${checkTime}
      candidates[i] := ${names.look}(
        queries[i], seen + befores[i] - known.max_elements, beginning, oldest,
        ef_search IS NOT NULL AND beginning IS NULL
      );
    END LOOP;
  END IF;

  IF beginning IS NULL THEN
    remaining := patience_ms - extract(epoch FROM clock_timestamp() - began) * 1000;
    IF remaining < 1 THEN
      RAISE EXCEPTION USING ERRCODE = '${RAISED.tooLate}', MESSAGE = 'there was no time left to add';
    END IF;
    PERFORM set_config('lock_timeout', least(remaining, 2147483647)::integer::text, true);
    previous := known;
    SELECT ${META_COLUMNS} INTO STRICT known FROM ${names.meta} m WHERE m.id = 1 FOR UPDATE;${checkTime}${checkOrigin}
    IF known.max_elements <> previous.max_elements OR known.ttl_ms <> previous.ttl_ms THEN
      RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the limits have changed';
    END IF;
    IF ${names.find}(new_call, amount) IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'another attempt has stored the call';
    END IF;
    beginning := known.next_position;
    oldest := ${oldestAt()};

    IF EXISTS (
      SELECT FROM unnest(candidates, befores) AS found(position, before)
      WHERE found.position IS NOT NULL AND NOT EXISTS (
        SELECT FROM ${names.table} stored
        WHERE stored.position = found.position AND stored.added > oldest
          AND stored.position >= beginning + found.before - known.max_elements
      )
    ) THEN
      RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'a nearest vector has expired or been displaced';
    END IF;${checkTime}

    UPDATE ${names.meta} m SET next_position = beginning + amount, model = new_model, dtype = new_dtype,
      method = coalesce(known.method, new_method) WHERE m.id = 1;
    INSERT INTO ${names.table} (position, added, call, embedding, label)
      SELECT beginning + new.index - 1, clock_timestamp(), new_call, new.embedding, new.label
      FROM unnest(queries, new_labels) WITH ORDINALITY AS new(embedding, label, index);
  END IF;

  RETURN QUERY
  SELECT nearest.similarity, nearest.label
  FROM unnest(queries, befores, candidates) WITH ORDINALITY AS new(embedding, before, candidate, index)
  LEFT JOIN LATERAL (
    SELECT -compared.distance AS similarity, compared.label
    FROM (
      SELECT ${exactDistance(names, 'new.embedding')} AS distance, stored.position, stored.label
      FROM ${names.table} stored
      WHERE stored.position = new.candidate
      UNION ALL
      -- Those of other calls since the look, and of the entries before.
      SELECT ${exactDistance(names, 'new.embedding')}, stored.position, stored.label
      FROM ${names.table} stored
      WHERE stored.position >= greatest(seen, beginning + new.before - known.max_elements)
        AND stored.position < beginning + new.before AND stored.added > oldest
    ) compared
    ORDER BY compared.distance, compared.position LIMIT 1
  ) nearest ON true
  ORDER BY new.index;
END
${names.quote};
`;

/** @param {Names} names */
const nearestFunction = (names) => `
CREATE FUNCTION ${names.nearest}(${declared(PARAMETERS.nearest)}) RETURNS TABLE (similarity double precision, nearest_label text)
${ATTRIBUTES} AS ${names.quote}
DECLARE
  query constant ${names.type} := new_embedding::${names.type};
  known record;
  oldest timestamptz;
  lowest bigint;
  positions bigint[];
BEGIN${checkVersion(names)}${checkOrigin}${prepareSearch}
  oldest := ${oldestAt()};
  lowest := known.next_position - known.max_elements;
  IF ef_search IS NOT NULL THEN
    positions := ARRAY(
      SELECT stored.position FROM ${names.table} stored
      WHERE stored.position >= lowest AND stored.added > oldest
      ORDER BY ${distance(names, 'query')} LIMIT amount
    );
    -- It gives up after some thousands that do not count any more and are not swept yet.
    IF cardinality(positions) = amount THEN
      RETURN QUERY
      SELECT -${distance(names, 'query')}, stored.label FROM ${names.table} stored
      WHERE stored.position = ANY(positions)
      ORDER BY ${exactDistance(names, 'query')}, stored.position;
      RETURN;
    END IF;
  END IF;
  RETURN QUERY
  SELECT -${distance(names, 'query')}, stored.label FROM ${names.table} stored
  WHERE stored.position >= lowest AND stored.added > oldest
  ORDER BY ${exactDistance(names, 'query')}, stored.position LIMIT amount;
END
${names.quote};
`;

/** @param {Names} names */
const sizeFunction = (names) => `
CREATE FUNCTION ${names.size}(${declared(PARAMETERS.size)}) RETURNS bigint
${ATTRIBUTES} AS ${names.quote}
DECLARE
  known record;
  oldest timestamptz;
BEGIN${checkVersion(names)}
  oldest := ${oldestAt()};
  RETURN (
    SELECT count(*) FROM ${names.table} stored
    WHERE stored.position >= known.next_position - known.max_elements AND stored.added > oldest
  );
END
${names.quote};
`;

/**
 * Deletes displaced and expired vectors among the `amount` oldest, and returns their number; null if another call is sweeping. Vectors
 * expire in the order of positions, so only the oldest are checked.
 *
 * @param {Names} names
 * @param {string} [sweepMore] a statement that deletes what else belongs to them
 */
const sweepFunction = (names, sweepMore = '') => `
CREATE FUNCTION ${names.sweep}(${declared(PARAMETERS.sweep)}) RETURNS bigint
${ATTRIBUTES} AS ${names.quote}
DECLARE
  known record;
  oldest timestamptz;
  deleted bigint;
BEGIN${checkVersion(names)}
  oldest := ${oldestAt()};
  -- The lock of this store: the object id of its table.
  IF NOT pg_try_advisory_xact_lock(${SWEEP_LOCK}, ${names.tableLiteral}::regclass::oid::bigint::bit(32)::integer) THEN
    RETURN NULL;
  END IF;
  DELETE FROM ${names.table} leaving USING (
    SELECT stored.position, stored.added FROM ${names.table} stored ORDER BY stored.position LIMIT amount
  ) first
  WHERE leaving.position = first.position
    AND (first.position < known.next_position - known.max_elements OR first.added <= oldest);
  GET DIAGNOSTICS deleted = ROW_COUNT;${sweepMore}
  RETURN deleted;
END
${names.quote};
`;

/** The first half of our advisory lock keys: the letters `kpns`. */
const SWEEP_LOCK = 0x6b706e73;

/** @param {Names} names */
const functions = (names) =>
  [findFunction, lookFunction, lookAllFunction, addFunction, nearestFunction, sizeFunction]
    .map((make) => make(names))
    .concat(sweepFunction(names))
    .join('');

module.exports = {
  ATTRIBUTES,
  EXPECTED,
  ORIGIN,
  PARAMETERS,
  checkOrigin,
  checkTime,
  checkVersion,
  findFunction,
  functions,
  oldestAt,
  sizeFunction,
  sweepFunction,
};
