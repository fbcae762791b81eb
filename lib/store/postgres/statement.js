'use strict';

// One statement on a connection of a `pg` pool: within a time limit, cancellable, with errors that have our codes.

const { cancellable, onAbort } = require('../../calls/cancel.js');
const { codedError } = require('../../calls/errors.js');
const { RAISED } = require('./schema.js');

/**
 * @import { PgClient, PgPool } from '../../../postgres.js'
 */

/** @typedef {{ client: PgClient, release: (broken?: boolean) => void }} Connection */

/**
 * A statement and its values. These are made before there is a connection: when making them fails, none has to be handed back.
 *
 * @typedef {object} Statement
 * @property {string} text
 * @property {unknown[]} values
 * @property {(remaining: number) => number} [patienceFor] the last value, by the milliseconds that remain when there is a connection
 * @property {string} tag unique to this statement
 */

/** @typedef {ReturnType<typeof startTimer>} Timer */

/** @typedef {{ code?: unknown, severity?: string, message?: string }} DriverError what is read of an error of `pg` */

const ignore = () => {};

/** What a connection is told to send: strings, whatever type parsers the process has registered. */
const types = { getTypeParser: () => (/** @type {unknown} */ value) => value };

/**
 * An error with how it came about: `phase` is `connect` until the statement has been sent, then `query`; or it is
 * `aborted`, and the error the signal's reason.
 */
class StatementFailure {
  /**
   * @param {unknown} error
   * @param {'aborted' | 'connect' | 'query'} phase
   */
  constructor(error, phase) {
    this.error = error;
    this.phase = phase;
  }
}

/** The error of a statement whose time limit has passed. */
const TIME_UP = Symbol('time is up');

/**
 * Runs a statement and returns its rows as arrays of strings. A connection that may still be busy is closed, not handed
 * back to the pool.
 *
 * A signal cancels the statement in the server; if that is too late, the statement goes on to its end, so that either
 * way what became of it is known.
 *
 * @param {PgPool} pool
 * @param {Statement} statement
 * @param {{ deadline: number, signal?: AbortSignal }} limits `deadline` by `performance.now()`
 * @throws {StatementFailure} whose error is {@link TIME_UP}, the signal's reason, or the driver's error
 */
async function runStatement(pool, { text, values, patienceFor, tag }, { deadline, signal }) {
  const timer = startTimer(deadline);
  try {
    const connection = await connect(pool, timer, signal);
    const patience = patienceFor === undefined ? [] : [patienceFor(deadline - performance.now())];
    const sent = { text: `/* ${tag} */ ${text}`, values: [...values, ...patience], tag };
    return await query(pool, connection, sent, timer, signal);
  } finally {
    timer.stop();
  }
}

/** @param {number} deadline */
function startTimer(deadline) {
  let stop = ignore;
  /** @type {Promise<never>} */
  const expired = new Promise((_, reject) => {
    const handle = setTimeout(() => reject(TIME_UP), Math.max(0, deadline - performance.now()));
    stop = () => clearTimeout(handle);
  });
  // It may expire when nobody waits for it.
  expired.catch(ignore);
  return { expired, stop };
}

/**
 * @param {PgPool} pool
 * @param {Timer} timer
 * @param {AbortSignal} [signal]
 */
async function connect(pool, timer, signal) {
  const connecting = openConnection(pool);
  try {
    return await cancellable(() => Promise.race([connecting, timer.expired]), signal);
  } catch (error) {
    // The pool hands out this connection later all the same, so it is given back then.
    connecting.then((connection) => connection.release(), ignore);
    if (error instanceof StatementFailure) throw error;
    throw new StatementFailure(error, error === TIME_UP ? 'connect' : 'aborted');
  }
}

/**
 * A connection of the pool, to be released with a reason if it is broken.
 *
 * One that breaks also tells that as an event, which would end the process if nobody listened. A promise for the
 * connection alone would come too late for that: it may break before whoever awaits it goes on.
 *
 * @param {PgPool} pool
 * @returns {Promise<Connection>}
 */
function openConnection(pool) {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (error) return reject(new StatementFailure(error, 'connect'));
      client.on('error', ignore);
      const release = (/** @type {boolean} */ broken = false) => {
        // The pool listens again from here on.
        client.release(broken);
        client.removeListener('error', ignore);
      };
      resolve({ client, release });
    });
  });
}

/**
 * @param {PgPool} pool
 * @param {Connection} connection
 * @param {{ text: string, values: unknown[], tag?: string }} statement
 * @param {Timer} timer
 * @param {AbortSignal} [signal]
 */
async function query(pool, connection, { text, values, tag }, timer, signal) {
  /** @type {ReturnType<typeof cancel> | undefined} */
  let cancellation;
  let forget = ignore;
  const release = (/** @type {boolean} */ broken) => {
    forget();
    connection.release(broken);
  };
  try {
    if (signal !== undefined) {
      forget = onAbort(signal, () => {
        if (tag !== undefined) cancellation = cancel(pool, tag);
      });
    }
    const config = { text, values, rowMode: /** @type {const} */ ('array'), types };
    const running = connection.client.query(config);
    // Its result no longer matters after the time limit.
    running.catch(ignore);
    const { rows } = await Promise.race([running, timer.expired]);
    // One that is under way must not meet the next statement of this connection.
    await cancellation?.withdraw();
    release(false);
    return rows;
  } catch (error) {
    if (error === TIME_UP) cancellation ??= tag === undefined ? undefined : cancel(pool, tag);
    else await cancellation?.withdraw();
    release(error === TIME_UP || isBroken(error));
    const isCancelled = signal?.aborted && sqlState(error) === CANCELLED;
    throw isCancelled ? new StatementFailure(signal.reason, 'aborted') : new StatementFailure(error, 'query');
  }
}

const CANCELLED = '57014';

/** How long the cancellation of a statement may wait for a connection and for the server. */
const CANCEL_MS = 2000;

/**
 * Has the server cancel the statement with this tag. `withdraw` settles, without an error, when the statement can no
 * longer be met.
 *
 * @param {PgPool} pool
 * @param {string} tag
 */
function cancel(pool, tag) {
  let isSent = false;
  let isWithdrawn = false;
  const sending = stopStatement(pool, tag, Number.POSITIVE_INFINITY, () => {
    isSent = !isWithdrawn;
    return isSent;
  });
  return {
    withdraw() {
      isWithdrawn = true;
      // Where all connections are in use it has not been sent, and would wait for this one.
      return isSent ? sending : undefined;
    },
  };
}

/**
 * Has the server cancel the statement with this tag, and settles, without an error, when it has been told to or cannot be
 * told in time. `isWanted` is asked when there is a connection to tell it.
 *
 * @param {PgPool} pool
 * @param {string} tag
 * @param {number} deadline
 * @param {() => boolean} [isWanted]
 */
async function stopStatement(pool, tag, deadline, isWanted = () => true) {
  const timer = startTimer(Math.min(deadline, performance.now() + CANCEL_MS));
  try {
    const connection = await connect(pool, timer);
    if (!isWanted()) return connection.release();
    // By its tag and not by the number of its process, which behind a connection pooler is another one's.
    const text =
      'SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity ' +
      "WHERE pg_catalog.starts_with(query, $1::pg_catalog.text) AND state OPERATOR(pg_catalog.=) 'active' " +
      'AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()';
    await query(pool, connection, { text, values: [`/* ${tag} */`] }, timer);
  } catch {
    // The server cannot be reached, or is slow. That is ignored, because the server limits the time of the statement too.
  } finally {
    timer.stop();
  }
}

/**
 * Conditions of PostgreSQL, and the beginnings of their classes, by the code that they get.
 *
 * @type {Array<[code: keyof typeof MESSAGES, conditions: string[]]>}
 */
const CODES = [
  ['ERR_STORE_OTHER_MODEL', [RAISED.otherModel]],
  ['ERR_STORE_OTHER_METHOD', [RAISED.otherMethod]],
  ['ERR_STORE_OTHER_LIMITS', [RAISED.otherLimits]],
  // undefined table, function, column, object, schema
  ['ERR_STORE_SCHEMA', [RAISED.schema, '42P01', '42883', '42703', '42704', '3F000']],
  // cancelled (by statement_timeout), lock_timeout, idle and transaction timeouts; conflicts until the time was up
  ['ERR_STORE_TIMEOUT', [RAISED.tooLate, CANCELLED, '55P03', '25P03', '25P04', '57P05', '40001', '40P01']],
  ['ERR_STORE_READ_ONLY', ['25006']],
  ['ERR_STORE_FULL', ['53100']],
  // connection exceptions, too many connections, shutting down, crashed, starting up, database dropped
  ['ERR_STORE_UNAVAILABLE', ['08', '53300', '57P01', '57P02', '57P03', '57P04']],
];

const MESSAGES = {
  ERR_STORE_UNAVAILABLE: 'the database of the store cannot be reached',
  ERR_STORE_TIMEOUT: 'the store did not answer in time',
  ERR_STORE_READ_ONLY: 'the database of the store is read-only; connect to its primary',
  ERR_STORE_FULL: 'the disk of the store is full',
  ERR_STORE_SCHEMA: 'the schema of the store is missing or of another version; call migrate()',
  ERR_STORE_OTHER_MODEL:
    'the store holds vectors of another model or dtype; use that one, or give this one a table of its own',
  ERR_STORE_OTHER_METHOD:
    'the store was filled by another novelty method; score with that one, or give this one a table of its own',
  ERR_STORE_OTHER_LIMITS:
    'the store has other limits than the options; leave them out to take those of the table, or change them with setLimits()',
  ERR_STORE: 'the store failed',
};

/**
 * The error of a table with other limits, where JavaScript finds that out before the server does.
 *
 * @param {string} message
 */
function otherLimits(message) {
  return codedError(Error, 'ERR_STORE_OTHER_LIMITS', `${MESSAGES.ERR_STORE_OTHER_LIMITS}: ${message}`);
}

/**
 * The error of tables of another method, where JavaScript finds that out before the server does.
 *
 * @param {string} message
 */
function otherMethod(message) {
  return codedError(Error, 'ERR_STORE_OTHER_METHOD', `${MESSAGES.ERR_STORE_OTHER_METHOD}: ${message}`);
}

/** What PostgreSQL answers where an extension is not installed on its machine, by version, and to a user who may not create it. */
const CANNOT_CREATE = ['0A000', '58P01', '42501'];

/**
 * The failure of `CREATE EXTENSION vector`, with the way out if the database has no pgvector to create.
 *
 * @param {unknown} failure
 */
function extensionError(failure) {
  const { error } = failure instanceof StatementFailure ? failure : { error: undefined };
  if (!CANNOT_CREATE.includes(sqlState(error) ?? '')) return failure;
  const message =
    "novelty 'prefix' needs the extension pgvector, which cannot be created in the database; have an administrator create it, " +
    `or use novelty 'lexical' or 'full', which need no extension: ${messageOf(error)}`;
  return codedError(Error, 'ERR_STORE', message, error);
}

/**
 * The error of tables of another version, where JavaScript finds that out before the server does.
 *
 * @param {string} message
 */
function schemaError(message) {
  return codedError(Error, 'ERR_STORE_SCHEMA', message);
}

/** The messages that `migrate()` has instead: it cannot advise to call `migrate()`. */
const MIGRATION_MESSAGES = {
  ...MESSAGES,
  ERR_STORE_SCHEMA: 'the tables of the store cannot be made, or are not what migrate() has made',
};

/**
 * The typed error for what {@link runStatement} threw; a signal's reason stays what it is.
 *
 * @param {unknown} failure
 * @param {typeof MESSAGES} [messages]
 */
function storeError(failure, messages = MESSAGES) {
  if (!(failure instanceof StatementFailure)) return failure;
  const { error, phase } = failure;
  if (phase === 'aborted') return error;
  if (error === TIME_UP) {
    const where = phase === 'connect' ? 'no connection was to be had' : 'the database did not reply';
    return codedError(Error, 'ERR_STORE_TIMEOUT', `${messages.ERR_STORE_TIMEOUT}: ${where}`);
  }
  const code = codeOf(error, phase);
  return codedError(Error, code, `${messages[code]}: ${messageOf(error)}`, error);
}

/**
 * @param {unknown} error
 * @param {StatementFailure['phase']} phase
 * @returns {keyof typeof MESSAGES}
 */
function codeOf(error, phase) {
  const condition = sqlState(error);
  for (const [code, conditions] of CODES) {
    if (condition !== undefined && conditions.some((each) => condition.startsWith(each))) return code;
  }
  if (condition !== undefined) return phase === 'connect' ? 'ERR_STORE_UNAVAILABLE' : 'ERR_STORE';
  // The driver's own: it names neither a condition nor, for its `query_timeout`, a code.
  return /read timeout/i.test(messageOf(error)) ? 'ERR_STORE_TIMEOUT' : 'ERR_STORE_UNAVAILABLE';
}

/**
 * PostgreSQL's condition; undefined for what did not come from the server.
 *
 * @param {unknown} error
 */
function sqlState(error) {
  const { code, severity } = /** @type {DriverError} */ (error ?? {});
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

/** @param {unknown} error */
function messageOf(error) {
  const { message, code } = /** @type {DriverError} */ (error ?? {});
  return String(message || code || error);
}

/**
 * Whether the connection has to be closed after this error.
 *
 * @param {unknown} error
 */
function isBroken(error) {
  const condition = sqlState(error);
  return (
    condition === undefined ||
    /^(08|57P)/.test(condition) ||
    /** @type {DriverError} */ (error).severity === 'FATAL'
  );
}

/**
 * Whether a statement that had been sent was lost with its connection: it may or may not have been carried out.
 *
 * @param {StatementFailure} failure
 */
function isLost(failure) {
  return failure.phase === 'query' && failure.error !== TIME_UP && isBroken(failure.error);
}

/**
 * Whether the database refused to order a statement among others, and will not if it comes again.
 *
 * @param {StatementFailure} failure
 */
function isConflict({ error, phase }) {
  return phase === 'query' && ['40001', '40P01'].includes(sqlState(error) ?? '');
}

module.exports = {
  StatementFailure,
  MIGRATION_MESSAGES,
  extensionError,
  isConflict,
  isLost,
  openConnection,
  otherLimits,
  otherMethod,
  runStatement,
  schemaError,
  stopStatement,
  storeError,
};
