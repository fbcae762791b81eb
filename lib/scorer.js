'use strict';

const { setImmediate } = require('node:timers/promises');

const { cancellable } = require('./calls/cancel.js');
const { attempt, errorOfTrace, fromAddon } = require('./calls/errors.js');
const { InOrder } = require('./calls/in-order.js');
const { ofType, oneOf, readCallOptions, readOptions, recordOf } = require('./calls/options.js');
const { lengthOf, readFrom, wrongType } = require('./calls/reading.js');
const { ensureConfigured, tellWarning } = require('./embedder.js');
const native = require('./loader.js').addon;
const { StoreCalls } = require('./store/calls.js');
const { METHODS, TraceMemory, nativeOf } = require('./trace-memory.js');

/**
 * @import { NoveltyMethod, Score, Scorer as Public } from '../index.js'
 * @import { OptionReader } from './calls/options.js'
 * @import { NativeCall, NativeTraceMemory } from './binding.js'
 * @import { Store } from './store/calls.js'
 */

/**
 * Scores traces with a memory and weights of its own. All scorers of a process share its embedder.
 *
 * @implements {Public}
 */
class Scorer {
  #native;
  #inOrder = new InOrder();
  /** Whether it needs the embedder, which the first such call configures. */
  #embeds;
  /**
   * The calls to a store; undefined for a memory in this process.
   *
   * @type {InstanceType<typeof StoreCalls> | undefined}
   */
  #store;

  /** @param {ConstructorParameters<typeof Public>[0]} [options] */
  constructor(options = {}) {
    const { embed = true, memory, weights = [] } = readOptions(options, OPTIONS);
    const { method = 'prefix', own, store } = memory ?? {};
    // Without embeddings, only words are compared.
    const compares = embed || method === 'lexical';
    const held = own ?? nativeOf(new TraceMemory({ method }));
    this.#embeds = compares && method !== 'lexical';
    this.#native = fromAddon(() => new native.NativeScorer(weights, compares ? held : undefined));
    if (store !== undefined && compares) this.#store = new StoreCalls(store, own !== undefined);
  }

  /** @type {Public['score']} */
  async score(trace, options) {
    const { signal, remember = true } = readCallOptions(options, { remember: ofType('boolean') });
    signal?.throwIfAborted();
    if (this.#embeds) ensureConfigured();
    const call = signal && new native.NativeCall();
    const cancel = () => call?.cancel() === true;
    const begin = () => this.#begin(trace, remember, call);
    // A store replies to several calls in one turn of the event loop, so one that is cancelled waits for earlier ones.
    const reply =
      this.#store === undefined
        ? cancellable(() => this.#inOrder.reply(begin), signal, cancel)
        : this.#inOrder.reply(() => cancellable(begin, signal, cancel));
    try {
      return JSON.parse(await reply);
    } finally {
      tellWarning();
    }
  }

  /** @type {Public['scoreAll']} */
  async scoreAll(traces, options) {
    const { signal, onProgress } = readCallOptions(options, { onProgress: ofType('function') });
    const length = lengthOf(traces, 'traces', 'ERR_INVALID_TRACE');
    signal?.throwIfAborted();
    if (this.#embeds) ensureConfigured();
    /** @type {Array<{ call: NativeCall, reply: Promise<string> }>} */
    const inFlight = [];
    // From the last, because the engine works from the first: it would overtake us, and remember a trace behind cancelled ones.
    const cancelAll = () => {
      for (const { call } of [...inFlight].reverse()) call.cancel();
      return true;
    };
    /** @type {Score[]} */
    const scores = [];
    const takeFirst = async () => {
      const score = await inFlight[0].reply;
      inFlight.shift();
      // If all traces in flight are scored, no rejection reports the abort.
      signal?.throwIfAborted();
      scores.push(JSON.parse(score));
      onProgress?.({ done: scores.length, total: length });
    };
    const scoreEach = async () => {
      for (let index = 0; index < length; index++) {
        if (inFlight.length === MAX_IN_FLIGHT) await takeFirst();
        if (index % BREATH === BREATH - 1) await setImmediate();
        signal?.throwIfAborted();
        const call = new native.NativeCall();
        try {
          const trace = readFrom(traces, index, 'trace', 'ERR_INVALID_TRACE');
          const begun = this.#begin(trace, true, call);
          const reply = this.#inOrder.reply(() => begun);
          // Its rejection is handled later.
          reply.catch(() => {});
          inFlight.push({ call, reply });
        } catch (error) {
          // Traces before an invalid one are scored.
          while (inFlight.length > 0) await takeFirst();
          throw errorOfTrace(error, index);
        }
      }
      while (inFlight.length > 0) await takeFirst();
      return scores;
    };
    try {
      return await cancellable(scoreEach, signal, cancelAll);
    } catch (error) {
      cancelAll();
      throw error;
    } finally {
      tellWarning();
    }
  }

  /**
   * Begins to score a trace; the reply is a `Score` in JSON. Throws for an invalid trace.
   *
   * @param {unknown} trace
   * @param {boolean} remember
   * @param {NativeCall | undefined} call
   * @returns {string | Promise<string>}
   */
  #begin(trace, remember, call) {
    if (this.#store === undefined) return fromAddon(() => this.#native.explain(trace, remember, call));
    const embedding = fromAddon(() => this.#native.embed(trace, call));
    return this.#store.explain(embedding, remember, call);
  }
}

/** The number of traces of a batch in flight: enough for every lane, and bounded memory. */
const MAX_IN_FLIGHT = 64;

/** The number of traces after which other work gets a turn, even if no trace waits. */
const BREATH = 256;

/**
 * A memory of this process; or a store, with its fallback.
 *
 * @typedef {{ method: NoveltyMethod, own?: NativeTraceMemory, store?: Store }} Held
 */

/**
 * Reads a memory. A store is recognised by its methods, because it may be of another copy of this package.
 *
 * @type {OptionReader<Held>}
 */
function readMemory(memory, path) {
  const own = nativeOf(memory);
  if (own !== undefined) return { method: own.method, own };
  const read = (/** @type {string} */ name) => attempt(() => /** @type {any} */ (memory)[name], undefined);
  if (['compare', 'size'].every((name) => typeof read(name) === 'function')) {
    const store = /** @type {Store} */ (memory);
    return {
      method: oneOf(METHODS)(read('method'), `${path}.method`),
      own: nativeOf(read('fallback')),
      store,
    };
  }
  throw wrongType('ERR_INVALID_OPTION', path, 'a TraceMemory or a PostgresStore', memory);
}

const WEIGHTS = {
  complexity: ofType('number'),
  novelty: ofType('number'),
  toolDiversity: ofType('number'),
  outcomeConfidence: ofType('number'),
};
const DIMENSIONS = /** @type {Array<keyof typeof WEIGHTS>} */ (Object.keys(WEIGHTS));

const OPTIONS = {
  embed: ofType('boolean'),
  memory: readMemory,
  // For the addon, which checks their sums.
  weights: recordOf((profile, path) => Object.values(readOptions(profile, WEIGHTS, path, DIMENSIONS))),
};

/** The scorer of the process, whose memory all threads share. */
const processScorer = new Scorer({ memory: new TraceMemory(/** @type {any} */ (native.localMemory())) });

/** @type {typeof import('../index.js').evaluateValue} */
async function evaluateValue(trace) {
  const { value } = await processScorer.score(trace);
  return value;
}

module.exports = { Scorer, evaluateValue };
