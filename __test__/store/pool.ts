// A pool of the package `pg`, as its own types declare it, is what a store wants. This file is compiled, never run.

import { Pool } from 'pg';

import { PostgresVectorStore } from '../../postgres.js';

export const store: PostgresVectorStore = new PostgresVectorStore({ pool: new Pool() });

// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = new Pool();
