'use strict';

const { setImmediate } = require('node:timers/promises');
const { isMap } = require('node:util').types;

const { localCopy } = require('./calls/addon.js');
const { cancellable } = require('./calls/cancel.js');
const {
  inRange,
  invalidOption,
  ofType,
  oneOf,
  readCallOptions,
  readOptions,
  requireObject,
} = require('./calls/options.js');
const { ensureConfigured, tellWarning } = require('./embedder.js');
const { DIMENSIONS } = require('./embedding.js');
const { attempt, codedError, errorOfTrace, fromAddon } = require('./calls/errors.js');
const native = require('./loader.js').addon;
const { isArray, namesOf, readFrom, readLength } = require('./calls/reading.js');
const { StoreCalls } = require('./store/calls.js');
const { StoreWithFallback } = require('./store/fallback.js');
const { LocalMemory } = require('./store/local.js');
const { TraceMemory, isTraceMemory, nativeOfTraces } = require('./trace-memory.js');
const { VectorCache, isVectorCache, nativeOf } = require('./vector-cache.js');

/**
 * @import { BatchProgress, NoveltyMethod, ScoreBreakdown, ScorerOptions } from '../index.js'
 * @import { PostgresStore } from '../postgres.js'
 * @import { Scorer as PublicScorer, TraceMemory as PublicMemory, VectorCache as PublicCache } from '../index.js'
 * @import { OptionReader } from './calls/options.js'
 * @import { NativeCall, NativeProfile } from './binding.js'
 * @import { Store } from './store/calls.js'
 */

/**
 * @typedef {object} Batch
 * @property {readonly unknown[]} traces
 * @property {number} length
 * @property {AbortSignal | undefined} signal
 * @property {((progress: BatchProgress) => void) | undefined} onProgress
 */

/** @typedef {PublicCache | PublicMemory} OwnMemory a memory in this process */

/**
 * Scores traces with a memory and weights of its own. All scorers of a process share its embedder.
 *
 * @template {OwnMemory | PostgresStore} [Memory=PublicCache]
 * @implements {PublicScorer<Memory>}
 */
class Scorer {
  #native;
  /** @type {OwnMemory | PostgresStore} */
  #memory;
  /** Whether it needs the embedder, which the first such call configures. */
  #embeds;
  /**
   * The calls to a store; undefined for a memory in this process.
   *
   * @type {InstanceType<typeof StoreCalls> | undefined}
   */
  #store;

  /** @param {ScorerOptions<Memory>} [options] */
  constructor(options = {}) {
    const given = readOptions(options, OPTIONS);
    const { fallback, weights: profiles = [] } = given;
    const { memory, novelty } = given.memory ?? { memory: new VectorCache(), novelty: 'prefix' };
    const isOwn = isVectorCache(memory) || isTraceMemory(memory);
    if (fallback !== undefined) requireFitting(fallback, novelty, isOwn);
    // Without an embedder, only words are compared.
    const compares = given.embedder !== null || novelty === 'lexical';
    // An empty memory tells the addon the method of a store.
    const empty = () => (novelty === 'prefix' ? new VectorCache() : new TraceMemory({ novelty }));
    const own = isOwn ? memory : (fallback?.memory ?? empty());
    this.#memory = memory;
    this.#embeds = compares && novelty !== 'lexical';
    const [cache, traces] = compares ? [nativeOf(own), nativeOfTraces(own)] : [];
    this.#native = fromAddon(() => new native.NativeScorer(profiles, cache, traces));
    if (isOwn || !compares) return;
    const store = /** @type {Store} */ (/** @type {unknown} */ (memory));
    const local = fallback && new LocalMemory(fallback.memory);
    this.#store = new StoreCalls(this.#native, store, local && new StoreWithFallback(store, local));
  }

  /** @returns {Memory} */
  get memory() {
    return /** @type {Memory} */ (this.#memory);
  }

  /** @type {PublicScorer['evaluateValue']} */
  // An async function rejects instead of throwing, and makes the promise in the caller's realm.
  async evaluateValue(trace, options) {
    const { signal } = readCallOptions(options);
    const store = this.#store;
    if (store === undefined) return this.#settle(signal, (call) => this.#native.evaluate(trace, call));
    return (await this.#byStore(() => store.explain(trace, { signal }), signal)).score;
  }

  /** @type {PublicScorer['explain']} */
  async explain(trace, options) {
    const { signal, remember = true, novelty } = readCallOptions(options, EXPLAIN_OPTIONS);
    const store = this.#store;
    /** @param {NativeCall | undefined} [call] @returns {ScoreBreakdown | Promise<ScoreBreakdown>} */
    const ask = (call) => this.#native.explain(trace, remember, call, novelty);
    if (store === undefined) return localCopy(await this.#settle(signal, ask));
    const begin = () =>
      novelty === undefined
        ? store.explain(trace, { remember, signal })
        : store.inOrder(() => fromAddon(() => ask()));
    return localCopy(await this.#byStore(begin, signal));
  }

  /** @type {PublicScorer['flush']} */
  async flush(options) {
    const { signal } = readCallOptions(options);
    signal?.throwIfAborted();
    const store = this.#store;
    if (store !== undefined) return store.flush(signal);
    const others = this.#native.afterOthers();
    if (others !== undefined) await cancellable(() => others, signal);
  }

  /** @type {PublicScorer['evaluateValues']} */
  async evaluateValues(traces, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: ofType('function') });
    if (!isArray(traces)) {
      throw codedError(TypeError, 'ERR_INVALID_TRACE', 'traces must be an array');
    }
    const length = readLength(traces, 'traces', 'ERR_INVALID_TRACE');
    signal?.throwIfAborted();
    const store = this.#store;
    const batch = { traces, length, signal, onProgress };
    if (store !== undefined) return this.#byStore(() => store.evaluateAll(batch), signal);
    if (this.#embeds) ensureConfigured();
    const call = signal && new native.NativeCall();
    const evaluate = () => this.#evaluateBatch(batch, call);
    try {
      return await cancellable(evaluate, signal, () => cancel(call));
    } finally {
      tellWarning();
    }
  }

  /**
   * @param {Batch} options
   * @param {NativeCall | undefined} call
   */
  async #evaluateBatch({ traces, length, signal, onProgress }, call) {
    const batch = this.#native.batch(call);
    /** @type {Array<void | Promise<void>>} */
    const inFlight = [];
    /** @type {number[]} */
    let scores = [];
    let done = 0;
    let failure;
    const takeFirst = async () => {
      await inFlight.shift();
      // If all traces in flight are embedded, no rejection reports the abort.
      signal?.throwIfAborted();
      onProgress?.({ done: ++done, total: length });
    };
    try {
      await batch.begin();
      for (let index = 0; index < length && failure === undefined; index++) {
        if (inFlight.length === MAX_IN_FLIGHT) await takeFirst();
        if (index % BREATH === BREATH - 1) await setImmediate();
        signal?.throwIfAborted();
        try {
          const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
          const reply = fromAddon(() => batch.add(trace));
          // Its rejection is handled later.
          if (typeof reply === 'object') reply.catch(() => {});
          inFlight.push(reply);
        } catch (error) {
          failure = errorOfTrace(error, index);
        }
      }
      while (inFlight.length > 0) await takeFirst();
      // Compares and remembers all. Traces before a failure are too, as in single calls.
      scores = Array.from(await fromAddon(() => batch.score()));
    } finally {
      batch.close();
    }
    if (failure !== undefined) throw failure;
    return scores;
  }

  /**
   * @template T
   * @param {AbortSignal | undefined} signal
   * @param {(call: NativeCall | undefined) => T | Promise<T>} ask
   * @returns {Promise<T>}
   */
  async #settle(signal, ask) {
    signal?.throwIfAborted();
    if (this.#embeds) ensureConfigured();
    const call = signal && new native.NativeCall();
    const begin = () => fromAddon(() => this.#inTurn(() => ask(call)));
    const result = await cancellable(begin, signal, () => cancel(call));
    tellWarning();
    return result;
  }

  /**
   * Makes a call with `begin` whose reply depends on a store.
   *
   * @template T
   * @param {() => Promise<T>} begin
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<T>}
   */
  async #byStore(begin, signal) {
    signal?.throwIfAborted();
    if (this.#embeds) ensureConfigured();
    try {
      return await begin();
    } finally {
      tellWarning();
    }
  }

  /**
   * Returns the reply of the addon. An error that the addon throws, as for an invalid trace, waits for the replies to earlier calls.
   *
   * @template T
   * @param {() => T | Promise<T>} ask
   * @returns {T | Promise<T>}
   */
  #inTurn(ask) {
    try {
      return ask();
    } catch (error) {
      const others = this.#native.afterOthers();
      if (others === undefined) throw error;
      return others.then(() => {
        throw error;
      });
    }
  }
}

const cancel = (/** @type {NativeCall | undefined} */ call) => call?.cancel() === true;

/** The number of traces of a batch in flight: enough for every lane, and bounded memory. */
const MAX_IN_FLIGHT = 64;

/** The number of traces after which other work gets a turn, even if no trace waits. */
const BREATH = 256;

/** @type {OptionReader<'default' | null>} */
function readEmbedder(value, path) {
  if (value === null || value === 'default') return value;
  throw invalidOption(RangeError, `${path} must be 'default' or null`);
}

/**
 * @template {OwnMemory | PostgresStore} Memory
 * @typedef {{ memory: Memory, novelty: NoveltyMethod }} Known
 */

/**
 * Reads a memory of any kind. A store is recognised by its methods, because it may be of another copy of this package.
 *
 * @type {OptionReader<Known<OwnMemory | PostgresStore>>}
 */
function readMemory(memory, path) {
  if (isVectorCache(memory) || isTraceMemory(memory)) return readOwnMemory(memory, path);
  const read = (/** @type {string} */ name) => attempt(() => /** @type {any} */ (memory)[name], undefined);
  if (['compareAndAdd', 'compare', 'size'].every((method) => typeof read(method) === 'function')) {
    return {
      memory: /** @type {PostgresStore} */ (memory),
      novelty: readMethod(read('novelty'), `${path}.novelty`),
    };
  }
  throw invalidOption(TypeError, `${path} must be a VectorCache, a TraceMemory or a PostgresStore`);
}

const readMethod = oneOf(['prefix', 'lexical', 'full']);

/**
 * Reads a memory of this process, which must have the dimensions of an embedding if it keeps embeddings.
 *
 * @type {OptionReader<Known<OwnMemory>>}
 */
function readOwnMemory(memory, path) {
  const held = nativeOf(memory) ?? nativeOfTraces(memory);
  if (held === undefined) throw invalidOption(TypeError, `${path} must be a VectorCache or a TraceMemory`);
  const known = /** @type {OwnMemory} */ (memory);
  const novelty = isTraceMemory(known) ? known.novelty : 'prefix';
  const { dimensions } = held.bounds;
  if (novelty !== 'lexical' && dimensions !== DIMENSIONS) {
    const message = `${path} must have ${DIMENSIONS} dimensions, those of an embedding, got ${dimensions}`;
    throw invalidOption(RangeError, message);
  }
  return { memory: known, novelty };
}

/**
 * Requires a fallback to belong to a store, and to have its method.
 *
 * @param {Known<OwnMemory>} fallback
 * @param {NoveltyMethod} novelty
 * @param {boolean} isOwn
 */
function requireFitting(fallback, novelty, isOwn) {
  if (isOwn) {
    const message = 'options.fallback is for a PostgresStore: a memory of this process does not fail';
    throw invalidOption(TypeError, message);
  }
  if (fallback.novelty === novelty) return;
  const message =
    `options.fallback compares with novelty '${fallback.novelty}', and options.memory with '${novelty}': ` +
    'use a fallback that compares as the store does';
  throw codedError(Error, 'ERR_MEMORY_OTHER_METHOD', message);
}

const WEIGHTS = {
  complexity: ofType('number'),
  novelty: ofType('number'),
  toolDiversity: ofType('number'),
  outcomeConfidence: ofType('number'),
};

/**
 * Reads profiles of weights for the addon, which checks their sums.
 *
 * @type {OptionReader<NativeProfile[]>}
 */
function readProfiles(weights, path) {
  const named = requireObject(weights, path);
  if (isMap(named)) throw invalidOption(TypeError, `${path} must be an object, not a Map`);
  const names = namesOf(named, path, 'ERR_INVALID_OPTION');
  return names.map((name) => {
    const place = `${path}[${JSON.stringify(name)}]`;
    const given = readOptions(readFrom(named, name, place, 'ERR_INVALID_OPTION'), WEIGHTS, place);
    const missing = Object.keys(WEIGHTS).find((dimension) => !(dimension in given));
    if (missing !== undefined) throw invalidOption(TypeError, `${place}.${missing} must be a number`);
    return { name, .../** @type {Required<typeof given>} */ (given) };
  });
}

/** Similarities are exact to 1e-6, so a novelty may be slightly below 0 or above 2. */
const readNovelty = inRange({ from: -0.001, to: 2.001 });

const EXPLAIN_OPTIONS = { remember: ofType('boolean'), novelty: readNovelty };

const OPTIONS = {
  embedder: readEmbedder,
  fallback: readOwnMemory,
  memory: readMemory,
  weights: readProfiles,
};

module.exports = { Scorer };
