'use strict';

const { setImmediate } = require('node:timers/promises');
const { isMap } = require('node:util').types;

const { cancellable, throwIfAborted, untilAborted } = require('./calls/abort.js');
const {
  invalidOption,
  readCallOptions,
  readOption,
  requireObject,
  requireOptions,
} = require('./calls/options.js');
const { DIMENSIONS, ensureConfigured, tellWarning } = require('./embedder.js');
const { codedError, fromAddon } = require('./calls/errors.js');
const { custom, inspectAs } = require('./inspect.js');
const native = require('./loader.js').addon;
const { isArray, readFrom, readLength } = require('./calls/reading.js');
const { StoreMemory } = require('./store/fallback.js');
const { VectorCache, isVectorCache, nativeOf } = require('./vector-cache.js');

/**
 * @import { AbortSignalLike, BatchOptions, BatchProgress, CallOptions, ExplainOptions, NoveltyStore, ReadonlyReasoningTrace,
 *   ScoreBreakdown, ScorerOptions } from '../index.js'
 * @import { Scorer as PublicScorer, VectorCache as PublicCache } from '../index.js'
 * @import { NativeBreakdown, NativeCall, NativeModelIdentity, NativeProfile, NativeVectorCache, PreparedTrace } from './binding.js'
 */

/**
 * A call of many traces. Its `draft` is what the memory keeps only at the end.
 *
 * @typedef {object} Batch
 * @property {readonly unknown[]} traces
 * @property {number} length
 * @property {AbortSignalLike | undefined} signal
 * @property {NativeCall | undefined} draft
 * @property {((progress: BatchProgress) => void) | undefined} onProgress
 */

/**
 * What the addon tells of a score. With a store, its name takes the place of the cache's in what novelty rests on.
 *
 * @typedef {Omit<NativeBreakdown, 'noveltyBasis'> & { noveltyBasis: ScoreBreakdown['noveltyBasis'] }} Found
 */

/** @type {Record<NativeBreakdown['noveltyBasis'], ScoreBreakdown['noveltyBasis']>} */
const STORE_BASES = { cache: 'store', 'empty-cache': 'empty-store', 'no-embedder': 'no-embedder' };

/** The default capacity where a trace is remembered by up to 32 windows: as many traces as the SDK remembers. */
const FULL_MAX_ELEMENTS = 32_000;

/**
 * Scores traces with a memory and weights of its own. All scorers of a process share its embedder.
 *
 * @implements {PublicScorer}
 */
class Scorer {
  #native;
  #cache;
  /** How traces are compared, and the store: only to be shown. */
  #shown;
  /** What asks the store; undefined where the cache is the memory. */
  #storeMemory;
  /**
   * Settles, and never rejects, when the last trace for the store has been embedded.
   *
   * @type {Promise<void> | undefined}
   */
  #lastEmbedded;
  /**
   * Settles when the batches that were begun let the calls after them go on; null if there are none.
   *
   * @type {Promise<void> | null}
   */
  #batches = null;
  /**
   * Settles, and never rejects, when the last call has; undefined if none is under way.
   *
   * @type {Promise<void> | undefined}
   */
  #lastReply;

  /**
   * Makes a scorer; nothing is loaded yet. Throws `ERR_INVALID_OPTION`.
   *
   * @param {ScorerOptions} [options]
   */
  constructor(options = {}) {
    const { cache, novelty, profiles, store, onStoreError } = readOptions(options);
    this.#cache = cache;
    this.#shown = { novelty: novelty ?? null, store };
    if (store !== undefined && novelty !== undefined) {
      this.#storeMemory = new StoreMemory(store, cache, onStoreError);
    }
    const memory = /** @type {NativeVectorCache} */ (nativeOf(cache));
    this.#native = fromAddon(() => new native.NativeScorer(memory, profiles, novelty));
  }

  /**
   * The memory: the live one, not a copy.
   *
   * @returns {PublicCache}
   */
  get cache() {
    return this.#cache;
  }

  /** @type {import('./inspect.js').Inspect} */
  [custom](depth, options) {
    return inspectAs('Scorer', { ...this.#shown, cache: this.#cache }, depth, options);
  }

  /**
   * Scores a trace, 0 to 1, and remembers it. Rejects with `ERR_INVALID_TRACE`.
   *
   * @param {ReadonlyReasoningTrace} trace
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  // An async function turns what is thrown into a rejection, and makes the promise in the caller's realm.
  async evaluateValue(trace, options) {
    const { signal } = readCallOptions(options);
    return this.#settle(signal, (call) => this.#evaluate(trace, call, signal));
  }

  /**
   * Scores a trace and tells how the score came about.
   *
   * @param {ReadonlyReasoningTrace} trace
   * @param {ExplainOptions} [options]
   * @returns {Promise<ScoreBreakdown>}
   */
  async explain(trace, options) {
    const { signal, remember = true } = readCallOptions(options, { remember: 'boolean' });
    return this.#settle(signal, async (call) => {
      const prepared = this.#prepare(trace, remember, call);
      if (this.#batches !== null) await this.#batches;
      if (this.#storeMemory === undefined) {
        return toBreakdown(await fromAddon(() => prepared.explain()));
      }
      return toBreakdown(await this.#explainWithStore(prepared, remember, call, signal));
    });
  }

  /**
   * Gives the store what it has missed, at once. Rejects with what the store fails with.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async flush(options) {
    const { signal } = readCallOptions(options);
    throwIfAborted(signal);
    // What the calls before this one have found missing is part of it.
    if (this.#lastReply !== undefined) await untilAborted(this.#lastReply, signal);
    await this.#storeMemory?.flush(signal);
  }

  /**
   * Scores many traces, several at a time: the scores are those of one call after another.
   *
   * @param {readonly ReadonlyReasoningTrace[]} traces
   * @param {BatchOptions} [options]
   * @returns {Promise<number[]>}
   */
  async evaluateValues(traces, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: 'function' });
    if (!isArray(traces)) {
      throw codedError(TypeError, 'ERR_INVALID_TRACE', 'traces must be an array');
    }
    const length = readLength(traces, 'traces', 'ERR_INVALID_TRACE');
    throwIfAborted(signal);
    ensureConfigured();
    // What an aborted batch has added must be taken back; without a signal it need not be kept apart. A store keeps
    // what it was given.
    const draft = signal && this.#storeMemory === undefined ? this.#native.beginBatch() : undefined;
    const call = draft ?? (signal && new native.NativeCall());
    const begin = () => this.#inOrder(this.#evaluateBatch({ traces, length, signal, draft, onProgress }));
    try {
      return await cancellable(begin, call, signal);
    } finally {
      tellWarning();
    }
  }

  /**
   * Has the calls that come later wait until all traces are handed in, and a draft is committed.
   *
   * @param {Batch} batch
   */
  async #evaluateBatch(batch) {
    const before = this.#batches;
    let handedIn = () => {};
    /** @type {Promise<void>} */
    const turn = new Promise((resolve) => {
      handedIn = resolve;
    });
    this.#batches = turn;
    // Just before those that wait go on, so that nobody overtakes them.
    turn.then(() => {
      if (this.#batches === turn) this.#batches = null;
    });
    try {
      await before;
      return await this.#evaluateInWindows({ ...batch, handedIn });
    } finally {
      handedIn();
    }
  }

  /** @param {Batch & { handedIn: () => void }} batch */
  async #evaluateInWindows({ traces, length, signal, draft, onProgress, handedIn }) {
    /** @type {number[]} */
    const scores = [];
    /** @type {Array<number | Promise<number>>} */
    const inFlight = [];
    /**
     * The calls of those in flight, for a store.
     *
     * @type {NativeCall[]}
     */
    const calls = [];
    let failure;
    const takeFirst = async () => {
      const score = /** @type {number} */ (await inFlight.shift());
      calls.shift();
      // Those in flight may all be scored by now, so nothing else would tell.
      throwIfAborted(signal);
      scores.push(score);
      onProgress?.({ done: scores.length, total: length });
    };
    try {
      for (let index = 0; index < length && failure === undefined; index++) {
        if (inFlight.length === WINDOW) await takeFirst();
        if (index % BREATH === BREATH - 1) await setImmediate();
        throwIfAborted(signal);
        try {
          const call = this.#storeMemory === undefined ? draft : new native.NativeCall();
          const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
          inFlight.push(handled(this.#evaluateNow(trace, call, signal)));
          if (this.#storeMemory !== undefined && call !== undefined) calls.push(call);
        } catch (error) {
          failure = errorOfElement(index, error);
        }
      }
      // Whether a draft is remembered is known at the end, and the calls that come later depend on it.
      if (draft === undefined) handedIn();
      // Those before a failure are scored and remembered, as they would be one after another.
      while (inFlight.length > 0) await takeFirst();
    } catch (error) {
      for (const call of calls) call.cancel();
      draft?.cancel();
      throw error;
    }
    if (draft !== undefined) await fromAddon(() => this.#native.commit(draft));
    if (failure !== undefined) throw failure;
    return scores;
  }

  /**
   * The trace is read at once, because it may change after the call; it is scored when its turn comes.
   *
   * @param {unknown} trace
   * @param {NativeCall | undefined} call
   * @param {AbortSignalLike | undefined} signal
   * @returns {number | Promise<number>}
   */
  #evaluate(trace, call, signal) {
    if (this.#batches === null) return this.#evaluateNow(trace, call, signal);
    const prepared = this.#prepare(trace, true, call);
    const evaluate = async () => {
      await this.#batches;
      if (this.#storeMemory === undefined) return fromAddon(() => prepared.evaluate());
      return (await this.#explainWithStore(prepared, true, call, signal)).score;
    };
    return evaluate();
  }

  /**
   * @param {unknown} trace
   * @param {NativeCall | undefined} call
   * @param {AbortSignalLike | undefined} signal
   * @returns {number | Promise<number>}
   */
  #evaluateNow(trace, call, signal) {
    if (this.#storeMemory === undefined) return fromAddon(() => this.#native.evaluate(trace, call));
    const prepared = this.#prepare(trace, true, call);
    return this.#explainWithStore(prepared, true, call, signal).then(({ score }) => score);
  }

  /**
   * @param {unknown} trace
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   */
  #prepare(trace, remember, call) {
    return fromAddon(() => this.#native.prepare(trace, remember, call));
  }

  /**
   * Embeds a trace, asks the store in the order of the calls, and scores.
   *
   * @param {PreparedTrace} prepared
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   * @param {AbortSignalLike | undefined} signal
   * @returns {Promise<Found>}
   */
  async #explainWithStore(prepared, remember, call, signal) {
    const before = this.#lastEmbedded;
    const embedding = fromAddon(() => prepared.embed());
    const ignore = () => {};
    const turn = Promise.all([embedding.catch(ignore), before]).then(ignore);
    this.#lastEmbedded = turn;
    const embedded = await embedding;
    await turn;
    const memory = /** @type {InstanceType<typeof StoreMemory>} */ (this.#storeMemory);
    const { vectors } = embedded;
    if (vectors === null) return embedded.score([]);
    const { model, dtype } = /** @type {NativeModelIdentity} */ (embedded.model);
    const entry = {
      id: embedded.id,
      // Copies, so that the arrays and the object are of the caller's realm.
      vectors: Array.from(vectors, (vector) => new Float32Array(vector)),
      model: { model, dtype },
      method: embedded.method ?? undefined,
    };
    const { comparison, isLocal } = await memory.ask(entry, remember, call, signal);
    const breakdown = fromAddon(() => embedded.score(comparison));
    return isLocal ? breakdown : { ...breakdown, noveltyBasis: STORE_BASES[breakdown.noveltyBasis] };
  }

  /**
   * Makes a call with `begin`, and settles after the calls before it.
   *
   * @template T
   * @param {AbortSignalLike | undefined} signal
   * @param {(call: NativeCall | undefined) => T | Promise<T>} begin
   * @returns {Promise<T>}
   */
  async #settle(signal, begin) {
    throwIfAborted(signal);
    ensureConfigured();
    const call = signal && new native.NativeCall();
    const result = await cancellable(() => this.#inOrder(attempt(() => begin(call))), call, signal);
    tellWarning();
    return result;
  }

  /**
   * The reply to a call, after those to the calls before: each travels from the inference thread to the event
   * loop on its own, where it can overtake others.
   *
   * @template T
   * @param {T | Promise<T>} reply
   * @returns {T | Promise<T>}
   */
  #inOrder(reply) {
    const before = this.#lastReply;
    // Without an embedder there is nothing to wait for, but for calls from before that was known.
    const { then } = /** @type {Partial<Promise<T>>} */ (reply);
    if (typeof then !== 'function' && before === undefined) return reply;
    const settled = (async () => {
      try {
        return await reply;
      } finally {
        await before;
      }
    })();
    const ignore = () => {};
    const last = settled.then(ignore, ignore).then(() => {
      if (this.#lastReply === last) this.#lastReply = undefined;
    });
    this.#lastReply = last;
    return settled;
  }
}

/** So many traces of a batch are in flight: enough for every lane, and little memory however large the batch. */
const WINDOW = 64;

/** After so many traces other work gets a turn, also where scoring one needs no waiting. */
const BREATH = 256;

/**
 * What a call gives; what it throws, as for an invalid trace, as a rejection, which has its turn like other replies.
 *
 * @template T
 * @param {() => T} begin
 * @returns {T | Promise<never>}
 */
function attempt(begin) {
  try {
    return begin();
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * A promise whose rejection may be looked at later.
 *
 * @param {number | Promise<number>} reply
 */
function handled(reply) {
  if (typeof reply !== 'number') reply.catch(() => {});
  return reply;
}

/**
 * The error for an element of a batch, from that for the trace alone.
 *
 * @param {number} index
 * @param {unknown} thrown
 */
function errorOfElement(index, thrown) {
  const error = /** @type {import('./calls/errors.js').CodedError} */ (thrown);
  if (error.code !== 'ERR_INVALID_TRACE') return thrown;
  // The message begins with the path, and that with `trace`.
  const message = `traces[${index}]${error.message.slice('trace'.length)}`;
  const Class = /** @type {import('./calls/errors.js').ErrorClass} */ (error.constructor);
  return codedError(Class, error.code, message, error.cause);
}

/**
 * A copy, so that the objects are of the caller's realm, with what belongs together in one object.
 *
 * @param {Found} found
 * @returns {ScoreBreakdown}
 */
function toBreakdown(found) {
  const { nearest, overrides } = found;
  return {
    score: found.score,
    dimensions: byDimension(found.dimensions),
    profile: found.profile,
    weights: byDimension(found.weights),
    contributions: byDimension(found.contributions),
    composite: found.composite,
    overrides: Array.from(overrides, ({ rule, before, after }) => ({ rule, before, after })),
    noveltyBasis: found.noveltyBasis,
    nearest: nearest && { label: nearest.label, similarity: nearest.similarity, share: nearest.share },
    tokens: found.tokens,
    truncated: found.truncated,
  };
}

/** @param {number[]} numbers */
function byDimension([complexity, novelty, toolDiversity, outcome]) {
  return { complexity, novelty, toolDiversity, outcome };
}

/** @param {unknown} given */
function readOptions(given) {
  const names = ['cache', 'embedder', 'novelty', 'onStoreError', 'store', 'weights'];
  const options = requireOptions(given, names);
  const novelty = readOption(options, 'novelty') ?? 'prefix';
  if (novelty !== 'prefix' && novelty !== 'full') {
    throw invalidOption(RangeError, "options.novelty must be 'prefix' or 'full'");
  }
  const embedder = readOption(options, 'embedder');
  if (embedder !== undefined && embedder !== null && embedder !== 'default') {
    throw invalidOption(RangeError, "options.embedder must be 'default' or null");
  }
  const onStoreError = readOption(options, 'onStoreError') ?? 'reject';
  if (onStoreError !== 'reject' && onStoreError !== 'local') {
    throw invalidOption(RangeError, "options.onStoreError must be 'reject' or 'local'");
  }
  return {
    store: readStore(options),
    onStoreError: /** @type {'reject' | 'local'} */ (onStoreError),
    cache: readCache(options, novelty),
    // Without an embedder nothing is compared.
    novelty: embedder === null ? undefined : /** @type {'prefix' | 'full'} */ (novelty),
    profiles: readProfiles(readOption(options, 'weights')),
  };
}

/**
 * A store is told by its methods: it may be anybody's.
 *
 * @param {object} options
 * @returns {NoveltyStore | undefined}
 */
function readStore(options) {
  const store = readOption(options, 'store');
  if (store === undefined) return undefined;
  if (store === null || typeof store !== 'object') {
    throw invalidOption(TypeError, 'options.store must be a NoveltyStore');
  }
  for (const method of ['compareAndAdd', 'compareAndAddBatch', 'nearest', 'size']) {
    const path = `options.store.${method}`;
    if (typeof readFrom(store, method, path, 'ERR_INVALID_OPTION') !== 'function') {
      throw invalidOption(TypeError, `${path} must be a function`);
    }
  }
  return /** @type {NoveltyStore} */ (store);
}

/**
 * @param {object} options
 * @param {'prefix' | 'full'} novelty
 * @returns {PublicCache}
 */
function readCache(options, novelty) {
  const cache = readOption(options, 'cache');
  if (cache === undefined) {
    return new VectorCache(novelty === 'full' ? { maxElements: FULL_MAX_ELEMENTS } : {});
  }
  if (!isVectorCache(cache)) {
    throw invalidOption(TypeError, 'options.cache must be a VectorCache');
  }
  if (cache.dimensions !== DIMENSIONS) {
    const message = `options.cache must have ${DIMENSIONS} dimensions, those of an embedding, got ${cache.dimensions}`;
    throw invalidOption(RangeError, message);
  }
  return cache;
}

/**
 * The profiles for the addon, which checks that the weights add up.
 *
 * @param {unknown} weights
 * @returns {NativeProfile[]}
 */
function readProfiles(weights) {
  if (weights === undefined) return [];
  const named = requireObject(weights, 'options.weights');
  if (isMap(named)) throw invalidOption(TypeError, 'options.weights must be an object, not a Map');
  let names;
  try {
    names = Object.keys(named);
  } catch (cause) {
    throw codedError(TypeError, 'ERR_INVALID_OPTION', 'options.weights could not be read: it threw', cause);
  }
  return names.map((name) => {
    const path = `options.weights[${JSON.stringify(name)}]`;
    const given = requireObject(readFrom(named, name, path, 'ERR_INVALID_OPTION'), path);
    const profile = { name, complexity: 0, novelty: 0, toolDiversity: 0, outcome: 0 };
    for (const dimension of /** @type {const} */ (['complexity', 'novelty', 'toolDiversity', 'outcome'])) {
      const value = readFrom(given, dimension, `${path}.${dimension}`, 'ERR_INVALID_OPTION');
      if (typeof value !== 'number') {
        throw invalidOption(TypeError, `${path}.${dimension} must be a number`);
      }
      profile[dimension] = value;
    }
    return profile;
  });
}

module.exports = { Scorer };
