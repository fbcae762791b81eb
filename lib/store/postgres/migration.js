'use strict';

// Creates and checks the tables, functions and index of a store.

const { randomBytes } = require('node:crypto');

const vectors = require('./functions.js');
const schema = require('./schema.js');
const {
  MAX_TIMER_MS,
  StatementFailure,
  detected,
  extensionError,
  openConnection,
  schemaError,
  types,
} = require('./statement.js');
const traces = require('./traces-sql.js');

const { SCHEMA_VERSION, quoted } = schema;

/**
 * @import { PgClient, PgPool } from '../../../postgres.js'
 * @import { Settings } from './store.js'
 */

/** The settings by which PostgreSQL would end a long migration. */
const TIME_LIMITS = [
  'statement_timeout',
  'lock_timeout',
  'transaction_timeout',
  'idle_in_transaction_session_timeout',
];

/** The default limits of a new table. */
const DEFAULT_LIMITS = { maxElements: 100_000, ttlMs: Number.POSITIVE_INFINITY };

/** The lock of `migrate`, one for the database, because the extension belongs to the database. */
const MIGRATE_LOCK = '7741340157230116965';

/**
 * @param {PgPool} pool
 * @param {Settings} settings
 */
async function migrate(pool, settings) {
  const { client, release } = await openConnection(pool);
  let isBroken = true;
  try {
    await new Migration(client, settings).run();
    isBroken = false;
  } finally {
    // A failed transaction may be open; closing the connection ends it.
    release(isBroken);
  }
}

/** The state of a store's objects. Tables and functions are created in one transaction, an index later too. */
class Migration {
  #client;
  #settings;
  #namespace = '';
  /** The first schema in the search path of the connection; null without one. */
  #firstSchema = /** @type {string | null} */ (null);

  /**
   * @param {PgClient} client
   * @param {Settings} settings
   */
  constructor(client, settings) {
    this.#client = client;
    this.#settings = settings;
  }

  async run() {
    // Users without CREATE may call this when everything exists.
    const missing = await this.#inTransaction(() => this.#findMissing());
    if (missing === null) return;
    // In a second transaction: the first one's locks on the tables would block another migration that holds the lock.
    await this.#inTransaction(async () => {
      // Only settings of this server version.
      await this.#query("SELECT set_config(name, '0', true) FROM pg_settings WHERE name = ANY($1)", [
        TIME_LIMITS,
      ]);
      await this.#query('SELECT pg_advisory_xact_lock($1)', [MIGRATE_LOCK]);
      const still = await this.#findMissing();
      if (still !== null) await this.#make(still);
    });
  }

  /**
   * Runs statements in a transaction whose search path has PostgreSQL's own objects only.
   *
   * @template T
   * @param {() => Promise<T>} run
   */
  async #inTransaction(run) {
    await this.#query('BEGIN ISOLATION LEVEL READ COMMITTED');
    [[this.#firstSchema]] = await this.#query('SELECT pg_catalog.current_schema()');
    await this.#query('SET LOCAL search_path = pg_catalog, pg_temp');
    this.#namespace = await this.#findNamespace();
    const result = await run();
    await this.#query('COMMIT');
    return result;
  }

  /**
   * Returns the schema of the tables. A missing one is not created, because a mistyped name would give an empty memory.
   *
   * @returns {Promise<string>}
   */
  async #findNamespace() {
    const { schema: named } = this.#settings;
    if (named === undefined) {
      if (this.#firstSchema !== null) return this.#firstSchema;
      throw schemaError('the search path has no schema to make tables in; name one');
    }
    const found = await this.#query('SELECT nspname FROM pg_namespace WHERE nspname = $1', [named]);
    if (found.length > 0) return named;
    throw schemaError(
      `there is no schema ${named}; make it with CREATE SCHEMA ${quoted(named)}, or name another`,
    );
  }

  get #names() {
    return schema.namesOf({ table: this.#settings.table, schema: this.#namespace });
  }

  /**
   * Returns what is missing: everything, the index, or null. Refuses tables of another version, of another method or with other limits.
   *
   * @returns {Promise<'all' | 'index' | null>}
   */
  async #findMissing() {
    const { table, index, limits, novelty } = this.#settings;
    const { meta } = this.#names;
    // By a query of the catalog, because `to_regclass` may know from before the lock that there is none.
    const [[encoding, isMade]] = await this.#query(
      "SELECT current_setting('server_encoding'), (SELECT 1 FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = $2)",
      [quoted(this.#namespace), table + schema.SUFFIXES.meta],
    );
    if (encoding !== 'UTF8') {
      throw schemaError(
        `the database has the encoding ${encoding}, in which not all labels can be stored, not UTF8`,
      );
    }
    if (isMade === null) return 'all';
    const [[version = null, method, elements, ttl] = []] = await this.#query(
      `SELECT version, method, max_elements, ttl_ms FROM ${meta} WHERE id = 1`,
    );
    if (Number(version) !== SCHEMA_VERSION) {
      throw schemaError(
        `the tables of ${table} are of version ${version ?? 'unknown'}, and this package knows ${SCHEMA_VERSION}; ` +
          'install the version of the package that made them, or name another table',
      );
    }
    // Tables of traces have a method from the beginning, tables of vectors from the first addition.
    if (novelty === 'prefix' ? ['lexical', 'full'].includes(method) : method !== novelty) {
      throw detected(
        'ERR_STORE_OTHER_METHOD',
        `the tables of ${table} are of novelty '${method ?? 'prefix'}', not of '${novelty}'`,
      );
    }
    const known = { maxElements: Number(elements), ttlMs: Number(ttl) };
    const expected = {
      maxElements: limits.maxElements ?? known.maxElements,
      ttlMs: limits.ttlMs ?? known.ttlMs,
    };
    if (expected.maxElements !== known.maxElements || expected.ttlMs !== known.ttlMs) {
      throw detected(
        'ERR_STORE_OTHER_LIMITS',
        `the table has maxElements ${known.maxElements} and ttlMs ${known.ttlMs}, not ${expected.maxElements} and ${expected.ttlMs}`,
      );
    }
    return index === 'hnsw' && !(await this.#hasIndex()) ? 'index' : null;
  }

  /** Returns whether the HNSW index exists. Refuses an unusable relation of its name. */
  async #hasIndex() {
    const { table } = this.#settings;
    const name = table + schema.SUFFIXES.hnsw;
    const [found] = await this.#query(
      "SELECT i.indisvalid AND i.indrelid = $3::regclass AND m.amname = 'hnsw' FROM pg_class c " +
        'LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_am m ON m.oid = c.relam ' +
        'WHERE c.relnamespace = $1::regnamespace AND c.relname = $2',
      [quoted(this.#namespace), name, this.#names.table],
    );
    if (found === undefined) return false;
    if (found[0] === 't') return true;
    throw schemaError(
      `${name} is not a valid HNSW index of ${table}: if it is still being built, wait; else drop it and call migrate() again, or name another table`,
    );
  }

  /** @param {'all' | 'index'} missing */
  async #make(missing) {
    const { table, index, limits, novelty } = this.#settings;
    const isOfTraces = novelty !== 'prefix';
    // Traces need no extension.
    const extension = isOfTraces ? '' : quoted(await this.#extension(this.#firstSchema ?? this.#namespace));
    const names = {
      ...this.#names,
      indexes: schema.namesOf({ table }),
      extension,
      extensionLiteral: literal(extension),
      type: `${extension}.vector`,
      tableLiteral: literal(this.#names.table),
      // In no name, because it is random.
      quote: `$f${randomBytes(16).toString('hex')}$`,
    };
    if (missing === 'all') {
      const kind = isOfTraces ? traces : { tables: schema.tables, functions: vectors.functions };
      await this.#query(schema.metaTable(names));
      await this.#query(kind.tables(names));
      await this.#query(schema.metaRow(names), [
        limits.maxElements ?? DEFAULT_LIMITS.maxElements,
        limits.ttlMs ?? DEFAULT_LIMITS.ttlMs,
        // The first addition sets the method of a store of vectors.
        isOfTraces ? novelty : null,
      ]);
      await this.#query(kind.functions(names));
    }
    if (index === 'hnsw') await this.#query(schema.hnswIndex(names));
  }

  /**
   * Creates pgvector if it is missing; returns its schema.
   *
   * @param {string} preferred the schema to create it in
   */
  async #extension(preferred) {
    let found = await this.#installedExtension();
    if (found === undefined) {
      const statement = `CREATE EXTENSION IF NOT EXISTS vector SCHEMA ${quoted(preferred)}`;
      await this.#query(statement).catch((failure) => {
        throw extensionError(failure);
      });
      found = await this.#installedExtension();
    }
    const [namespace, version] = found;
    const [major, minor] = version.split('.').map(Number);
    // The first version with iterative scans, without which expired vectors hide others.
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
      // The pool's time limit does not apply to migrations.
      const config = {
        text,
        values,
        rowMode: /** @type {const} */ ('array'),
        types,
        // The longest there is: a migration has no time limit.
        query_timeout: MAX_TIMER_MS,
      };
      const { rows } = await this.#client.query(config);
      return rows;
    } catch (error) {
      throw new StatementFailure(error, 'query');
    }
  }
}

/**
 * Quotes a text as SQL. Backslashes are escaped, in case `standard_conforming_strings` is off.
 *
 * @param {string} text
 */
function literal(text) {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

module.exports = { MIGRATE_LOCK, migrate };
