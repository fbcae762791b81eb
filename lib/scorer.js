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
const { codedError, errorOfTrace, fromAddon } = require('./calls/errors.js');
const native = require('./loader.js').addon;
const { isArray, namesOf, readFrom, readLength } = require('./calls/reading.js');
const { StoreWithFallback } = require('./store/fallback.js');
const { TraceMemory, isTraceMemory, nativeOfTraces } = require('./trace-memory.js');
const { VectorCache, isVectorCache, nativeOf } = require('./vector-cache.js');

/**
 * @import { BatchProgress, NoveltyMethod, NoveltyStore, ScoreBreakdown, ScorerOptions } from '../index.js'
 * @import { Scorer as PublicScorer, TraceMemory as PublicMemory, VectorCache as PublicCache } from '../index.js'
 * @import { OptionReader } from './calls/options.js'
 * @import { EmbeddedTrace, NativeBatch, NativeCall, NativeProfile, NativeScorer } from './binding.js'
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
 * @template {OwnMemory | NoveltyStore} [Memory=PublicCache]
 * @implements {PublicScorer<Memory>}
 */
class Scorer {
  #native;
  /** @type {OwnMemory | NoveltyStore} */
  #memory;
  /** Whether it needs the embedder, which the first such call configures. */
  #embeds;
  /**
   * The store and its fallback; undefined for a memory in this process.
   *
   * @type {InstanceType<typeof StoreWithFallback> | undefined}
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
    if (!isOwn && compares) this.#store = new StoreWithFallback(memory, fallback?.memory);
    // An empty memory tells the addon the method of a store.
    const empty = () => (novelty === 'prefix' ? new VectorCache() : new TraceMemory({ novelty }));
    const own = isOwn ? memory : (fallback?.memory ?? empty());
    this.#memory = memory;
    this.#embeds = compares && novelty !== 'lexical';
    const [cache, traces] = compares ? [nativeOf(own), nativeOfTraces(own)] : [];
    this.#native = fromAddon(() => new native.NativeScorer(profiles, cache, traces));
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
    return this.#settle(signal, (call) => {
      if (store === undefined) return this.#native.evaluate(trace, call);
      return explainByStore(store, this.#native, trace, { call, signal }).then(scoreOf);
    });
  }

  /** @type {PublicScorer['explain']} */
  async explain(trace, options) {
    const { signal, remember = true, novelty } = readCallOptions(options, EXPLAIN_OPTIONS);
    const store = this.#store;
    /** @param {NativeCall | undefined} call @returns {ScoreBreakdown | Promise<ScoreBreakdown>} */
    const ask = (call) => {
      if (store === undefined || novelty !== undefined) {
        return this.#native.explain(trace, remember, call, novelty);
      }
      return explainByStore(store, this.#native, trace, { remember, call, signal });
    };
    return localCopy(await this.#settle(signal, ask));
  }

  /** @type {PublicScorer['flush']} */
  async flush(options) {
    const { signal } = readCallOptions(options);
    signal?.throwIfAborted();
    const store = this.#store;
    const others =
      store === undefined ? this.#native.afterOthers() : this.#native.leavePlace(this.#native.takePlace());
    if (others !== undefined) await cancellable(() => others, signal);
    // Earlier calls are settled, so the missed batches include theirs.
    await store?.flush(signal);
  }

  /** @type {PublicScorer['evaluateValues']} */
  async evaluateValues(traces, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: ofType('function') });
    if (!isArray(traces)) {
      throw codedError(TypeError, 'ERR_INVALID_TRACE', 'traces must be an array');
    }
    const length = readLength(traces, 'traces', 'ERR_INVALID_TRACE');
    signal?.throwIfAborted();
    if (this.#embeds) ensureConfigured();
    const call = signal && new native.NativeCall();
    const evaluate = () => this.#evaluateBatch({ traces, length, signal, onProgress }, call);
    const store = this.#store;
    try {
      return await cancellable(store ? () => this.#inPlace(evaluate) : evaluate, signal, () => cancel(call));
    } finally {
      tellWarning();
    }
  }

  /**
   * @param {Batch} options
   * @param {NativeCall | undefined} call
   */
  async #evaluateBatch({ traces, length, signal, onProgress }, call) {
    const store = this.#store;
    // A batch that can be aborted adds to a draft, so that an abort leaves the memory unchanged. A store has no draft, because its entries
    // cannot be taken back.
    const draftCall = store === undefined ? call : undefined;
    const batch = this.#native.batch(draftCall);
    /** @type {number[]} */
    const scores = [];
    /** @type {Array<number | Promise<number>>} */
    const inFlight = [];
    /** @type {NativeCall[]} the calls in flight, for a store */
    const calls = [];
    let failure;
    const takeFirst = async () => {
      const score = /** @type {number} */ (await inFlight.shift());
      calls.shift();
      // If all traces in flight are scored, no rejection reports the abort.
      signal?.throwIfAborted();
      scores.push(score);
      onProgress?.({ done: scores.length, total: length });
    };
    try {
      await batch.begin();
      for (let index = 0; index < length && failure === undefined; index++) {
        if (inFlight.length === MAX_IN_FLIGHT) await takeFirst();
        if (index % BREATH === BREATH - 1) await setImmediate();
        signal?.throwIfAborted();
        try {
          const own = store && new native.NativeCall();
          const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
          const reply =
            store === undefined
              ? fromAddon(() => batch.evaluate(trace))
              : explainByStore(store, batch, trace, { call: own, signal }).then(scoreOf);
          // Its rejection is handled later.
          if (typeof reply !== 'number') reply.catch(() => {});
          inFlight.push(reply);
          if (own !== undefined) calls.push(own);
        } catch (error) {
          failure = errorOfTrace(error, index);
        }
      }
      // The reply to an empty batch also waits for earlier replies.
      if (inFlight.length === 0) await batch.afterOthers();
      // Commits or rolls back the draft, on which later calls depend.
      if (draftCall === undefined) batch.close();
      // Traces before a failure stay scored and remembered, as in single calls.
      while (inFlight.length > 0) await takeFirst();
      if (draftCall !== undefined) await fromAddon(() => batch.commit());
    } catch (error) {
      for (const own of calls) own.cancel();
      draftCall?.cancel();
      throw error;
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
    const store = this.#store;
    /** @returns {T | Promise<T>} */
    const begin = () =>
      store === undefined ? fromAddon(() => this.#inTurn(() => ask(call))) : this.#inPlace(() => ask(call));
    const result = await cancellable(begin, signal, () => cancel(call));
    tellWarning();
    return result;
  }

  /**
   * Makes a call with `begin` whose reply depends on a store. The addon keeps it behind the replies to earlier calls.
   *
   * @template T
   * @param {() => T | Promise<T>} begin
   * @returns {Promise<T>}
   */
  async #inPlace(begin) {
    const place = this.#native.takePlace();
    try {
      return await begin();
    } finally {
      await this.#native.leavePlace(place);
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

const scoreOf = (/** @type {ScoreBreakdown} */ { score }) => score;

/** The number of traces of a batch in flight: enough for every lane, and bounded memory. */
const MAX_IN_FLIGHT = 64;

/** The number of traces after which other work gets a turn, even if no trace waits. */
const BREATH = 256;

/** @typedef {ScoreBreakdown['noveltyBasis']} Basis */

/** @type {Partial<Record<Basis, Basis>>} the bases of the addon that a store has in their place */
const STORE_BASES = { cache: 'store', 'empty-cache': 'empty-store' };

/**
 * Scores a trace by a store: the addon embeds, the store compares, and the addon scores. Throws for an invalid trace. Embeddings resolve in the
 * order of the calls, so the store is asked in that order.
 *
 * @param {InstanceType<typeof StoreWithFallback>} store
 * @param {NativeScorer | NativeBatch} embedder
 * @param {unknown} trace
 * @param {{ remember?: boolean, call: NativeCall | undefined, signal: AbortSignal | undefined }} options
 * @returns {Promise<ScoreBreakdown>}
 */
function explainByStore(store, embedder, trace, { remember = true, call, signal }) {
  return fromAddon(() => embedder.embed(trace, call)).then(async (embedded) => {
    const entry = entryOf(embedded);
    if (entry === null) return embedded.score(null);
    const { comparison, isLocal } = await store.ask(entry, remember, call, signal);
    const [nearest] = comparison;
    // The addon reads all fields; a neighbour by a vector has no parts.
    const neighbour = nearest && { lexical: null, contained: null, embedded: null, ...nearest };
    const breakdown = fromAddon(() => embedded.score(neighbour));
    const { noveltyBasis } = breakdown;
    return isLocal ? breakdown : { ...breakdown, noveltyBasis: STORE_BASES[noveltyBasis] ?? noveltyBasis };
  });
}

/**
 * Returns an entry for a store; null if there is nothing to compare. Copies, so that the arrays and the object are of the caller's realm.
 *
 * @param {EmbeddedTrace} embedded
 */
function entryOf({ id, vector, words, model, method }) {
  if (vector === null && words === null) return null;
  return {
    id,
    vectors: vector === null ? [] : [new Float32Array(vector)],
    ...(words === null ? {} : { words: new Uint8Array(words) }),
    model: model && { model: model.model, dtype: model.dtype },
    method: method ?? undefined,
  };
}

/** @type {OptionReader<'default' | null>} */
function readEmbedder(value, path) {
  if (value === null || value === 'default') return value;
  throw invalidOption(RangeError, `${path} must be 'default' or null`);
}

/**
 * @template {OwnMemory | NoveltyStore} Memory
 * @typedef {{ memory: Memory, novelty: NoveltyMethod }} Known
 */

/**
 * Reads a memory of any kind. A store is recognised by its methods, because it may be an object of any class.
 *
 * @type {OptionReader<Known<OwnMemory | NoveltyStore>>}
 */
function readMemory(memory, path) {
  if (isVectorCache(memory) || isTraceMemory(memory)) return readOwnMemory(memory, path);
  if (memory === null || typeof memory !== 'object') {
    throw invalidOption(TypeError, `${path} must be a VectorCache, a TraceMemory or a NoveltyStore`);
  }
  const read = (/** @type {string} */ name) =>
    readFrom(memory, name, `${path}.${name}`, 'ERR_INVALID_OPTION') ?? undefined;
  const given = read('novelty');
  const novelty = given === undefined ? 'prefix' : readMethod(given, `${path}.novelty`);
  const forTraces = novelty === 'prefix' ? [] : ['nearestTraces'];
  for (const method of ['compareAndAdd', 'compareAndAddBatch', 'nearest', ...forTraces, 'size']) {
    if (typeof read(method) !== 'function') {
      throw invalidOption(TypeError, `${path}.${method} must be a function`);
    }
  }
  return { memory: /** @type {NoveltyStore} */ (memory), novelty };
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
    const message = 'options.fallback is for a NoveltyStore: a memory of this process does not fail';
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
