'use strict';

const { setImmediate } = require('node:timers/promises');
const { isMap } = require('node:util').types;

const { cancellable, throwIfAborted, untilAborted } = require('./calls/abort.js');
const {
  invalidOption,
  ofType,
  oneOf,
  readCallOptions,
  readOptions,
  requireObject,
} = require('./calls/options.js');
const { ensureConfigured, tellWarning } = require('./embedder.js');
const { DIMENSIONS } = require('./embedding.js');
const { codedError, fromAddon } = require('./calls/errors.js');
const { custom, inspectAs } = require('./inspect.js');
const native = require('./loader.js').addon;
const { isArray, readFrom, readLength } = require('./calls/reading.js');
const { StoreWithFallback } = require('./store/fallback.js');
const { explainByStore } = require('./store/scoring.js');
const { VectorCache, isVectorCache, nativeOf } = require('./vector-cache.js');

/**
 * @import { AbortSignalLike, BatchOptions, BatchProgress, CallOptions, ExplainOptions, NoveltyStore, ReadonlyReasoningTrace,
 *   ScoreBreakdown, ScorerOptions } from '../index.js'
 * @import { Scorer as PublicScorer, VectorCache as PublicCache } from '../index.js'
 * @import { EmbeddedTrace, NativeBatch, NativeBreakdown, NativeCall, NativeProfile, NativeScorer, NativeVectorCache } from './binding.js'
 */

/**
 * A call of many traces.
 *
 * @typedef {object} Batch
 * @property {readonly unknown[]} traces
 * @property {number} length
 * @property {AbortSignalLike | undefined} signal
 * @property {((progress: BatchProgress) => void) | undefined} onProgress
 */

/** @typedef {import('./store/scoring.js').Found} Found */

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
  /**
   * The store; undefined where the cache is the memory.
   *
   * @type {InstanceType<typeof StoreWithFallback> | undefined}
   */
  #store;

  /**
   * Makes a scorer; nothing is loaded yet. Throws `ERR_INVALID_OPTION`.
   *
   * @param {ScorerOptions} [options]
   */
  constructor(options = {}) {
    const given = readOptions(options, OPTIONS);
    const { novelty: extent = 'prefix', store, onStoreError = 'reject', weights: profiles = [] } = given;
    const { cache = new VectorCache(extent === 'full' ? { maxElements: FULL_MAX_ELEMENTS } : {}) } = given;
    // Without an embedder nothing is compared.
    const novelty = given.embedder === null ? undefined : extent;
    this.#cache = cache;
    this.#shown = { novelty: novelty ?? null, store };
    if (store !== undefined && novelty !== undefined) {
      this.#store = new StoreWithFallback(store, cache, onStoreError);
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
    const store = this.#store;
    return this.#settle(signal, (call) => {
      if (store === undefined) return this.#native.evaluate(trace, call);
      return explainByStore(store, () => this.#native.embed(trace, call), true, call, signal).then(scoreOf);
    });
  }

  /**
   * Scores a trace and tells how the score came about.
   *
   * @param {ReadonlyReasoningTrace} trace
   * @param {ExplainOptions} [options]
   * @returns {Promise<ScoreBreakdown>}
   */
  async explain(trace, options) {
    const { signal, remember = true } = readCallOptions(options, { remember: ofType('boolean') });
    const store = this.#store;
    /** @param {NativeCall | undefined} call @returns {Found | Promise<Found>} */
    const ask = (call) => {
      if (store === undefined) return this.#native.explain(trace, remember, call);
      return explainByStore(store, () => this.#native.embed(trace, call), remember, call, signal);
    };
    return toBreakdown(await this.#settle(signal, ask));
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
    const store = this.#store;
    const others =
      store === undefined ? this.#native.afterOthers() : this.#native.leavePlace(this.#native.takePlace());
    if (others !== undefined) await untilAborted(others, signal);
    // All calls before this one are settled, so the store's missed batches include theirs.
    await store?.flush(signal);
  }

  /**
   * Scores many traces, several at a time: the scores are those of one call after another.
   *
   * @param {readonly ReadonlyReasoningTrace[]} traces
   * @param {BatchOptions} [options]
   * @returns {Promise<number[]>}
   */
  async evaluateValues(traces, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: ofType('function') });
    if (!isArray(traces)) {
      throw codedError(TypeError, 'ERR_INVALID_TRACE', 'traces must be an array');
    }
    const length = readLength(traces, 'traces', 'ERR_INVALID_TRACE');
    throwIfAborted(signal);
    ensureConfigured();
    const call = signal && new native.NativeCall();
    const evaluate = () => this.#evaluateBatch({ traces, length, signal, onProgress }, call);
    const store = this.#store;
    try {
      return await cancellable(store ? () => this.#inPlace(evaluate) : evaluate, call, signal);
    } finally {
      tellWarning();
    }
  }

  /**
   * @param {Batch} options
   * @param {NativeCall | undefined} call
   */
  async #evaluateBatch(options, call) {
    // An aborted batch must leave the memory as it was, so it adds to a draft; without a signal it cannot be aborted and needs
    // none. What a store was given cannot be taken back, so it has no draft either.
    const draftCall = this.#store === undefined ? call : undefined;
    const batch = this.#native.batch(draftCall);
    try {
      await batch.begin();
      return await this.#evaluateInFlight(options, batch, draftCall);
    } finally {
      batch.close();
    }
  }

  /**
   * @param {Batch} options
   * @param {NativeBatch} batch
   * @param {NativeCall | undefined} draftCall what the memory keeps it for, if only at the end
   */
  async #evaluateInFlight({ traces, length, signal, onProgress }, batch, draftCall) {
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
      // If all in flight are scored by now, no rejection would tell of the abort.
      throwIfAborted(signal);
      scores.push(score);
      onProgress?.({ done: scores.length, total: length });
    };
    try {
      for (let index = 0; index < length && failure === undefined; index++) {
        if (inFlight.length === MAX_IN_FLIGHT) await takeFirst();
        if (index % BREATH === BREATH - 1) await setImmediate();
        throwIfAborted(signal);
        try {
          const call = this.#store && new native.NativeCall();
          const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
          inFlight.push(handled(this.#evaluateOfBatch(batch, trace, call, signal)));
          if (call !== undefined) calls.push(call);
        } catch (error) {
          failure = errorOfElement(index, error);
        }
      }
      // The reply to a batch without a score comes after those to the calls before, too.
      if (inFlight.length === 0) await batch.afterOthers();
      // Whether a draft is remembered is known at the end, and the calls that come later depend on it.
      if (draftCall === undefined) batch.close();
      // Those before a failure are scored and remembered, as they would be one after another.
      while (inFlight.length > 0) await takeFirst();
    } catch (error) {
      for (const call of calls) call.cancel();
      draftCall?.cancel();
      throw error;
    }
    if (draftCall !== undefined) await fromAddon(() => batch.commit());
    if (failure !== undefined) throw failure;
    return scores;
  }

  /**
   * @param {NativeBatch} batch
   * @param {unknown} trace
   * @param {NativeCall | undefined} call for a store
   * @param {AbortSignalLike | undefined} signal
   * @returns {number | Promise<number>}
   */
  #evaluateOfBatch(batch, trace, call, signal) {
    if (this.#store === undefined) return fromAddon(() => batch.evaluate(trace));
    return explainByStore(this.#store, () => batch.embed(trace, call), true, call, signal).then(scoreOf);
  }

  /**
   * Makes a call with `ask`, and gives its reply.
   *
   * @template T
   * @param {AbortSignalLike | undefined} signal
   * @param {(call: NativeCall | undefined) => T | Promise<T>} ask
   * @returns {Promise<T>}
   */
  async #settle(signal, ask) {
    throwIfAborted(signal);
    ensureConfigured();
    const call = signal && new native.NativeCall();
    const store = this.#store;
    /** @returns {T | Promise<T>} */
    const begin = () =>
      store === undefined ? fromAddon(() => this.#inTurn(() => ask(call))) : this.#inPlace(() => ask(call));
    const result = await cancellable(begin, call, signal);
    tellWarning();
    return result;
  }

  /**
   * Makes a call with `begin` whose reply is made here, because it rests on a store. The addon keeps it in order: it comes
   * after the replies to the calls before.
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
   * The reply of the addon. An error that it throws, as for an invalid trace, is thrown after the replies to the calls before.
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

const scoreOf = (/** @type {Found} */ { score }) => score;

/** How many traces of a batch are in flight: enough for every lane, and little memory however large the batch. */
const MAX_IN_FLIGHT = 64;

/** After how many traces other work gets a turn, also where scoring one needs no waiting. */
const BREATH = 256;

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

/**
 * @param {unknown} value
 * @param {string} path
 */
function readEmbedder(value, path) {
  if (value === null || value === 'default') return value;
  throw invalidOption(RangeError, `${path} must be 'default' or null`);
}

/**
 * Recognises a store by its methods, because it may be an object of any class.
 *
 * @param {unknown} store
 * @param {string} path
 */
function readStore(store, path) {
  if (store === null || typeof store !== 'object') {
    throw invalidOption(TypeError, `${path} must be a NoveltyStore`);
  }
  for (const method of ['compareAndAdd', 'compareAndAddBatch', 'nearest', 'size']) {
    if (typeof readFrom(store, method, `${path}.${method}`, 'ERR_INVALID_OPTION') !== 'function') {
      throw invalidOption(TypeError, `${path}.${method} must be a function`);
    }
  }
  return /** @type {NoveltyStore} */ (store);
}

/**
 * @param {unknown} cache
 * @param {string} path
 * @returns {PublicCache}
 */
function readCache(cache, path) {
  if (!isVectorCache(cache)) throw invalidOption(TypeError, `${path} must be a VectorCache`);
  if (cache.dimensions !== DIMENSIONS) {
    const message = `${path} must have ${DIMENSIONS} dimensions, those of an embedding, got ${cache.dimensions}`;
    throw invalidOption(RangeError, message);
  }
  return cache;
}

/**
 * The profiles for the addon, which checks that the weights add up.
 *
 * @param {unknown} weights
 * @param {string} path
 * @returns {NativeProfile[]}
 */
function readProfiles(weights, path) {
  const named = requireObject(weights, path);
  if (isMap(named)) throw invalidOption(TypeError, `${path} must be an object, not a Map`);
  let names;
  try {
    names = Object.keys(named);
  } catch (cause) {
    throw codedError(TypeError, 'ERR_INVALID_OPTION', `${path} could not be read: it threw`, cause);
  }
  return names.map((name) => {
    const place = `${path}[${JSON.stringify(name)}]`;
    const given = requireObject(readFrom(named, name, place, 'ERR_INVALID_OPTION'), place);
    const profile = { name, complexity: 0, novelty: 0, toolDiversity: 0, outcome: 0 };
    for (const dimension of /** @type {const} */ (['complexity', 'novelty', 'toolDiversity', 'outcome'])) {
      const value = readFrom(given, dimension, `${place}.${dimension}`, 'ERR_INVALID_OPTION');
      if (typeof value !== 'number') {
        throw invalidOption(TypeError, `${place}.${dimension} must be a number`);
      }
      profile[dimension] = value;
    }
    return profile;
  });
}

const OPTIONS = {
  cache: readCache,
  embedder: readEmbedder,
  novelty: oneOf(['prefix', 'full']),
  onStoreError: oneOf(['reject', 'local']),
  store: readStore,
  weights: readProfiles,
};

module.exports = { Scorer };
