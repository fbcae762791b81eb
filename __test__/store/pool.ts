// A pool of the package `pg`, as its own types declare it, is what a store wants. This file is compiled, never run.

import { Pool } from 'pg';

import { PostgresStore } from '../../postgres.js';

export const store: PostgresStore = new PostgresStore({ pool: new Pool(), method: 'lexical' });

// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = new Pool();
