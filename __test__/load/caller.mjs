// One of the callers: the main thread and each worker run this, with at most so many calls in flight.

import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

import { faultOfScore, traceOf } from './workload.mjs';

/**
 * Makes `count` calls of `evaluate`, checks that the replies come in the order of the calls, and, with
 * `checkScores`, that they are right. `done` counts the calls of all callers. Returns the milliseconds that the
 * longest call took until it returned its promise.
 */
export async function call({ caller, from, count, inFlight, done, checkScores }, evaluate) {
  const waiting = [];
  let replies = 0;
  let longest = 0;
  for (let index = from; index < from + count; index++) {
    // The back-pressure of whoever uses the package: to await.
    if (waiting.length === inFlight) await waiting.shift();
    const number = index - from;
    const trace = traceOf(caller, index);
    const start = performance.now();
    const score = evaluate(trace);
    longest = Math.max(longest, performance.now() - start);
    const reply = score.then((score) => {
      if (replies++ !== number)
        throw new Error(`caller ${caller}: reply ${replies - 1} is that of call ${number}`);
      // The stand-in's scores are checked as well, because that is work; what comes of it does not matter.
      const fault = faultOfScore(caller, index, score);
      if (fault && checkScores) throw new Error(fault);
      Atomics.add(done, 0, 1);
    });
    // It is awaited later.
    reply.catch(() => {});
    waiting.push(reply);
  }
  await Promise.all(waiting);
  return longest;
}

/** A scorer that does nothing but reply after `milliseconds`. */
export function standIn(milliseconds) {
  return () => new Promise((resolve) => setTimeout(resolve, milliseconds, 0));
}

if (workerData?.isCaller) {
  const { controlDelay } = workerData;
  const evaluate =
    controlDelay === undefined
      ? createRequire(import.meta.url)('../..').evaluateValue
      : standIn(controlDelay);
  parentPort.on('message', async (task) => {
    if (task === null) return parentPort.close();
    await call({ ...workerData, ...task }, evaluate);
    parentPort.postMessage('done');
  });
}
