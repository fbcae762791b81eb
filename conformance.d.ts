/**
 * What any {@link NoveltyStore} must do, as tests for whatever runs tests.
 *
 * @packageDocumentation
 */

import type { AddOptions, NoveltyStore } from './index.js';

/** Limits of a store that a test asks for. */
export interface ConformanceLimits {
  /** So many vectors at most: a new one displaces the oldest. */
  maxElements?: number;
  /** So many milliseconds a vector lives. */
  ttlMs?: number;
}

/** Options of {@link noveltyStoreConformance}. */
export interface ConformanceOptions<Store extends NoveltyStore = NoveltyStore> {
  /** Makes an empty store, for at least 1,000 vectors if there are no limits. */
  createStore(limits: ConformanceLimits): Store | Promise<Store>;
  /** Releases what `createStore` or `openAgain` has made. */
  destroyStore?(store: Store): unknown;
  /** Opens the memory of a store once more, as another process would. Without it the tests of sharing are left out. */
  openAgain?(store: Store): Store | Promise<Store>;
  /** Which limits the store knows; the tests of others are left out. Neither by default. */
  limits?: { maxElements?: boolean; ttlMs?: boolean };
  /**
   * Whether it always finds the nearest vector. One that searches by an approximate index may miss it now and then, but
   * must find what is all the same.
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
  /** What registers a test, as `test` of Jest, Vitest, Bun and `node:test` does. Without it nothing is registered. */
  test?(name: string, run: () => Promise<void>): unknown;
}

/** A test: its name, and a function that rejects with an `AssertionError` if it fails. */
export interface ConformanceTest {
  name: string;
  run(): Promise<void>;
}

/**
 * The tests that every store must pass, each on a store of its own. They take a few seconds.
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
