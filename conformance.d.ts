/**
 * Conformance tests for a {@link NoveltyStore}, for any test runner.
 *
 * @packageDocumentation
 */

import type { AddOptions, NoveltyMethod, NoveltyStore } from './index.js';

/** Limits that a test needs the store to have. */
export interface ConformanceLimits {
  /** The maximum number of vectors or traces; a new one displaces the oldest. */
  maxElements?: number;
  /** The time to live of a vector or trace in milliseconds. */
  ttlMs?: number;
}

/** Options of {@link noveltyStoreConformance}. */
export interface ConformanceOptions<Store extends NoveltyStore = NoveltyStore> {
  /**
   * The novelty method of the store: `prefix` tests a store of vectors, `lexical` and `full` a store of traces.
   *
   * @defaultValue `'prefix'`
   */
  novelty?: NoveltyMethod;
  /** Makes an empty store. Without `maxElements` it must have room for at least 1,000 vectors. */
  createStore(limits: ConformanceLimits): Store | Promise<Store>;
  /** Releases a store that `createStore` or `openAgain` has made. */
  destroyStore?(store: Store): unknown;
  /** Opens the memory of a store a second time, as another process would. Without it, the tests of sharing are left out. */
  openAgain?(store: Store): Store | Promise<Store>;
  /** The limits that the store supports; tests of the others are left out. By default none. */
  limits?: { maxElements?: boolean; ttlMs?: boolean };
  /**
   * Whether the store always finds the nearest vector. A store with an approximate index may miss it now and then, but it must find
   * a vector that is identical to the query.
   *
   * @defaultValue `true`
   */
  isExact?: boolean;
  /**
   * Whether a call that is made twice with the same {@link AddOptions.call} is stored once.
   *
   * @defaultValue `false`
   */
  knowsCalls?: boolean;
  /** Registers a test, as `test` of Jest, Vitest, Bun and `node:test` does. Without it, no test is registered. */
  test?(name: string, run: () => Promise<void>): unknown;
}

/** A test: its name, and a function that rejects with an `AssertionError` if it fails. */
export interface ConformanceTest {
  name: string;
  run(): Promise<void>;
}

/**
 * Makes the tests that every store must pass. Each test uses a new store; together they take a few seconds.
 *
 * @returns the tests, whether or not `options.test` has registered them
 * @example
 * ```ts
 * import test from 'node:test';
 * import { noveltyStoreConformance } from '@knowledgepulse/native/conformance';
 *
 * noveltyStoreConformance({ test, createStore: () => new MyStore() });
 * ```
 */
export function noveltyStoreConformance<Store extends NoveltyStore>(
  options: ConformanceOptions<Store>,
): ConformanceTest[];
