'use strict';

const { setImmediate } = require('node:timers/promises');

const { cancellable } = require('./abort.js');
const { invalidOption, readCallOptions, readOption } = require('./call-options.js');
const { DIMENSIONS, ensureConfigured, tellWarning } = require('./embedder.js');
const { codedError, localError } = require('./errors.js');
const native = require('./loader.js').addon;
const { isArray, readFrom } = require('./reading.js');
const { VectorCache, nativeOf } = require('./vector-cache.js');

/** The default capacity where a trace is remembered by up to 32 windows: as many traces as the SDK remembers. */
const FULL_MAX_ELEMENTS = 32_000;

class Scorer {
  #native;
  #cache;
  /** Settles when the batches that were begun have handed in all their traces; null if there are none. */
  #batches = null;
  /** Settles, and never rejects, when the last call has. */
  #lastReply;

  constructor(options = {}) {
    const { cache, novelty, profiles } = readOptions(options);
    this.#cache = cache;
    try {
      this.#native = new native.NativeScorer(nativeOf(cache), profiles, novelty);
    } catch (error) {
      throw localError(error);
    }
  }

  get cache() {
    return this.#cache;
  }

  // An async function turns what is thrown into a rejection, and makes the promise in the caller's realm.
  async evaluateValue(trace, options) {
    const { signal } = readCallOptions(options);
    return this.#settle(signal, (call) =>
      this.#batches === null
        ? this.#native.evaluate(trace, call)
        : this.#afterBatches(this.#native.prepare(trace, true, call), (prepared) => prepared.evaluate()),
    );
  }

  async explain(trace, options) {
    const { signal, remember = true } = readCallOptions(options, { remember: 'boolean' });
    const breakdown = await this.#settle(signal, (call) => {
      const prepared = this.#native.prepare(trace, remember, call);
      return this.#batches === null
        ? prepared.explain()
        : this.#afterBatches(prepared, () => prepared.explain());
    });
    return toBreakdown(breakdown);
  }

  async evaluateValues(traces, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: 'function' });
    if (!isArray(traces)) {
      throw codedError(TypeError, 'ERR_INVALID_TRACE', 'traces must be an array');
    }
    const length = readFrom(traces, 'length', 'traces.length', 'ERR_INVALID_TRACE');
    signal?.throwIfAborted();
    ensureConfigured();
    const before = this.#batches;
    let handedIn;
    const turn = new Promise((resolve) => {
      handedIn = resolve;
    });
    this.#batches = turn;
    // What an aborted batch has added must be taken back; without a signal it need not be kept apart.
    const batch = signal && this.#native.beginBatch();
    const scores = (async () => {
      try {
        await before;
        return await this.#evaluateInWindows({ traces, length, signal, batch, onProgress, handedIn });
      } finally {
        handedIn();
        if (this.#batches === turn) this.#batches = null;
      }
    })();
    try {
      return await cancellable(this.#inOrder(scores), batch, signal);
    } catch (error) {
      throw localError(error);
    } finally {
      tellWarning();
    }
  }

  async #evaluateInWindows({ traces, length, signal, batch, onProgress, handedIn }) {
    const scores = [];
    const inFlight = [];
    let failure;
    const takeFirst = async () => {
      scores.push(await inFlight.shift());
      onProgress?.({ done: scores.length, total: length });
    };
    for (let index = 0; index < length && failure === undefined; index++) {
      if (inFlight.length === WINDOW) await takeFirst();
      if (index % BREATH === BREATH - 1) await setImmediate();
      signal?.throwIfAborted();
      try {
        inFlight.push(handled(this.#native.evaluate(traces[index], batch)));
      } catch (error) {
        failure = errorOfElement(index, localError(error));
      }
    }
    const committed = batch && handled(this.#native.commit(batch));
    handedIn();
    // Those before a failure are scored and remembered, as they would be one after another.
    while (inFlight.length > 0) await takeFirst();
    await committed;
    if (failure !== undefined) throw failure;
    return scores;
  }

  /** Makes a call with `begin`, and settles after the calls before it. */
  async #settle(signal, begin) {
    try {
      signal?.throwIfAborted();
      ensureConfigured();
      const call = signal && new native.NativeCall();
      const result = await cancellable(this.#inOrder(begin(call)), call, signal);
      tellWarning();
      return result;
    } catch (error) {
      throw localError(error);
    }
  }

  /** The trace was read at once, because it may change after the call; it is scored when its turn comes. */
  async #afterBatches(prepared, score) {
    await this.#batches;
    return score(prepared);
  }

  /**
   * The reply to a call, after those to the calls before: each travels from the inference thread to the event
   * loop on its own, where it can overtake others.
   */
  #inOrder(reply) {
    // Without an embedder there is nothing to wait for.
    if (typeof reply.then !== 'function') return reply;
    const before = this.#lastReply;
    const settled = (async () => {
      try {
        return await reply;
      } finally {
        await before;
      }
    })();
    const ignore = () => {};
    this.#lastReply = settled.then(ignore, ignore);
    return settled;
  }
}

/** So many traces of a batch are in flight: enough for every lane, and little memory however large the batch. */
const WINDOW = 64;

/** After so many traces other work gets a turn, also where scoring one needs no waiting. */
const BREATH = 256;

/** A promise whose rejection may be looked at later. */
function handled(reply) {
  if (typeof reply !== 'number') reply.catch(() => {});
  return reply;
}

function errorOfElement(index, error) {
  const path = `traces[${index}]`;
  if (error?.code !== 'ERR_INVALID_TRACE') {
    return codedError(TypeError, 'ERR_INVALID_TRACE', `${path} could not be read: it threw`, error);
  }
  // The message begins with the path, and that with `trace`.
  const message = path + error.message.slice('trace'.length);
  return codedError(error.constructor, error.code, message, error.cause);
}

/** A copy, so that the objects are of the caller's realm, with what belongs together in one object. */
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

function byDimension([complexity, novelty, toolDiversity, outcome]) {
  return { complexity, novelty, toolDiversity, outcome };
}

function readOptions(options) {
  if (options === null || typeof options !== 'object' || isArray(options)) {
    throw invalidOption(TypeError, 'options must be an object');
  }
  const novelty = readOption(options, 'novelty') ?? 'prefix';
  if (novelty !== 'prefix' && novelty !== 'full') {
    throw invalidOption(RangeError, "options.novelty must be 'prefix' or 'full'");
  }
  const embedder = readOption(options, 'embedder');
  if (embedder !== undefined && embedder !== null && embedder !== 'default') {
    throw invalidOption(RangeError, "options.embedder must be 'default' or null");
  }
  return {
    cache: readCache(options, novelty),
    // Without an embedder nothing is compared.
    novelty: embedder === null ? undefined : novelty,
    profiles: readProfiles(readOption(options, 'weights')),
  };
}

function readCache(options, novelty) {
  const cache = readOption(options, 'cache');
  if (cache === undefined) {
    return new VectorCache(novelty === 'full' ? { maxElements: FULL_MAX_ELEMENTS } : {});
  }
  if (nativeOf(cache) === undefined) {
    throw invalidOption(TypeError, 'options.cache must be a VectorCache');
  }
  if (cache.dimensions !== DIMENSIONS) {
    const message = `options.cache must have ${DIMENSIONS} dimensions, those of an embedding, got ${cache.dimensions}`;
    throw invalidOption(RangeError, message);
  }
  return cache;
}

/** The profiles for the addon, which checks that the weights add up. */
function readProfiles(weights) {
  if (weights === undefined) return [];
  requireObject(weights, 'options.weights');
  let names;
  try {
    names = Object.keys(weights);
  } catch (cause) {
    throw codedError(TypeError, 'ERR_INVALID_OPTION', 'options.weights could not be read: it threw', cause);
  }
  return names.map((name) => {
    const path = `options.weights[${JSON.stringify(name)}]`;
    const given = readFrom(weights, name, path, 'ERR_INVALID_OPTION');
    requireObject(given, path);
    const profile = { name };
    for (const dimension of ['complexity', 'novelty', 'toolDiversity', 'outcome']) {
      const value = readFrom(given, dimension, `${path}.${dimension}`, 'ERR_INVALID_OPTION');
      if (typeof value !== 'number') {
        throw invalidOption(TypeError, `${path}.${dimension} must be a number`);
      }
      profile[dimension] = value;
    }
    return profile;
  });
}

function requireObject(value, path) {
  if (value === null || typeof value !== 'object' || isArray(value)) {
    throw invalidOption(TypeError, `${path} must be an object`);
  }
}

module.exports = { Scorer };
