// `npm run fuzz:js`: hostile traces, cache calls, options and signals in one process, many of them in flight.
//
//   npm run fuzz:js                            20,000 calls
//   npm run fuzz:js -- --calls 200000
//   npm run fuzz:js -- --seed 7                the calls of that seed again
//
// No call may crash the process, leave a rejection unhandled, or end with anything but a documented error or a
// number within its bounds; memory stays flat; and a fixed set of traces scores afterwards as it did before, to
// the bit.

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import fc from 'fast-check';

import { residentMegabytes, slope } from '../support/memory.mjs';
import { scorerCall, scorerOptions } from './scorers.mjs';
import { templates, trace } from './traces.mjs';
import { thrown, value } from './values.mjs';
import { cacheCall } from './vectors.mjs';
import {
  faultOfError,
  faultOfResult,
  faultOfScore,
  faultOfSimilarity,
  faultOfSize,
  isGiven,
} from './verdict.mjs';

const {
  Scorer,
  TraceMemory,
  VectorCache,
  _getLocalCache,
  configureEmbedder,
  embed,
  embedderStatus,
  evaluateValue,
} = createRequire(import.meta.url)('../..');
const { MemoryStore } = createRequire(import.meta.url)('../support/memory-store.js');

/** Calls that are made without waiting; then all are awaited. */
const wave = fc.array(
  fc.oneof(
    { weight: 80, arbitrary: fc.record({ single: trace }) },
    { weight: 10, arbitrary: fc.record({ batch: fc.array(trace, { maxLength: 6 }) }) },
    { weight: 1, arbitrary: fc.record({ noBatch: value }) },
    { weight: 60, arbitrary: fc.record({ onCache: cacheCall }) },
    { weight: 60, arbitrary: fc.record({ onScorer: scorerCall }) },
    { weight: 30, arbitrary: fc.record({ options: scorerOptions }) },
  ),
  { minLength: 1, maxLength: 60, size: 'max' },
);
const WAVES_PER_ROUND = 40;

/** The part of the calls after which memory should not grow any more. */
const WARM_UP = 0.3;
/**
 * How many times as many calls are made at most where memory seems to grow: a heap that still fills settles (56 MB per 10,000
 * calls were seen after 20,000, and 3.5 after 80,000 of the same seed), and a leak goes on.
 */
const MOST_PATIENCE = 4;
/** Generous: a leak of one small object per call is less, but a leaked trace, promise or vector is more. */
const MOST_GROWTH_MB = 48;
const MOST_SLOPE_MB = 24;

const { values: given } = parseArgs({
  options: { calls: { type: 'string', default: '20000' }, seed: { type: 'string' } },
});
const wanted = positiveInteger('calls', given.calls);
const seed =
  given.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : positiveInteger('seed', given.seed);

const counts = {
  calls: 0,
  scores: 0,
  refusedTraces: 0,
  cacheResults: 0,
  refusedCacheCalls: 0,
  scorerResults: 0,
  refusedScorerCalls: 0,
  abortedScorerCalls: 0,
  scorers: 0,
};
/** What a store fails with now and then. */
const DOWN = Object.assign(new Error('the store is down'), { code: 'ERR_STORE_UNAVAILABLE' });
/** What calls may be rejected with because they were told to. For `undefined` there is an `AbortError`. */
const REASONS = [...thrown.filter((reason) => reason !== undefined), DOWN];
class FailingStore extends MemoryStore {
  constructor(fallback) {
    super('prefix', fallback);
    this.fail = () => (this.calls.length % 7 === 6 ? DOWN : undefined);
  }
}
const memory = [];
let current = 'none';

console.log(`seed ${seed}, ${wanted} calls`);
process.on('unhandledRejection', (reason) => fail('an unhandled rejection', reason));
// Instead of printing it.
process.removeAllListeners('warning');
process.on('warning', ({ name, code, message }) => {
  if (code !== DOWN.code) fail(`a warning: ${name}: ${message}`);
});
exposeGarbageCollection();

// The small model, because many texts are new. Both are called the same way.
configureEmbedder({ dtype: process.env.KNOWLEDGEPULSE_DTYPE ?? 'q8' });
const status = await embedderStatus();
if (!status.available) fail(status.reason);

const caches = [
  [_getLocalCache(), 1000],
  [new VectorCache(), 1000],
  [new VectorCache({ dimensions: 4, maxElements: 8 }), 8],
  [new VectorCache({ dimensions: 4, maxElements: 100, ttlMs: 1 }), 100],
  [new VectorCache({ dimensions: 4, maxElements: 0 }), 0],
  [new VectorCache({ dimensions: 2 ** 40 }), 1000],
];

const memories = [
  new TraceMemory({ method: 'lexical' }),
  new TraceMemory({ method: 'lexical', maxElements: 8, ttlMs: 1 }),
  new TraceMemory({ method: 'full', maxElements: 100 }),
  new TraceMemory({ method: 'prefix', maxElements: 4 }),
];

/** What scores the batches that are no single traces. */
const batches = new Scorer();

const scorers = [
  new Scorer(),
  new Scorer({ memory: memories[3] }),
  new Scorer({ memory: new TraceMemory({ method: 'lexical', maxElements: 40, ttlMs: 20 }) }),
  new Scorer({ embedder: null }),
  new Scorer({ memory: new FailingStore() }),
  new Scorer({ memory: new FailingStore(new TraceMemory({ method: 'prefix' })) }),
];
/** Those before have no store, which may fail. */
const FIRST_WITH_STORE = 4;

const before = await scoresOfTemplates();
const start = performance.now();
let target = wanted;
for (let round = 0; counts.calls < target; round++) {
  for (const calls of fc.sample(wave, { seed: seed + round, numRuns: WAVES_PER_ROUND })) {
    await Promise.all(calls.map(make));
    if (counts.calls >= target) break;
  }
  memory.push([counts.calls, residentMegabytes()]);
  if (counts.calls >= target && grows() && target < MOST_PATIENCE * wanted) target *= 2;
}
const seconds = (performance.now() - start) / 1000;
const after = await scoresOfTemplates();

report();
judge();

/** Makes a call at once; its result is checked when it comes. */
async function make(call) {
  counts.calls++;
  if (call.onCache) return makeOnCache(call.onCache);
  if (call.onScorer) return makeOnScorer(call.onScorer);
  if (call.options) return makeScorer(call.options);
  const { description, isValid, argument } = prepare(call);
  current = description;
  let promise;
  try {
    promise = call.single ? evaluateValue(argument) : batches.scoreAll(argument);
  } catch (error) {
    fail(`thrown instead of rejected: ${description}`, error);
  }
  try {
    for (const score of [await promise].flat()) check(faultOfScore(score.value ?? score), description);
    counts.scores++;
  } catch (error) {
    check(faultOfError('trace', error), description);
    if (isValid) fail(`valid, but refused: ${description}`, error);
    counts.refusedTraces++;
  }
}

/** The argument of a call of the scorer. */
function prepare({ single, batch = [single], noBatch }) {
  if (noBatch) return { description: `instead of a batch: ${noBatch.name}`, argument: noBatch.make() };
  const traces = batch.map(({ make }) => make(other));
  return {
    description: batch.map(({ describe }) => describe()).join(' | '),
    isValid: batch.every(({ isValid }) => isValid),
    argument: single ? traces[0] : traces,
  };
}

function makeOnCache({ member, cache: index, argument, second }) {
  const description = `${member} of cache ${index}: ${argument?.name}, ${second?.name}`;
  current = description;
  const value = argument?.make();
  try {
    if (member === 'constructor') {
      const made = new VectorCache(value);
      check(faultOfSize(made.size, 0), description);
    } else {
      const [cache, most] = caches[index];
      const result = member === 'size' ? cache.size : cache[member](value, second?.make());
      if (member === 'maxCosineSimilarity') check(faultOfSimilarity(result), description);
      check(faultOfSize(cache.size, most), description);
    }
    counts.cacheResults++;
  } catch (error) {
    check(faultOfError(member === 'constructor' ? 'options' : 'vector', error), description);
    counts.refusedCacheCalls++;
  }
}

/** Makes a call of a scorer or an embedder, whose signal may abort it. */
async function makeOnScorer({ scorer, member, trace, traces, texts, callOptions }) {
  const spoilt = traces ?? [trace];
  const what = trace || traces ? spoilt.map(({ describe }) => describe()) : texts.map(({ name }) => name);
  const description = `${member} of scorer ${scorer}: ${what.join(' | ')}; ${callOptions.name}`;
  current = description;
  const { options, made } = callOptions.make(member);
  const argument =
    trace?.make(other) ?? traces?.map(({ make }) => make(other)) ?? texts?.map(({ make }) => make());
  const callee = scorers[scorer] ?? { embed };
  let promise;
  try {
    promise = callee[member](argument, options);
  } catch (error) {
    fail(`thrown instead of rejected: ${description}`, error);
  }
  made();
  try {
    check(faultOfResult(member, await promise), description);
    counts.scorerResults++;
  } catch (error) {
    if (isGiven(error, REASONS)) {
      counts.abortedScorerCalls++;
      return;
    }
    check(faultOfError('call', error), description);
    const mustWork = callOptions.name === 'no options' && scorer < FIRST_WITH_STORE;
    if (mustWork && spoilt.every(({ isValid }) => isValid)) fail(`valid, but refused: ${description}`, error);
    counts.refusedScorerCalls++;
  }
}

/** Makes a scorer, and a call of it if that is possible. */
async function makeScorer({ name, make }) {
  const description = `new Scorer: ${name}`;
  current = description;
  let scorer;
  try {
    scorer = new Scorer(make(caches, memories));
  } catch (error) {
    return check(faultOfError('options', error), description);
  }
  counts.scorers++;
  check(faultOfResult('score', await scorer.score(templates[2])), description);
}

/** What the getter of a trace calls while that is read. */
function other() {
  _getLocalCache().clear();
  evaluateValue(templates[1]).catch((error) => fail('called by a getter', error));
}

/** The scores of the fixed traces, from an empty memory. */
async function scoresOfTemplates() {
  _getLocalCache().clear();
  const scores = [];
  for (const template of [...templates, ...templates]) scores.push(await evaluateValue(template));
  return scores;
}

function report() {
  const perSecond = Math.round(counts.calls / seconds);
  console.log(`${counts.calls} calls in ${seconds.toFixed(1)} s, ${perSecond} a second:`);
  console.log(`  traces: ${counts.scores} scored, ${counts.refusedTraces} refused`);
  console.log(`  caches: ${counts.cacheResults} answered, ${counts.refusedCacheCalls} refused`);
  console.log(
    `  scorers: ${counts.scorerResults} answered, ${counts.refusedScorerCalls} refused, ${counts.abortedScorerCalls} aborted; ${counts.scorers} made`,
  );
  const { first, last, perTenThousand } = growth();
  console.log(
    `  resident memory: ${first.toFixed(0)} MB after the warm-up, ${last.toFixed(0)} MB at the end,`,
    `${perTenThousand.toFixed(2)} MB per 10,000 calls`,
  );
}

function growth() {
  const settled = memory.filter(([calls]) => calls >= target * WARM_UP);
  return { first: settled[0][1], last: settled.at(-1)[1], perTenThousand: slope(settled) * 10_000 };
}

function grows() {
  const { first, last, perTenThousand } = growth();
  return last - first > MOST_GROWTH_MB && perTenThousand > MOST_SLOPE_MB;
}

function judge() {
  for (const [index, score] of before.entries()) {
    if (!Object.is(score, after[index])) fail(`score ${index} was ${score} before and is ${after[index]}`);
  }
  // A fuzzer of which everything is refused tests little.
  for (const [what, count] of Object.entries(counts)) {
    if (count < counts.calls / 100) fail(`only ${count} ${what}`);
  }
  if (grows()) fail('memory grows');
  console.log('all well');
}

function check(fault, description) {
  if (fault !== null) fail(`${fault}; ${description}`);
}

/** Ends the process: nothing that comes later would tell more. */
function fail(message, reason = '') {
  console.error(`FAILED with seed ${seed}, about call ${counts.calls} (last made: ${current})`);
  console.error(message, reason);
  process.exit(1);
}

function positiveInteger(name, text) {
  if (/^\d+$/.test(text)) return Number(text);
  console.error(`--${name} must be a whole number`);
  process.exit(2);
}

/** Without a collection before each look, resident memory says little. Bun has its own way. */
function exposeGarbageCollection() {
  if (process.versions.bun) return;
  setFlagsFromString('--expose-gc');
  globalThis.gc = runInNewContext('gc');
}
