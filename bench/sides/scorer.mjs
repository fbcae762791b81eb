// The sides that score: `ours`, and `oracle`, which is transformers.js on the main thread with its default session options, and
// the arithmetic in JavaScript.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { loadPipeline } from '../../__test__/oracle/pipeline.mjs';
import { OracleScorer, textOf } from '../../__test__/oracle/score.js';
import { modelDirectory } from '../../__test__/support/paths.js';
import { timed } from '../measure.mjs';
import { makeTrace } from '../workload.mjs';
import { serve } from './serve.mjs';

/** @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace */

/**
 * @typedef {object} Scorer
 * @property {() => Promise<object>} status
 * @property {(trace: ReasoningTrace) => Promise<number>} evaluate
 * @property {(traces: ReasoningTrace[]) => Promise<ArrayLike<number>>} evaluateAll
 * @property {() => void} clear empties the memory
 */

/** @type {Record<string, () => Promise<Scorer>>} */
const sides = {
  async ours() {
    const native = await import('../../index.js');
    return {
      status: () => native.embedderStatus(),
      evaluate: (trace) => native.evaluateValue(trace),
      evaluateAll: (traces) => Promise.all(traces.map(native.evaluateValue)),
      clear: () => native._getLocalCache().clear(),
    };
  },
  async oracle() {
    const extract = await loadPipeline(await import('@huggingface/transformers'), modelDirectory);
    let scorer = new OracleScorer();
    const evaluate = async (/** @type {ReasoningTrace} */ trace) => {
      const { data } = await extract(textOf(trace), { pooling: 'mean', normalize: true });
      return scorer.evaluate(trace, Float32Array.from(data));
    };
    return {
      status: async () => ({}),
      evaluate,
      async evaluateAll(traces) {
        const scores = [];
        for (const trace of traces) scores.push(await evaluate(trace));
        return scores;
      },
      clear() {
        scorer = new OracleScorer();
      },
    };
  },
};

/** @type {Scorer} */
let scorer;

serve({
  status: () => scorer.status(),
  clear: () => scorer.clear(),

  /** Import to first score. Nothing of the side is loaded before. */
  async load({ trace }) {
    const made = makeTrace(trace);
    const [milliseconds, score] = await timed(async () => {
      scorer = await sides[process.argv[2]]();
      return scorer.evaluate(made);
    });
    return { milliseconds, score };
  },

  /** One after another, each timed, after a pause of so many milliseconds. */
  async score({ traces, pause = 0 }) {
    const milliseconds = [];
    const scores = [];
    for (const trace of traces.map(makeTrace)) {
      if (pause > 0) await sleep(pause);
      const [time, score] = await timed(() => scorer.evaluate(trace));
      milliseconds.push(time);
      scores.push(score);
    }
    return { milliseconds, scores };
  },

  /** All at once, timed together. */
  async scoreAll({ traces }) {
    const made = traces.map(makeTrace);
    const [milliseconds] = await timed(() => scorer.evaluateAll(made));
    return milliseconds;
  },

  /** Returns milliseconds for one call of the same trace, in batches. */
  async repeat({ trace, calls, batches }) {
    const made = makeTrace(trace);
    const milliseconds = [];
    for (let batch = 0; batch < batches; batch++) {
      const [time] = await timed(async () => {
        for (let call = 0; call < calls; call++) await scorer.evaluate(made);
      });
      milliseconds.push(time / calls);
    }
    return milliseconds;
  },

  /** Returns how late the latest timer comes while a trace is scored, in milliseconds. */
  stalls: ({ trace }) => {
    const made = makeTrace(trace);
    return latenessDuring(() => scorer.evaluate(made));
  },

  memory: () => process.memoryUsage.rss(),
});

/** The pause between two looks at the event loop. A loop that never sleeps would see more, but it would take a core from the measured code. */
const INTERVAL_MS = 1;

/** @param {() => Promise<unknown>} action */
async function latenessDuring(action) {
  const delays = monitorEventLoopDelay({ resolution: INTERVAL_MS });
  delays.enable();
  // A look tells of the time since the one before it: the first of none, and the last of a block until now.
  await sleep(5 * INTERVAL_MS);
  await action();
  await sleep(5 * INTERVAL_MS);
  delays.disable();
  return [delays.max / 1e6 - INTERVAL_MS];
}
