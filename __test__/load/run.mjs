// `npm run test:load`: 50,000 evaluations from eight workers and the main thread at once, and in between calls that are aborted.
//
//   npm run test:load -- --calls 3000
//
// Every caller gets its replies in the order of its calls and with the right scores; the memory holds exactly what it should, and nothing of
// what was aborted; and resident memory is flat. How late the event loop is meanwhile, `npm run bench` measures.

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

import { growthOf, residentMegabytes } from '../support/memory.mjs';
import { call } from './caller.mjs';
import { primer } from './workload.mjs';

const require = createRequire(import.meta.url);
const { _getLocalCache, configureEmbedder, embedderStatus, evaluateValue } = require('../..');
const { processScorer } = require('../../lib/scorer.js');

const WORKERS = 8;
const CAPACITY = 1000;
/** How many calls each caller keeps in flight. */
const IN_FLIGHT = 32;
/** Generous, because resident memory is no exact measure. */
const MOST_GROWTH_MB = 96;
const MOST_SLOPE_MB = 48;

const { values: given } = parseArgs({
  options: { calls: { type: 'string', default: '50000' } },
});
const perCaller = Math.ceil(Number(given.calls) / (WORKERS + 1));
if (!Number.isSafeInteger(perCaller) || perCaller < 1) throw new RangeError('--calls must be a number');

configureEmbedder({ dtype: process.env.KNOWLEDGEPULSE_DTYPE ?? 'q8' });
const status = await embedderStatus();
if (!status.available) throw new Error(status.reason);

let primed = 0;
for (const trace of primer()) {
  await evaluateValue(trace);
  primed++;
}

// Fewer than fill the memory: their number shows that none is lost and none counted twice.
const few = Math.min(perCaller, Math.floor((CAPACITY - primed) / (WORKERS + 1)));
await load({ from: 0, count: few });
expectSize(primed + few * (WORKERS + 1));

const ours = await load({ from: few, count: perCaller });
expectSize(Math.min(CAPACITY, primed + (few + perCaller) * (WORKERS + 1)));

report();

/** Has all callers make `count` calls, beginning with trace `from`, and watches the process meanwhile. */
async function load({ from, count }) {
  const done = new Int32Array(new SharedArrayBuffer(4));
  const shared = { isCaller: true, inFlight: IN_FLIGHT, done };
  const workers = Array.from(
    { length: WORKERS },
    (_, index) =>
      new Worker(new URL('./caller.mjs', import.meta.url), { workerData: { ...shared, caller: index + 1 } }),
  );
  await Promise.all(workers.map((worker) => next(worker, 'online')));

  const memory = [];
  const sampling = setInterval(
    () => memory.push([Atomics.load(done, 0), process.memoryUsage.rss() / 2 ** 20]),
    50,
  );
  const start = performance.now();
  const replies = workers.map((worker) => next(worker, 'message'));
  for (const worker of workers) worker.postMessage({ from, count });
  await call({ ...shared, caller: 0, from, count }, processScorer);
  await Promise.all(replies);
  clearInterval(sampling);
  const seconds = (performance.now() - start) / 1000;

  const exits = workers.map((worker) => next(worker, 'exit'));
  for (const worker of workers) worker.postMessage(null);
  await Promise.all(exits);
  return { seconds, memory, calls: Atomics.load(done, 0) };
}

/** The next event of a worker; what it throws is thrown here. */
function next(worker, event) {
  return new Promise((resolve, reject) => worker.once(event, resolve).once('error', reject));
}

function expectSize(expected) {
  const { size } = _getLocalCache();
  if (size !== expected) throw new Error(`the memory holds ${size}, expected ${expected}`);
}

function report() {
  const perSecond = Math.round(ours.calls / ours.seconds);
  console.log(
    `${ours.calls} evaluations by ${WORKERS + 1} callers in ${ours.seconds.toFixed(1)} s, ${perSecond} a second`,
  );
  const { first, last, perTenThousand } = growthOf(ours.memory);
  console.log(
    `resident memory: ${first.toFixed(0)} MB after the warm-up, ${last.toFixed(0)} MB at the end,`,
    `${perTenThousand.toFixed(2)} MB per 10,000 evaluations; ${residentMegabytes().toFixed(0)} MB afterwards`,
  );
  if (last - first > MOST_GROWTH_MB && perTenThousand > MOST_SLOPE_MB) throw new Error('memory grows');
  console.log('all well');
}
