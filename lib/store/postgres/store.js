'use strict';

// A novelty memory in PostgreSQL, shared by all who use its table. pg-schema.js says how it compares and adds.

const { randomUUID } = require('node:crypto');

const { isAborted, throwIfAborted } = require('../../calls/abort.js');
const {
  invalidOption,
  readCallOptions,
  readChoice,
  readNumber,
  readOption,
  requireNumber,
  requireOptions,
} = require('../../calls/options.js');
const { DIMENSIONS } = require('../../embedding.js');
const { codedError } = require('../../calls/errors.js');
const { custom, inspectAs } = require('../../inspect.js');
const { originOf, readEntries, readEntry, readMethod, readModel, readVector } = require('../entry.js');
const schema = require('./schema.js');
const {
  Failure,
  MIGRATION_MESSAGES,
  isConflict,
  isLost,
  openConnection,
  otherLimits,
  runStatement,
  stopStatement,
  storeError,
} = require('./statement.js');
const { isArray } = require('../../calls/reading.js');

/**
 * @import { AbortSignalLike, AddOptions, CallOptions, NearestOptions, NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour,
 *   VectorModel } from '../../../index.js'
 * @import { PgClient, PgPool, PgVectorStoreLimits, PgVectorStoreOptions } from '../../../pgvector.js'
 */

/** @typedef {{ maxElements: number | null, ttlMs: number | null }} Limits null stands for any */

/** @typedef {ReturnType<typeof readOptions>} Settings */

const { MAX_TTL_MS, SCHEMA_VERSION } = schema;

/** The longest delay of a timer: a longer one would end at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The largest `integer` of PostgreSQL, of which kind the parameter of a LIMIT is. */
const MAX_SQL_INTEGER = 2 ** 31 - 1;

/** At least so much of the time of a call is for its answer to come back. */
const MIN_ANSWER_MS = 20;

/** The shortest time limit: the server gets more of it than its answer, and a call takes some milliseconds of that. */
const MIN_TIMEOUT_MS = 50;

/** The limits of a table that is made without any. */
const DEFAULT_LIMITS = { maxElements: 100_000, ttlMs: Number.POSITIVE_INFINITY };

/** What is stored: embeddings, whose inner product is their cosine. */
const KIND = { dimensions: DIMENSIONS, isUnit: true };

/** So many rows at most are deleted by one statement, whose transaction is short then. */
const SWEEP_ROWS = 10_000;

/**
 * What the server may use of the time that remains, in milliseconds: less than all, so that it gives up first and it is
 * known that nothing was added.
 *
 * @param {number} remaining
 */
function patienceFor(remaining) {
  return remaining - Math.max(MIN_ANSWER_MS, remaining / 10);
}

/**
 * A novelty store in a table of PostgreSQL, which any number of processes share.
 *
 * @implements {NoveltyStore}
 */
class PgVectorStore {
  #pool;
  #settings;
  #names;
  /** The limits that the table is to have; null where any will do. */
  #limits;
  /** @type {NodeJS.Timeout | null} */
  #sweeper = null;
  #closed = false;
  #hasWarned = false;

  /**
   * Makes a store; the database is not asked yet. Throws `ERR_INVALID_OPTION`.
   *
   * @param {PgVectorStoreOptions} options
   */
  constructor(options) {
    this.#settings = readOptions(options);
    this.#pool = this.#settings.pool;
    this.#limits = this.#settings.limits;
    this.#names = namesOf(this.#settings);
    ignoreIdleErrors(this.#pool);
  }

  /**
   * Not the pool, which may know a password.
   *
   * @type {import('../../inspect.js').Inspect}
   */
  [custom](depth, options) {
    const { schema: named, table, index, timeoutMs } = this.#settings;
    const fields = { schema: named, table, index, ...this.#limits, timeoutMs, closed: this.#closed };
    return inspectAs('PgVectorStore', fields, depth, options);
  }

  /**
   * Makes the extension, the tables, the functions and the index, as far as they are not there. Rejects with `ERR_STORE_…`.
   *
   * @returns {Promise<void>}
   */
  async migrate() {
    this.#refuseClosed();
    try {
      await this.#migrate();
    } catch (error) {
      // Someone who does not know our lock made the same thing at the same time.
      const { code } = /** @type {{ code?: string }} */ ((error instanceof Failure && error.error) || {});
      if (!['23505', '42710', '42P07'].includes(code ?? '')) {
        throw storeError(error, MIGRATION_MESSAGES);
      }
      await this.#migrate().catch((second) => {
        throw storeError(second, MIGRATION_MESSAGES);
      });
    }
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
      throwIfAborted(signal);
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
    const { signal, method } = readCallOptions(options, { method: 'string' });
    const { vector: query, length } = readVector(vector, 'vector', DIMENSIONS);
    const { model: name, dtype } = readModel(model, 'model');
    requireNumber(count, 'count', { from: 0, whole: true });
    const { efSearch } = this.#settings;
    const values = [
      ...[...this.#expected(), name, dtype, readMethod(method, 'options.method', 'ERR_INVALID_OPTION')],
      ...[vectorLiteral(query), Math.min(count, MAX_SQL_INTEGER)],
      efSearch && Math.max(efSearch, Math.min(count, MAX_EF_SEARCH)),
    ];
    const text = `SELECT similarity, nearest_label FROM ${this.#names.nearest}($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
    const rows = await this.#ask(text, values, signal);
    // A vector without length resembles nothing.
    return rows.map(([similarity, label]) => ({
      label: /** @type {string | null} */ (label),
      similarity: length === 0 ? 0 : Number(similarity) / length,
    }));
  }

  /**
   * How many vectors count.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async size(options) {
    const { signal } = readCallOptions(options);
    const text = `SELECT ${this.#names.size}($1, $2, $3)`;
    const [[size]] = await this.#ask(text, this.#expected(), signal);
    return Number(size);
  }

  /**
   * Deletes what no longer counts, and returns how many vectors that were.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async sweep(options) {
    const { signal } = readCallOptions(options);
    const text = `SELECT ${this.#names.sweep}($1, $2, $3, $4)`;
    for (let total = 0; ; ) {
      const [[deleted]] = await this.#ask(text, [...this.#expected(), SWEEP_ROWS], signal);
      // Null: another process is at it.
      total += Number(deleted);
      if (Number(deleted) < SWEEP_ROWS) return total;
    }
  }

  /**
   * Changes the limits of the table, for all who share it, and returns all of them.
   *
   * @param {Partial<PgVectorStoreLimits>} limits
   * @param {CallOptions} [options]
   * @returns {Promise<PgVectorStoreLimits>}
   */
  async setLimits(limits, options) {
    const { signal } = readCallOptions(options);
    const given = requireOptions(limits, ['maxElements', 'ttlMs'], 'limits');
    const { maxElements, ttlMs } = readLimits(given, 'limits');
    const rows = await this.#ask(schema.setLimits(this.#names), [SCHEMA_VERSION, maxElements, ttlMs], signal);
    if (rows.length === 0) throw schemaError('the table is of another version; call migrate()');
    const [[newElements, newTtl]] = rows;
    // Whoever wants certain limits gets to know when they change, also by a later call.
    if (maxElements !== null || this.#limits.maxElements !== null)
      this.#limits.maxElements = Number(newElements);
    if (ttlMs !== null || this.#limits.ttlMs !== null) this.#limits.ttlMs = Number(newTtl);
    return { maxElements: Number(newElements), ttlMs: Number(newTtl) };
  }

  /**
   * Stops the sweeps; calls reject from now on. The pool is the caller's to end.
   *
   * @returns {void}
   */
  close() {
    this.#closed = true;
    clearTimeout(this.#sweeper ?? undefined);
    this.#sweeper = null;
  }

  /**
   * @param {NoveltyEntry[]} entries
   * @param {ReturnType<typeof readAddOptions>} options
   */
  async #compareAndAdd(entries, { signal, call = randomUUID() }) {
    const { model: identity, method } = originOf(entries);
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
        vectors.push(vectorLiteral(vector));
        labels.push(label);
        befores.push(before);
      }
    }
    const { efSearch } = this.#settings;
    const text =
      'SELECT similarity, nearest_label ' +
      `FROM ${this.#names.add}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;
    const valuesAt = (/** @type {number} */ remaining) => [
      ...[...this.#expected(), identity.model, identity.dtype, method, call, vectors, labels, befores],
      ...[efSearch, patienceFor(remaining)],
    ];
    // Not that of the call: what stops this attempt may come late, and is not to meet the next.
    const tag = `knowledgepulse ${randomUUID()}`;
    const rows = await this.#run({ text, valuesAt, tag }, signal);
    this.#scheduleSweep();
    const found = rows.map(([similarity, label]) =>
      similarity === null
        ? null
        : { label: /** @type {string | null} */ (label), similarity: Number(similarity) },
    );
    return entries.map((entry) => found.splice(0, entry.vectors.length));
  }

  /** What the functions take first. */
  #expected() {
    const { maxElements, ttlMs } = this.#limits;
    return [SCHEMA_VERSION, maxElements, ttlMs];
  }

  #refuseClosed() {
    if (this.#closed) throw codedError(Error, 'ERR_STORE_UNAVAILABLE', 'the store is closed');
  }

  /**
   * @param {string} text
   * @param {unknown[]} values
   * @param {AbortSignalLike | undefined} signal
   */
  #ask(text, values, signal) {
    return this.#run({ text, valuesAt: () => values, tag: `knowledgepulse ${randomUUID()}` }, signal);
  }

  /**
   * Runs a statement that does nothing more when it is run twice: again within the time after conflicts, and once after
   * the connection was lost, as the idle ones of a pool are when the server restarts.
   *
   * @param {{ text: string, valuesAt: (remaining: number) => unknown[], tag: string }} statement
   * @param {AbortSignalLike | undefined} signal
   */
  async #run({ text, valuesAt, tag }, signal) {
    throwIfAborted(signal);
    this.#refuseClosed();
    const deadline = performance.now() + this.#settings.timeoutMs;
    const statement = { text, valuesAt: (/** @type {number} */ now) => valuesAt(deadline - now), tag };
    let lost = 0;
    for (let conflicts = 0; ; ) {
      try {
        return await runStatement(this.#pool, statement, { deadline, signal });
      } catch (failure) {
        if (!(failure instanceof Failure)) throw failure;
        if (isConflict(failure)) {
          conflicts++;
          throwIfAborted(signal);
        } else if (isLost(failure)) {
          lost++;
          // The server may not have noticed, and still be at it.
          const stopping = stopStatement(this.#pool, tag, deadline);
          if (lost > 1) throw storeError(failure);
          await stopping;
          // What became of the first attempt is not known, so this is no cancelled call.
          if (signal !== undefined && isAborted(signal)) throw storeError(failure);
        } else throw storeError(failure);
        const pause = Math.random() * Math.min(100, 5 * 2 ** conflicts);
        if (performance.now() + pause >= deadline) throw storeError(failure);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  /** Sweeps now and then while something is added; processes that start together do not sweep together. */
  #scheduleSweep() {
    const { sweepIntervalMs } = this.#settings;
    if (this.#sweeper !== null || this.#closed || sweepIntervalMs === Number.POSITIVE_INFINITY) return;
    const delay = Math.min(sweepIntervalMs * (0.5 + Math.random()), MAX_TIMER_MS);
    this.#sweeper = setTimeout(async () => {
      try {
        await this.sweep();
      } catch (error) {
        this.#warn(error);
      } finally {
        this.#sweeper = null;
      }
    }, delay);
    this.#sweeper.unref();
  }

  /**
   * Says once that sweeps fail, unless it will pass: nothing wrong comes of it, but the table grows.
   *
   * @param {unknown} error
   */
  #warn(error) {
    const { code, message } = /** @type {import('../../calls/errors.js').CodedError} */ (error);
    const passes = ['ERR_STORE_UNAVAILABLE', 'ERR_STORE_TIMEOUT'].includes(code);
    if (passes || this.#closed || this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(`Old vectors of the store could not be deleted: ${message}`, {
      type: 'KnowledgePulseWarning',
      code,
    });
  }

  async #migrate() {
    const { client, release } = await openConnection(this.#pool);
    let isBroken = true;
    try {
      await new Migration(client, this.#settings).run();
      isBroken = false;
    } finally {
      // A failed transaction may still be open: the connection is closed and ends it.
      release(isBroken);
    }
  }
}

const ignore = () => {};
const MAX_EF_SEARCH = 1000;

/** The settings by which PostgreSQL would end a migration that takes its time. */
const TIME_LIMITS = [
  ...['statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout'],
];

/** Makes what a store needs, as far as it is not there. */
class Migration {
  #client;
  #settings;

  /**
   * @param {PgClient} client
   * @param {Settings} settings
   */
  constructor(client, settings) {
    this.#client = client;
    this.#settings = settings;
  }

  async run() {
    const [[encoding]] = await this.#query("SELECT current_setting('server_encoding')");
    if (encoding !== 'UTF8') {
      throw schemaError(
        `the database has the encoding ${encoding}, in which not all labels can be stored, not UTF8`,
      );
    }
    // Whoever may not make anything can still call this where there is nothing to make.
    if (await this.#isComplete()) return;
    await this.#query('BEGIN ISOLATION LEVEL READ COMMITTED');
    // Those that are known to the version of the server.
    await this.#query("SELECT set_config(name, '0', true) FROM pg_settings WHERE name = ANY($1)", [
      TIME_LIMITS,
    ]);
    await this.#query('SELECT pg_advisory_xact_lock($1)', [schema.MIGRATE_LOCK]);
    if (!(await this.#isComplete())) await this.#make();
    await this.#query('COMMIT');
  }

  async #isComplete() {
    const { table, index } = this.#settings;
    const namespace = await this.#namespace();
    const found = await this.#relations(namespace);
    if (!found.has('meta')) {
      if (found.has('table')) throw foreign(await this.#describe(namespace, table));
      return false;
    }
    await this.#refuseForeign(namespace, 'meta');
    const meta = quoted(namespace, table + schema.SUFFIXES.meta);
    const [[version] = [null]] = await this.#query(`SELECT version FROM ${meta} WHERE id = 1`);
    const isOlder = Number(version) === schema.OLDER_VERSION;
    if (!isOlder && Number(version) !== SCHEMA_VERSION) {
      throw schemaError(
        `the tables of ${table} are of version ${version ?? 'unknown'}, and this package knows ${SCHEMA_VERSION}; ` +
          'install the version of the package that made them, or name another table',
      );
    }
    if (found.has('table')) await this.#refuseForeign(namespace, 'table');
    await this.#checkLimits(meta);
    if (isOlder) return false;
    const [[functions]] = await this.#query(
      'SELECT count(DISTINCT proname) FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname = ANY($2)',
      [quoted(namespace), schema.FUNCTIONS.map((name) => table + schema.SUFFIXES[name])],
    );
    return (
      found.has('table') &&
      found.has('call') &&
      Number(functions) === schema.FUNCTIONS.length &&
      (index === 'exact' || found.has('hnsw'))
    );
  }

  /**
   * Refuses what has the name of one of our tables and is none.
   *
   * @param {string} namespace
   * @param {keyof typeof schema.OWN_COLUMNS} part
   */
  async #refuseForeign(namespace, part) {
    const name = this.#settings.table + (part === 'table' ? '' : schema.SUFFIXES[part]);
    const relation = await this.#describe(namespace, name);
    const isOurs =
      relation.kind === 'table' &&
      schema.OWN_COLUMNS[part].every((column) => relation.columns.includes(column));
    if (!isOurs) throw foreign(relation);
  }

  /**
   * What it is that has a name.
   *
   * @param {string} namespace
   * @param {string} name
   */
  async #describe(namespace, name) {
    const rows = await this.#query(
      'SELECT c.relkind, a.attname FROM pg_class c LEFT JOIN pg_attribute a ' +
        'ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ' +
        'WHERE c.relnamespace = $1::regnamespace AND c.relname = $2 ORDER BY a.attnum',
      [quoted(namespace), name],
    );
    const columns = rows.map(([, column]) => column).filter((column) => column !== null);
    return { name: `${namespace}.${name}`, kind: RELATION_KINDS[rows[0]?.[0]] ?? 'relation', columns };
  }

  /** @param {string} meta */
  async #checkLimits(meta) {
    const { maxElements, ttlMs } = this.#settings.limits;
    const [[elements, ttl]] = await this.#query(`SELECT max_elements, ttl_ms FROM ${meta} WHERE id = 1`);
    const limits = { maxElements: Number(elements), ttlMs: Number(ttl) };
    const expected = { maxElements: maxElements ?? limits.maxElements, ttlMs: ttlMs ?? limits.ttlMs };
    if (expected.maxElements !== limits.maxElements || expected.ttlMs !== limits.ttlMs) {
      throw otherLimits(
        `the table has maxElements ${limits.maxElements} and ttlMs ${limits.ttlMs}, not ${expected.maxElements} and ${expected.ttlMs}`,
      );
    }
  }

  /**
   * The schema of the tables. One that is missing is not made: mistyped, it would be an empty memory.
   *
   * @returns {Promise<string>}
   */
  async #namespace() {
    const { schema: named } = this.#settings;
    if (named === undefined) {
      const [[current]] = await this.#query('SELECT current_schema()');
      if (current === null) throw schemaError('the search path has no schema to make tables in; name one');
      return current;
    }
    const found = await this.#query('SELECT nspname FROM pg_namespace WHERE nspname = $1', [named]);
    if (found.length === 0) {
      throw schemaError(
        `there is no schema ${named}; make it with CREATE SCHEMA ${quoted(named)}, or name another`,
      );
    }
    return named;
  }

  /**
   * Which of the store's tables and indexes are in a schema.
   *
   * @param {string} namespace
   */
  async #relations(namespace) {
    const { table, index } = this.#settings;
    /** @type {Record<string, string>} */
    const names = { table, meta: table + schema.SUFFIXES.meta, call: table + schema.SUFFIXES.call };
    if (index === 'hnsw') names.hnsw = table + schema.SUFFIXES.hnsw;
    const rows = await this.#query(
      'SELECT c.relname, c.relkind, i.indisvalid, t.relname, m.amname FROM pg_class c ' +
        'LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid ' +
        'LEFT JOIN pg_am m ON m.oid = c.relam WHERE c.relnamespace = $1::regnamespace AND c.relname = ANY($2)',
      [quoted(namespace), Object.values(names)],
    );
    const found = new Map(rows.map(([name, ...what]) => [name, what]));
    for (const [part, method] of [
      ['call', 'btree'],
      ['hnsw', 'hnsw'],
    ]) {
      const [kind, isValid, owner, usedMethod] = found.get(names[part]) ?? [];
      if (kind === undefined) continue;
      if (kind !== 'i' || owner !== table || usedMethod !== method) {
        throw schemaError(
          `${names[part]} is not the index of ${table} that it should be; name another table`,
        );
      }
      if (!isValid) {
        throw schemaError(
          `the index ${names[part]} is not valid: it is still being built, or that has failed; drop it then, and call migrate() again`,
        );
      }
    }
    return new Set(Object.keys(names).filter((part) => found.has(names[part])));
  }

  async #make() {
    const { table, index, limits } = this.#settings;
    const namespace = await this.#namespace();
    const extension = quoted(await this.#extension());
    const whole = quoted(namespace, table);
    /** @type {Omit<import('./schema.js').Names, 'quote'>} */
    const others = {
      extension,
      extensionLiteral: literal(extension),
      type: `${extension}.vector`,
      table: whole,
      tableLiteral: literal(whole),
      indexName: quoted(table + schema.SUFFIXES.hnsw),
      callIndexName: quoted(table + schema.SUFFIXES.call),
      ...namesOf({ table, schema: namespace }),
    };
    const names = { ...others, quote: dollarQuote(Object.values(others)) };
    await this.#query(schema.tables(names));
    const [[version] = []] = await this.#query(`SELECT version FROM ${names.meta} WHERE id = 1`);
    if (Number(version) === schema.OLDER_VERSION) await this.#query(schema.upgrade(names));
    await this.#query(schema.metaRow(names), [
      limits.maxElements ?? DEFAULT_LIMITS.maxElements,
      limits.ttlMs ?? DEFAULT_LIMITS.ttlMs,
    ]);
    await this.#query(schema.functions(names));
    const relations = await this.#relations(namespace);
    if (index === 'hnsw' && !relations.has('hnsw')) await this.#query(schema.hnswIndex(names));
  }

  /** Sees to it that pgvector is there; returns the schema that it is in. */
  async #extension() {
    let found = await this.#installedExtension();
    if (found === undefined) {
      await this.#query('CREATE EXTENSION IF NOT EXISTS vector');
      found = await this.#installedExtension();
    }
    const [namespace, version] = found;
    const [major, minor] = version.split('.').map(Number);
    // The first with iterative scans, without which expired vectors hide others.
    if (this.#settings.index === 'hnsw' && major === 0 && minor < 8) {
      throw schemaError(
        `index 'hnsw' needs pgvector 0.8 or newer, and the database has ${version}; ALTER EXTENSION vector UPDATE, or index 'exact'`,
      );
    }
    return namespace;
  }

  async #installedExtension() {
    const [found] = await this.#query(
      "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    );
    return found;
  }

  /**
   * @param {string} text
   * @param {unknown[]} [values]
   * @returns {Promise<any[][]>} rows of texts and nulls
   */
  async #query(text, values) {
    try {
      // The time limit of the pool is for calls.
      const limit = { query_timeout: MAX_TIMER_MS };
      const { rows } = await this.#client.query({ text, values, rowMode: 'array', ...limit });
      return rows;
    } catch (error) {
      throw new Failure(error, 'query');
    }
  }
}

/**
 * What PostgreSQL keeps under the names of tables, by `pg_class.relkind`.
 *
 * @type {Record<string, string>}
 */
const RELATION_KINDS = {
  r: 'table',
  p: 'partitioned table',
  f: 'foreign table',
  v: 'view',
  m: 'materialized view',
  S: 'sequence',
  i: 'index',
  I: 'partitioned index',
  c: 'type',
};

/** So many columns tell what a table is. */
const NAMED_COLUMNS = 8;

/**
 * The error for something that has a name of ours and belongs to somebody else.
 *
 * @param {{ name: string, kind: string, columns: string[] }} relation
 */
function foreign({ name, kind, columns }) {
  const article = kind === 'index' ? 'an' : 'a';
  const shown = columns.slice(0, NAMED_COLUMNS).join(', ');
  const more = columns.length > NAMED_COLUMNS ? ` and ${columns.length - NAMED_COLUMNS} more` : '';
  const having = columns.length === 0 ? 'without columns' : `with the columns ${shown}${more}`;
  const what = ['sequence', 'index', 'partitioned index'].includes(kind) ? kind : `${kind} ${having}`;
  return schemaError(`${name} is ${article} ${what}, and belongs to no store; name another table`);
}

/** @param {string} message */
function schemaError(message) {
  return codedError(Error, 'ERR_STORE_SCHEMA', message);
}

/**
 * A name as SQL: whatever is in it is a part of it.
 *
 * @param {string[]} parts
 */
function quoted(...parts) {
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.');
}

/**
 * A text as SQL. Backslashes count as in the standard only with `standard_conforming_strings`, so they are escaped.
 *
 * @param {string} text
 */
function literal(text) {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/**
 * What the bodies of functions stand between: nothing that is part of a name in them.
 *
 * @param {string[]} names
 */
function dollarQuote(names) {
  let quote = '$function$';
  for (let number = 1; names.some((name) => name.includes(quote)); number++) quote = `$function${number}$`;
  return quote;
}

/**
 * The names that the statements call, of which the search path says where they are if no schema was named.
 *
 * @param {Pick<Settings, 'table' | 'schema'>} settings
 * @returns {import('./schema.js').CalledNames}
 */
function namesOf({ table, schema: named }) {
  const prefix = named === undefined ? [] : [named];
  const entries = /** @type {const} */ (['meta', ...schema.FUNCTIONS]).map((name) => [
    name,
    quoted(...prefix, table + schema.SUFFIXES[name]),
  ]);
  return /** @type {import('./schema.js').CalledNames} */ (Object.fromEntries(entries));
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
 * Pools that have a listener of ours.
 *
 * @type {WeakSet<object>}
 */
const listening = new WeakSet();

/**
 * A connection that breaks while it idles in the pool would end the process if nobody listened; the pool drops it.
 *
 * @param {PgPool & { on?: (event: 'error', listener: () => void) => unknown }} pool
 */
function ignoreIdleErrors(pool) {
  if (listening.has(pool) || typeof pool.on !== 'function') return;
  listening.add(pool);
  pool.on('error', ignore);
}

/**
 * PostgreSQL has no character for NUL, and none for half a surrogate pair.
 *
 * @param {string | null} id
 */
function storable(id) {
  return id?.replace(/\0|\p{Surrogate}/gu, '\uFFFD') ?? null;
}

const OPTIONS = [
  ...['pool', 'table', 'schema', 'maxElements', 'ttlMs', 'index', 'efSearch', 'timeoutMs', 'sweepIntervalMs'],
];

/** @param {unknown} options */
function readOptions(options) {
  if (options === null || typeof options !== 'object' || isArray(options)) {
    throw invalidOption(TypeError, 'options must be an object with a pool');
  }
  requireOptions(options, OPTIONS);
  const pool = readOption(options, 'pool');
  if (!isPool(pool)) {
    throw invalidOption(TypeError, 'options.pool must be a Pool of the package pg');
  }
  const index = readChoice(options, 'index', ['exact', 'hnsw']) ?? 'exact';
  const efSearch = readNumber(options, 'efSearch', { from: 1, to: MAX_EF_SEARCH, whole: true }) ?? 100;
  return {
    pool,
    index,
    table: readName(options, 'table', schema.MAX_NAME_BYTES) ?? 'knowledgepulse_novelty',
    schema: readName(options, 'schema', 63),
    limits: readLimits(options),
    efSearch: index === 'hnsw' ? efSearch : null,
    timeoutMs: readNumber(options, 'timeoutMs', { from: MIN_TIMEOUT_MS, to: MAX_TIMER_MS }) ?? 5000,
    sweepIntervalMs: readNumber(options, 'sweepIntervalMs', { from: 1 }) ?? 60_000,
  };
}

/**
 * A connection has both methods too, and a pool may be anything that hands out connections.
 *
 * @param {unknown} value
 * @returns {value is PgPool}
 */
function isPool(value) {
  try {
    const { connect, query, totalCount } = /** @type {Record<string, unknown>} */ (value);
    const isConnection = typeof query === 'function' && totalCount === undefined;
    return typeof value === 'object' && typeof connect === 'function' && !isConnection;
  } catch {
    return false;
  }
}

/**
 * The limits that are named; null for those that are not.
 *
 * @param {object} options
 * @param {string} [path]
 * @returns {Limits}
 */
function readLimits(options, path = 'options') {
  const ttlMs = readNumber(options, 'ttlMs', { from: 0 }, path) ?? null;
  return {
    maxElements: readNumber(options, 'maxElements', { from: 1, whole: true }, path) ?? null,
    ttlMs: ttlMs !== null && ttlMs > MAX_TTL_MS ? Number.POSITIVE_INFINITY : ttlMs,
  };
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** @param {unknown} options */
function readAddOptions(options) {
  const read = readCallOptions(options, { call: 'string' });
  if (read.call !== undefined && !UUID.test(read.call)) {
    throw invalidOption(RangeError, 'options.call must be a UUID');
  }
  return read;
}

/**
 * @param {object} options
 * @param {string} name
 * @param {number} maxBytes
 */
function readName(options, name, maxBytes) {
  const value = readOption(options, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw invalidOption(TypeError, `options.${name} must be a string`);
  if (value === '' || /\0|\p{Surrogate}/u.test(value) || Buffer.byteLength(value) > maxBytes) {
    throw invalidOption(RangeError, `options.${name} must be a name of 1 to ${maxBytes} bytes`);
  }
  return value;
}

module.exports = { PgVectorStore };
