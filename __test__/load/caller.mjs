// One of the callers: the main thread and each worker run this, with a bounded number of calls in flight.

import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

import { faultOfScore, isAborted, traceOf } from './workload.mjs';

/**
 * Makes `count` calls of `scorer`, some of which are aborted; checks that the replies come in the order of the calls, and are right. `done` counts the calls of all callers.
 */
export async function call({ caller, from, count, inFlight, done }, scorer) {
  const waiting = [];
  let replies = 0;
  for (let index = from; index < from + count; index++) {
    // A caller of the package limits its calls in flight by awaiting them; so does this one.
    while (waiting.length >= inFlight) await waiting.shift();
    const number = index - from;
    const score = scorer.score(traceOf(caller, index));
    if (isAborted(index)) waiting.push(abortCall(scorer, caller, index));
    const reply = score.then(({ value }) => {
      if (replies++ !== number)
        throw new Error(`caller ${caller}: reply ${replies - 1} is that of call ${number}`);
      const fault = faultOfScore(caller, index, value);
      if (fault) throw new Error(fault);
      Atomics.add(done, 0, 1);
    });
    // It is awaited later.
    reply.catch(() => {});
    waiting.push(reply);
  }
  await Promise.all(waiting);
}

/** No trace that is scored has a number as high. */
const UNSEEN = 25_000_000;

/** A call besides that is aborted: nothing of it is to be seen in the scores or the memory. */
async function abortCall(scorer, caller, index) {
  const call = scorer.score(traceOf(caller, index + UNSEEN), { signal: AbortSignal.abort('enough') });
  const reason = await call.catch((reason) => reason);
  if (reason !== 'enough') throw new Error(`caller ${caller}, trace ${index}: not aborted, but ${reason}`);
}

if (workerData?.isCaller) {
  const { processScorer } = createRequire(import.meta.url)('../../lib/scorer.js');
  parentPort.on('message', async (task) => {
    if (task === null) return parentPort.close();
    await call({ ...workerData, ...task }, processScorer);
    parentPort.postMessage('done');
  });
}
