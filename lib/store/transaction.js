'use strict';

// A transaction on a connection of a `pg` pool: within a time limit, repeated once if the connection is lost, with errors that have our codes.

const { cancellable } = require('../calls/cancel.js');
const { codedError } = require('../calls/errors.js');

/** @import { PgPool } from '../../postgres.js' */

/**
 * The part of a `PoolClient` of the package `pg` that a store uses.
 *
 * @typedef {object} PgClient
 * @property {(config: { text: string, values?: unknown[], rowMode?: 'array', types?: typeof types }) => Promise<{ rows: any[][] }>} query
 * @property {(event: 'error', listener: (error: Error) => void) => unknown} on
 * @property {(event: 'error', listener: (error: Error) => void) => unknown} removeListener
 * @property {(destroy?: boolean) => void} release
 */

/** @typedef {(text: string, values: unknown[]) => Promise<any[][]>} Query rows of texts and nulls */

/** The time limit of a transaction in milliseconds, the wait for a connection included. */
const TIME_LIMIT_MS = 15_000;

/** Makes rows of strings, whatever type parsers the process has registered. */
const types = { getTypeParser: () => (/** @type {unknown} */ value) => value };

const ignore = () => {};

/**
 * The failures of PostgreSQL that pass, by the beginnings of their codes: lost connections, no resources, a read-only standby, a server that
 * stops or starts, and time limits.
 */
const PASSING = ['08', '53', '57', '25006', '25P03', '25P04', '40', '55P03'];

/** Failures after which the connection is lost, and the outcome of the transaction unknown. */
const LOST = ['08', '57P01', '57P02', '57P03'];

/** Tables, columns, schemas, types and functions that are missing or of another kind, and privileges that are missing. */
const OF_SCHEMA = ['42P01', '42703', '3F000', '42704', '42883', '42P07', '42P17', '42804', '42809', '42501'];

/**
 * Runs `work` in a transaction, and commits. `begin` are statements without values that begin it. After a lost connection the transaction is
 * repeated once, so `work` must know what it has stored already.
 *
 * @template T
 * @param {PgPool} pool
 * @param {string} begin
 * @param {(query: Query) => Promise<T>} work
 * @param {number} [limitMs]
 * @returns {Promise<T>}
 */
async function transact(pool, begin, work, limitMs = TIME_LIMIT_MS) {
  for (let isRepeated = false; ; isRepeated = true) {
    try {
      return await attempt(pool, begin, work, limitMs);
    } catch (error) {
      if (isRepeated || !isLost(error)) throw typed(error);
    }
  }
}

/**
 * @template T
 * @param {PgPool} pool
 * @param {string} begin
 * @param {(query: Query) => Promise<T>} work
 * @param {number} limitMs
 */
async function attempt(pool, begin, work, limitMs) {
  const signal = AbortSignal.timeout(limitMs);
  const late = () => unavailable('it did not answer in time');
  const connecting = connect(pool);
  let client;
  try {
    client = await cancellable(() => connecting, signal);
  } catch (error) {
    // The pool may still deliver the connection.
    connecting.then(({ release }) => release(false), ignore);
    throw signal.aborted ? late() : unavailable(/** @type {Error} */ (error).message, error);
  }
  const { query: send, release } = client;
  const run = async () => {
    await send({ text: begin });
    const result = await work(
      async (text, values) => (await send({ text, values, rowMode: 'array', types })).rows,
    );
    await send({ text: 'COMMIT' });
    return result;
  };
  let isBroken = true;
  try {
    const result = await cancellable(run, signal);
    isBroken = false;
    return result;
  } catch (error) {
    throw signal.aborted ? late() : error;
  } finally {
    // A transaction that failed may be open; closing the connection ends it.
    release(isBroken);
  }
}

/**
 * Takes a connection from the pool.
 *
 * @param {PgPool} pool
 * @returns {Promise<{ query: PgClient['query'], release: (isBroken: boolean) => void }>}
 */
function connect(pool) {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (error) return reject(error);
      // In the callback, because a broken connection emits an event that ends the process without a listener.
      client.on('error', ignore);
      const release = (/** @type {boolean} */ isBroken) => {
        client.release(isBroken);
        // From here on, the pool listens.
        client.removeListener('error', ignore);
      };
      resolve({ query: client.query.bind(client), release });
    });
  });
}

/** @param {unknown} error of `pg`; without a condition of PostgreSQL it is of the connection */
function conditionOf(error) {
  const { code, severity } = /** @type {{ code?: unknown, severity?: unknown }} */ (error);
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

/** @param {unknown} error */
function isLost(error) {
  if (isOurs(error)) return false;
  const condition = conditionOf(error);
  return condition === undefined || LOST.some((code) => condition.startsWith(code));
}

/** @param {unknown} error */
const isOurs = (error) => /^ERR_/.test(String(/** @type {{ code?: unknown }} */ (error)?.code));

/**
 * Returns the error of a transaction with one of our codes.
 *
 * @param {any} error
 */
function typed(error) {
  if (isOurs(error)) return error;
  const condition = conditionOf(error);
  if (condition === undefined || PASSING.some((code) => condition.startsWith(code))) {
    return unavailable(error.message, error);
  }
  if (OF_SCHEMA.includes(condition)) {
    const message = `the tables of the store are missing or of another kind, or may not be used: ${error.message}`;
    return codedError(Error, 'ERR_STORE_SCHEMA', message, error);
  }
  return codedError(Error, 'ERR_STORE', `the store failed: ${error.message}`, error);
}

/**
 * @param {string} reason
 * @param {unknown} [cause]
 */
function unavailable(reason, cause) {
  const message = `the database of the store is unavailable: ${reason}`;
  return codedError(Error, 'ERR_STORE_UNAVAILABLE', message, cause);
}

module.exports = { transact };
