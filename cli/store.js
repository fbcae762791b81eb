'use strict';

// The memory that `--store` names: a table in PostgreSQL, by the driver that the user has installed.

const { createRequire } = require('node:module');
const path = require('node:path');

const { CommandError, EXIT } = require('./errors.js');

/** A few connections: the scorer makes one call at a time. */
const CONNECTIONS = 2;

/**
 * Connects to the store at `url`, and makes its table where there is none. One that is there keeps its limits, which are
 * those of all who share it.
 *
 * @param {{ url: string, table: string | undefined, maxElements: number | undefined }} options
 * @throws {CommandError} if a driver is missing; errors of the store
 */
async function openStore({ url, table, maxElements }) {
  const { Pool } = requireDriver('pg');
  const pgvector = requireDriver('pgvector');
  const { PgVectorStore } = require('../pgvector.js');
  const pool = new Pool({ connectionString: url, max: CONNECTIONS, application_name: 'kp-score' });
  let store;
  try {
    store = new PgVectorStore({ pool, table, maxElements }, pgvector);
  } catch (error) {
    await pool.end();
    throw new CommandError(EXIT.usage, error.message.replace('options.table', '--store-table'));
  }
  const close = async () => {
    store.close();
    await pool.end();
  };
  try {
    return { store, close, size: await sizeOf(store) };
  } catch (error) {
    await close();
    if (error.code !== 'ERR_STORE_OTHER_LIMITS') throw error;
    throw new CommandError(EXIT.usage, `--memory-size is for a table that is new: ${error.message}`);
  }
}

async function sizeOf(store) {
  try {
    return await store.size();
  } catch (error) {
    if (error.code !== 'ERR_STORE_SCHEMA') throw error;
    // There is no table yet; one of another version is refused here.
    await store.migrate();
    return store.size();
  }
}

/** A package of the project in which the command runs, or of that in which it is installed. */
function requireDriver(name) {
  for (const from of [path.join(process.cwd(), 'package.json'), __filename]) {
    try {
      return createRequire(from)(name);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new CommandError(EXIT.file, '--store needs the packages pg and pgvector: npm install pg pgvector');
}

module.exports = { openStore };
