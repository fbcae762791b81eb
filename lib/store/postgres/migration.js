'use strict';

// Creates and checks the tables, functions and index of a store.

const vectors = require('./functions.js');
const schema = require('./schema.js');
const {
  StatementFailure,
  extensionError,
  openConnection,
  otherLimits,
  otherMethod,
  schemaError,
} = require('./statement.js');
const traces = require('./traces-sql.js');

const { SCHEMA_VERSION, quoted } = schema;

/**
 * @import { PgClient, PgPool } from '../../../postgres.js'
 * @import { Names } from './schema.js'
 * @import { Settings } from './table.js'
 */

/** The longest delay of a timer, 24 days, as a migration has no time limit. */
const NO_TIME_LIMIT_MS = 2 ** 31 - 1;

/** Columns of every version's tables. A table without them belongs to another application. */
const OWN_COLUMNS = {
  meta: ['id', 'version', 'model', 'dtype', 'next_position'],
  table: ['position', 'added', 'embedding', 'label'],
  words: ['word', 'block', 'data'],
  summary: ['id', 'position', 'data', 'making'],
};

/** The default limits of a new table. */
const DEFAULT_LIMITS = { maxElements: 100_000, ttlMs: Number.POSITIVE_INFINITY };

/** The lock of `migrate`, one for the database, because the extension belongs to the database. */
const MIGRATE_LOCK = '7741340157230116965';

/**
 * Creates the missing objects of a store.
 *
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

/** The settings by which PostgreSQL would end a long migration. */
const TIME_LIMITS = [
  ...['statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout'],
];

/** Creates the missing objects of a store. */
class Migration {
  #client;
  #settings;
  /**
   * Returns the first schema in the search path of the connection; null without one.
   *
   * @type {string | null}
   */
  #firstSchema = null;

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
    const isComplete = await this.#inTransaction(async () => {
      await this.#requireUtf8();
      return this.#isComplete();
    });
    if (isComplete) return;
    // In a second transaction: the first one's locks on the tables would block another migration that holds the lock.
    await this.#inTransaction(async () => {
      // Only settings of this server version.
      await this.#query("SELECT set_config(name, '0', true) FROM pg_settings WHERE name = ANY($1)", [
        TIME_LIMITS,
      ]);
      await this.#query('SELECT pg_advisory_xact_lock($1)', [MIGRATE_LOCK]);
      if (!(await this.#isComplete())) await this.#make();
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
    const [[firstSchema]] = await this.#query('SELECT pg_catalog.current_schema()');
    this.#firstSchema = firstSchema;
    await this.#query('SET LOCAL search_path = pg_catalog, pg_temp');
    const result = await run();
    await this.#query('COMMIT');
    return result;
  }

  async #requireUtf8() {
    const [[encoding]] = await this.#query("SELECT current_setting('server_encoding')");
    if (encoding === 'UTF8') return;
    throw schemaError(
      `the database has the encoding ${encoding}, in which not all labels can be stored, not UTF8`,
    );
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
    if (Number(version) !== SCHEMA_VERSION) {
      throw schemaError(
        `the tables of ${table} are of version ${version ?? 'unknown'}, and this package knows ${SCHEMA_VERSION}; ` +
          'install the version of the package that made them, or name another table',
      );
    }
    await this.#checkMethod(meta);
    for (const part of /** @type {const} */ (['table', ...this.#parts.tables])) {
      if (found.has(part)) await this.#refuseForeign(namespace, part);
    }
    await this.#checkLimits(meta);
    const { tables, indexes, functions } = this.#parts;
    const [[number]] = await this.#query(
      'SELECT count(DISTINCT proname) FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname = ANY($2)',
      [quoted(namespace), functions.map((name) => table + schema.SUFFIXES[name])],
    );
    return (
      ['table', ...tables, ...Object.keys(indexes)].every((part) => found.has(part)) &&
      Number(number) === functions.length &&
      (index === 'exact' || found.has('hnsw'))
    );
  }

  get #parts() {
    return schema.PARTS[this.#settings.novelty === 'prefix' ? 'vectors' : 'traces'];
  }

  /**
   * Refuses tables of another method. Tables of traces have a method from the beginning, tables of vectors from the first addition.
   *
   * @param {string} meta
   */
  async #checkMethod(meta) {
    const { novelty } = this.#settings;
    const [[method] = [null]] = await this.#query(`SELECT method FROM ${meta} WHERE id = 1`);
    const isOfTraces = schema.TRACE_METHODS.includes(method);
    if (novelty === 'prefix' ? isOfTraces : method !== novelty) {
      throw otherMethod(
        `the tables of ${this.#settings.table} are of novelty '${method ?? 'prefix'}', not of '${novelty}'`,
      );
    }
  }

  /**
   * Refuses a relation of another application under the name of one of our tables.
   *
   * @param {string} namespace
   * @param {keyof typeof OWN_COLUMNS} part
   */
  async #refuseForeign(namespace, part) {
    const name = this.#settings.table + schema.SUFFIXES[part];
    const relation = await this.#describe(namespace, name);
    const isOurs =
      relation.kind === 'table' && OWN_COLUMNS[part].every((column) => relation.columns.includes(column));
    if (!isOurs) throw foreign(relation);
  }

  /**
   * Returns the relation of a name.
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
   * Returns the schema of the tables. A missing one is not created, because a mistyped name would give an empty memory.
   *
   * @returns {Promise<string>}
   */
  async #namespace() {
    const { schema: named } = this.#settings;
    if (named === undefined) {
      if (this.#firstSchema !== null) return this.#firstSchema;
      throw schemaError('the search path has no schema to make tables in; name one');
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
   * Returns the store's existing tables and indexes in a schema.
   *
   * @param {string} namespace
   */
  async #relations(namespace) {
    const { table, index } = this.#settings;
    const { tables, indexes } = this.#parts;
    /** @type {Record<string, string>} */
    const methods = { ...indexes, ...(index === 'hnsw' ? { hnsw: 'hnsw' } : {}) };
    /** @type {Record<string, string>} */
    const names = { table };
    for (const part of /** @type {const} */ (['meta', ...tables]))
      names[part] = table + schema.SUFFIXES[part];
    for (const part of Object.keys(methods)) {
      names[part] = table + schema.SUFFIXES[/** @type {keyof typeof schema.SUFFIXES} */ (part)];
    }
    const rows = await this.#query(
      'SELECT c.relname, c.relkind, i.indisvalid, t.relname, m.amname FROM pg_class c ' +
        'LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid ' +
        'LEFT JOIN pg_am m ON m.oid = c.relam WHERE c.relnamespace = $1::regnamespace AND c.relname = ANY($2)',
      [quoted(namespace), Object.values(names)],
    );
    const found = new Map(rows.map(([name, ...what]) => [name, what]));
    for (const [part, method] of Object.entries(methods)) {
      const [kind, isValid, owner, usedMethod] = found.get(names[part]) ?? [];
      if (kind === undefined) continue;
      const expected = part === 'position' ? names.words : table;
      if (kind !== 'i' || owner !== expected || usedMethod !== method) {
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
    const { table, index, limits, novelty } = this.#settings;
    const namespace = await this.#namespace();
    const isOfTraces = novelty !== 'prefix';
    // Traces need no extension.
    const extension = isOfTraces ? '' : quoted(await this.#extension(this.#firstSchema ?? namespace));
    const whole = quoted(namespace, table);
    /** @type {Omit<import('./schema.js').Names, 'quote'>} */
    const others = {
      extension,
      extensionLiteral: literal(extension),
      type: `${extension}.vector`,
      tableLiteral: literal(whole),
      indexName: quoted(table + schema.SUFFIXES.hnsw),
      callIndexName: quoted(table + schema.SUFFIXES.call),
      drawIndexName: quoted(table + schema.SUFFIXES.draw),
      positionIndexName: quoted(table + schema.SUFFIXES.position),
      ...schema.namesOf({ table, schema: namespace }),
    };
    const names = { ...others, quote: dollarQuote(Object.values(others)) };
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
    const relations = await this.#relations(namespace);
    if (index === 'hnsw' && !relations.has('hnsw')) await this.#query(schema.hnswIndex(names));
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
      const limit = { query_timeout: NO_TIME_LIMIT_MS };
      const { rows } = await this.#client.query({ text, values, rowMode: 'array', ...limit });
      return rows;
    } catch (error) {
      throw new StatementFailure(error, 'query');
    }
  }
}

/**
 * The kinds of relations by `pg_class.relkind`.
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

/** The number of columns of a foreign table that the error names. */
const NAMED_COLUMNS = 8;

/**
 * Returns the error for a relation of another application under one of our names.
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

/**
 * Quotes a text as SQL. Backslashes are escaped, in case `standard_conforming_strings` is off.
 *
 * @param {string} text
 */
function literal(text) {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/**
 * Returns a dollar quote for function bodies that no name contains.
 *
 * @param {string[]} names
 */
function dollarQuote(names) {
  let quote = '$function$';
  for (let number = 1; names.some((name) => name.includes(quote)); number++) quote = `$function${number}$`;
  return quote;
}

module.exports = { MIGRATE_LOCK, migrate };
