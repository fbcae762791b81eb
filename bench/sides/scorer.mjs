// The tasks for every side that scores.

import { setTimeout as sleep } from 'node:timers/promises';

import { makeTrace } from '../workload.mjs';
import { serve } from './serve.mjs';

/** @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace */

/**
 * @typedef {object} Scorer
 * @property {() => Promise<void>} load imports the side's packages
 * @property {() => Promise<object>} about its description, for the report
 * @property {(trace: ReasoningTrace) => Promise<number>} evaluate
 * @property {(traces: ReasoningTrace[]) => Promise<ArrayLike<number>>} evaluateAll
 * @property {() => void} clear empties the memory
 */

/** @param {Scorer} scorer */
export function serveScorer(scorer) {
  return serve({
    about: () => scorer.about(),
    clear: () => scorer.clear(),

    /** Import to first score. Nothing of the side is loaded before. */
    async load({ trace }) {
      const made = makeTrace(trace);
      const start = performance.now();
      await scorer.load();
      const score = await scorer.evaluate(made);
      return { milliseconds: performance.now() - start, score };
    },

    /** One after another, each timed. */
    async score({ traces }) {
      const milliseconds = [];
      const scores = [];
      for (const trace of traces) {
        const made = makeTrace(trace);
        const start = performance.now();
        scores.push(await scorer.evaluate(made));
        milliseconds.push(performance.now() - start);
      }
      return { milliseconds, scores };
    },

    /** All at once, timed together. */
    async scoreAll({ traces }) {
      const made = traces.map(makeTrace);
      const start = performance.now();
      const scores = await scorer.evaluateAll(made);
      return { milliseconds: performance.now() - start, scores: Array.from(scores) };
    },

    /** The same trace, `calls` times in each of `batches`: milliseconds for one call. */
    async repeat({ trace, calls, batches }) {
      const made = makeTrace(trace);
      const milliseconds = [];
      for (let batch = 0; batch < batches; batch++) {
        const start = performance.now();
        for (let call = 0; call < calls; call++) await scorer.evaluate(made);
        milliseconds.push((performance.now() - start) / calls);
      }
      return milliseconds;
    },

    /** How late a timer comes while a trace is scored, in milliseconds. */
    stalls: ({ trace }) => {
      const made = makeTrace(trace);
      return latenessDuring(() => scorer.evaluate(made));
    },

    memory: () => process.memoryUsage.rss(),

    /** Returns the part of a core that the process uses while it has nothing to do. */
    async idle({ milliseconds }) {
      const start = performance.now();
      const before = process.cpuUsage();
      await sleep(milliseconds);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000 / (performance.now() - start);
    },
  });
}

const INTERVAL_MS = 1;

/**
 * Samples the event loop with a timer of a millisecond. A loop that never sleeps would see more, but it would take a core
 * from the measured code.
 *
 * @param {() => Promise<unknown>} action
 */
async function latenessDuring(action) {
  /** @type {number[]} */
  const lateness = [];
  let last = performance.now();
  /** @type {NodeJS.Timeout} */
  let timer;
  let ticked = () => {};
  const tick = () => {
    const now = performance.now();
    lateness.push(Math.max(0, now - last - INTERVAL_MS));
    last = now;
    timer = setTimeout(tick, INTERVAL_MS);
    ticked();
  };
  timer = setTimeout(tick, INTERVAL_MS);
  await action();
  // A block of the loop until now shows in the next tick.
  await new Promise((resolve) => {
    ticked = () => resolve(undefined);
  });
  clearTimeout(timer);
  return lateness;
}
