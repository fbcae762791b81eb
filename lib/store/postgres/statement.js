'use strict';

// One statement on a connection of a `pg` pool: within a time limit, cancellable, with errors that have our codes.

const { cancellable, onAbort } = require('../../calls/cancel.js');
const { codedError } = require('../../calls/errors.js');
const { RAISED } = require('./schema.js');

/** @import { PgClient, PgPool } from '../../../postgres.js' */

/** @typedef {{ client: PgClient, release: (broken?: boolean) => void }} Connection */

/**
 * A statement and its values, which are made before connecting: if that fails, there is no connection to release.
 *
 * @typedef {object} Statement
 * @property {string} text
 * @property {unknown[]} values
 * @property {(remaining: number) => number} [patienceFor] makes the last value from the remaining milliseconds once connected
 * @property {string} tag unique to this statement
 */

/** @typedef {ReturnType<typeof startTimer>} Timer */

/** @typedef {{ code?: unknown, severity?: string, message?: string }} DriverError the fields of an error of `pg` that are read */

/** The longest delay of a timer, 24 days; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const ignore = () => {};

/** Makes rows of strings, whatever type parsers the process has registered. */
const types = { getTypeParser: () => (/** @type {unknown} */ value) => value };

/**
 * An error and its phase: `connect` until the statement is sent, then `query`; or `aborted`, with the signal's reason as error.
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

/** The error of a statement beyond its time limit. */
const TIME_UP = Symbol('time is up');

/**
 * Runs a statement and returns its rows as arrays of strings. A connection that may still be busy is closed, not returned to the pool.
 *
 * A signal cancels the statement in the server. If that is too late, the statement runs to its end, so its outcome is known.
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
  // May reject while nothing awaits it.
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
    // The pool delivers this connection later; it is then released.
    connecting.then((connection) => connection.release(), ignore);
    if (error instanceof StatementFailure) throw error;
    throw new StatementFailure(error, error === TIME_UP ? 'connect' : 'aborted');
  }
}

/**
 * Takes a connection from the pool; release it with a reason if it is broken.
 *
 * A broken connection emits an `error` event, which ends the process without a listener. The listener is added in the callback, because
 * the connection may break before an awaiting function continues.
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
        // From here on, the pool listens.
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
    // Ignored after the time limit.
    running.catch(ignore);
    const { rows } = await Promise.race([running, timer.expired]);
    // A running cancellation must not hit the next statement on this connection.
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

/** The time limit of a cancellation, connecting included. */
const CANCEL_MS = 2000;

/**
 * Cancels the statement with this tag in the server. `withdraw` resolves when the cancellation can no longer hit.
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
      // With all connections in use it is unsent, and would wait for this one.
      return isSent ? sending : undefined;
    },
  };
}

/**
 * Cancels the statement with this tag in the server; resolves when that is done or out of time. `isWanted` is checked once connected.
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
    // By tag, because behind a connection pooler the process number may be another client's.
    const text =
      'SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity ' +
      "WHERE pg_catalog.starts_with(query, $1::pg_catalog.text) AND state OPERATOR(pg_catalog.=) 'active' " +
      'AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()';
    await query(pool, connection, { text, values: [`/* ${tag} */`] }, timer);
  } catch {
    // Ignored if the server is unreachable or slow, because it limits the statement's time too.
  } finally {
    timer.stop();
  }
}

/**
 * The codes of PostgreSQL's conditions and classes of conditions.
 *
 * @type {Array<[code: keyof typeof MESSAGES, conditions: string[]]>}
 */
const CODES = [
  ['ERR_STORE_OTHER_MODEL', [RAISED.otherModel]],
  ['ERR_STORE_OTHER_METHOD', [RAISED.otherMethod]],
  ['ERR_STORE_OTHER_LIMITS', [RAISED.otherLimits]],
  // undefined table, function, column, object, schema; duplicate table, function, object
  [
    'ERR_STORE_SCHEMA',
    [RAISED.schema, '42P01', '42883', '42703', '42704', '3F000', '42P07', '42723', '42710'],
  ],
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
 * Returns the error of a code, where JavaScript detects it before the server.
 *
 * @param {keyof typeof MESSAGES} code
 * @param {string} message
 */
function detected(code, message) {
  return codedError(Error, code, `${MESSAGES[code]}: ${message}`);
}

/** PostgreSQL's conditions for a missing extension, by version, and for a missing privilege to create it. */
const CANNOT_CREATE = ['0A000', '58P01', '42501'];

/**
 * Returns the failure of `CREATE EXTENSION vector`, with the remedy if the server lacks pgvector.
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
 * Returns the error of tables of another version, where JavaScript detects it before the server.
 *
 * @param {string} message
 */
function schemaError(message) {
  return codedError(Error, 'ERR_STORE_SCHEMA', message);
}

/** The messages of `migrate()`, which cannot advise to call `migrate()`. */
const MIGRATION_MESSAGES = {
  ...MESSAGES,
  ERR_STORE_SCHEMA:
    'the tables of the store cannot be made, or are not what migrate() has made; name another table',
};

/**
 * Returns the typed error for a failure of {@link runStatement}; a signal's reason stays unchanged.
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
  // Errors of the driver have no condition, and its `query_timeout` no code.
  return /read timeout/i.test(messageOf(error)) ? 'ERR_STORE_TIMEOUT' : 'ERR_STORE_UNAVAILABLE';
}

/**
 * Returns PostgreSQL's condition; undefined if the error is not from the server.
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
 * Returns whether the connection must be closed after this error.
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
 * Returns whether a sent statement was lost with its connection, so that its outcome is unknown.
 *
 * @param {StatementFailure} failure
 */
function isLost(failure) {
  return failure.phase === 'query' && failure.error !== TIME_UP && isBroken(failure.error);
}

/**
 * Returns whether a repetition can succeed: a serialization failure or a deadlock.
 *
 * @param {StatementFailure} failure
 */
function isConflict({ error, phase }) {
  return phase === 'query' && ['40001', '40P01'].includes(sqlState(error) ?? '');
}

module.exports = {
  StatementFailure,
  MAX_TIMER_MS,
  MIGRATION_MESSAGES,
  detected,
  extensionError,
  isConflict,
  isLost,
  openConnection,
  runStatement,
  schemaError,
  stopStatement,
  storeError,
  types,
};
