'use strict';

// The PostgreSQL store of `--store`, with the driver that the user has installed.

const { Scorer, explain } = require('../scorer.js');

/** @import { NoveltyMethod } from '../../index.js' */

/** @typedef {Error & { code?: string }} SystemError an error of the system or of this package */

/**
 * Makes functions that return an error which ends the command with an exit code, as in `--help`; its message is one line, with the way out.
 *
 * @param {number} exitCode
 */
const failureWith = (exitCode) => (/** @type {string} */ message) =>
  Object.assign(new Error(message), { exitCode });
const [usageError, fileError] = [failureWith(2), failureWith(3)];

/** A few connections: the scorer makes one call at a time. */
const CONNECTIONS = 2;

/**
 * The requested store. `table` may begin with a schema and a dot; `weights` are profiles in JSON.
 *
 * @typedef {{ url: string, table: string | null, maxElements: number | null, novelty: NoveltyMethod, weights: string | null }} Wanted
 */

/**
 * Connects to a store, and creates its table if it is missing, but no schema.
 *
 * @param {Wanted} wanted
 * @throws if the driver is missing, or cannot read the URL; errors of the store
 */
async function openStore({ url, table, maxElements, novelty, weights }) {
  const { Client, Pool } = requireDriver();
  requireUrl(url, Client);
  const { PostgresStore } = require('../../postgres.js');
  const pool = new Pool({ connectionString: url, max: CONNECTIONS, application_name: 'kp-score' });
  const close = () => pool.end();
  try {
    const options = {
      pool,
      method: novelty,
      table: table ?? undefined,
      maxElements: maxElements ?? undefined,
    };
    const memory = new PostgresStore(options);
    await memory.size();
    const scorer = new Scorer({ memory, weights: weights === null ? undefined : JSON.parse(weights) });
    return {
      close,
      size: () => memory.size(),
      explain: (/** @type {{ trace: string, remember: boolean }} */ { trace, remember }) =>
        explain(scorer, JSON.parse(trace), remember),
    };
  } catch (thrown) {
    await close();
    throw explained(/** @type {SystemError} */ (thrown));
  }
}

/**
 * Returns an error whose message names the options of the command.
 *
 * @param {SystemError} error
 */
function explained(error) {
  const message = error.message
    .replace('options.table', '--store-table')
    .replace("method 'lexical' or 'full'", '--novelty lexical or --novelty full')
    .replaceAll("method '", "novelty '");
  if (error.code === 'ERR_INVALID_OPTION') return usageError(message);
  return message === error.message ? error : fileError(message);
}

/**
 * Checks the URL, which the driver reads when it connects: in the pool its error would be an error of the store.
 *
 * @param {string} url
 * @param {typeof import('pg').Client} Client
 */
function requireUrl(url, Client) {
  try {
    const { port } = new Client({ connectionString: url });
    if (port >= 1 && port <= 65_535) return;
  } catch (thrown) {
    const error = /** @type {NodeJS.ErrnoException} */ (thrown);
    // A file that the URL names, such as a certificate.
    if (error.syscall !== undefined) throw fileError(error.message);
  }
  // Leaves out the URL, which may contain a password.
  throw usageError(
    '--store must be like postgres://user@host:5432/database; what is special in a URL, such as @ or / in a password, is written as %40 or %2F',
  );
}

/**
 * Loads the driver as Node.js resolves it from this file, never from the working directory: that may hold somebody else's packages, and the
 * driver gets the password.
 *
 * @returns {typeof import('pg')}
 * @throws if it is not installed
 */
function requireDriver() {
  try {
    return require('pg');
  } catch (error) {
    if (/** @type {SystemError} */ (error).code !== 'MODULE_NOT_FOUND') throw error;
  }
  throw fileError(
    '--store needs the package pg beside this one: npm install pg (with -g if kp-score was installed so), or npx -p @knowledgepulse/native -p pg kp-score',
  );
}

module.exports = { openStore };
