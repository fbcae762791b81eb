// `npm run fuzz:js`: hostile traces, options and signals in one process, many of them in flight. Texts, vectors and the options of a scorer
// are read at once: the tables of vector-cache.spec.js and refused-arguments.node.spec.js have the hostile ones.
//
//   npm run fuzz:js                            20,000 calls
//   npm run fuzz:js -- --calls 200000
//   npm run fuzz:js -- --seed 7                the calls of that seed again
//
// No call may crash the process, leave a rejection unhandled, or end with anything but a documented error or a number within its bounds;
// memory stays flat; and a fixed set of traces scores afterwards as it did before, to the bit.

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import fc from 'fast-check';

import { made, templates, thrown, trace, value } from './values.mjs';

const require = createRequire(import.meta.url);
const { Scorer, TraceMemory, ...kp } = require('../..');
const { MemoryStore } = require('../store/stores.js');

const WAVES_PER_ROUND = 40;
/** How many times as many calls are made at most where memory seems to grow: a heap that still fills settles, and a leak goes on. */
const MOST_PATIENCE = 4;
/** The part of the calls after which memory should not grow any more. */
const WARM_UP = 0.3;
/** Generous: a leak of one small object per call is less, but a leaked trace, promise or vector is more. */
const MOST_GROWTH_MB = 48;
const MOST_PER_CALL_MB = 24 / 10_000;

const { values: given } = parseArgs({
  options: { calls: { type: 'string', default: '20000' }, seed: { type: 'string' } },
});
const wanted = Number(given.calls);
const seed = Number(
  given.seed ?? process.env.KNOWLEDGEPULSE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31),
);

console.log(`seed ${seed}, ${wanted} calls`);
process.on('unhandledRejection', (reason) => fail('an unhandled rejection', reason));
// Instead of printing it.
process.removeAllListeners('warning');
process.on('warning', ({ name, code, message }) => {
  if (code !== DOWN.code) fail(`a warning: ${name}: ${message}`);
});
// Without a collection before each look, resident memory says little. Bun has its own way.
if (!process.versions.bun) {
  setFlagsFromString('--expose-gc');
  globalThis.gc = runInNewContext('gc');
}

// The small model, because many texts are new. Both are called the same way.
kp.configureEmbedder({ dtype: process.env.KNOWLEDGEPULSE_DTYPE ?? 'q8' });
const status = await kp.embedderStatus();
if (!status.available) fail(status.reason);

/** What a store fails with now and then. */
const DOWN = Object.assign(new Error('the store is down'), { code: 'ERR_STORE_UNAVAILABLE' });
class FailingStore extends MemoryStore {
  fail = () => (this.calls.length % 7 === 6 ? DOWN : undefined);
}

const scorers = [
  ...[{}, { embed: false }],
  { memory: new TraceMemory({ method: 'lexical' }) },
  { memory: new TraceMemory({ method: 'full', maxElements: 100 }) },
  { memory: new TraceMemory({ method: 'prefix', maxElements: 4 }) },
  { memory: new FailingStore('prefix') },
  { memory: new FailingStore('prefix', new TraceMemory({ method: 'prefix' })) },
].map((options) => ({ scorer: new Scorer(options), isSafe: !(options.memory instanceof FailingStore) }));

/** Signals that abort at some moment, and other values. `made` is called when the call has been made. */
const moment = fc.constantFrom('before', 'at once', 'later', 'never');
const signal = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(moment, fc.nat(12), fc.constantFrom(...thrown))
      .map(([moment, turns, reason]) => () => {
        const controller = new AbortController();
        const abort = () => controller.abort(reason);
        if (moment === 'before') abort();
        if (moment === 'later') setTimeout(abort, turns);
        return { signal: controller.signal, made: moment === 'at once' ? abort : () => {} };
      }),
  },
  value.map((make) => () => ({ signal: make(), made() {} })),
);
const remember = fc.oneof({ weight: 8, arbitrary: made(fc.constantFrom(undefined, true, false)) }, value);
/** What a function that is called would do is its own affair. */
const onProgress = value.map((make) => () => {
  const it = make();
  return typeof it === 'function' ? null : it;
});
const callOptions = fc.oneof(
  { weight: 2, arbitrary: fc.constant(() => ({ made() {} })) },
  { weight: 1, arbitrary: value.map((make) => () => ({ options: make(), made() {} })) },
  {
    weight: 8,
    arbitrary: fc.record({ signal, remember, onProgress }).map((make) => (member) => {
      const { signal, made } = make.signal();
      const own = member === 'score' ? { remember: make.remember() } : { onProgress: make.onProgress() };
      return { options: { signal, ...own }, made };
    }),
  },
);

const of = (member, traces) =>
  fc.record({ member: fc.constant(member), traces, scorer: fc.constantFrom(...scorers), callOptions });
/** Calls that are made without waiting; then all are awaited. */
const wave = fc.array(
  fc.oneof(
    { weight: 80, arbitrary: of('evaluateValue', fc.tuple(trace)) },
    { weight: 34, arbitrary: of('score', fc.tuple(trace)) },
    { weight: 20, arbitrary: of('scoreAll', fc.array(trace, { maxLength: 6 })) },
  ),
  { minLength: 1, maxLength: 60, size: 'max' },
);

/** The codes that each kind of call may end with: docs/errors.md. */
const CODES = { evaluateValue: /TRACE/, scorer: /TRACE|INPUT|OPTION/ };

/** How often each kind of call was answered, refused and aborted. */
const counts = {};
const count = (kind, how) => {
  counts[`${kind} ${how}`] = (counts[`${kind} ${how}`] ?? 0) + 1;
};
let calls = 0;
let current;
const memory = [];

const before = await scoresOfTemplates();
const start = performance.now();
let target = wanted;
for (let round = 0; calls < target; round++) {
  for (const part of fc.sample(wave, { seed: seed + round, numRuns: WAVES_PER_ROUND })) {
    await Promise.all(part.map(make));
    if (calls >= target) break;
  }
  memory.push([calls, residentMegabytes()]);
  if (calls >= target && grows() && target < MOST_PATIENCE * wanted) target *= 2;
}
console.log(`${calls} calls in ${((performance.now() - start) / 1000).toFixed(1)} s`, counts);
console.log(`resident memory grew by ${growth().megabytes.toFixed(0)} MB after the warm-up`);
if ((await scoresOfTemplates()).some((score, index) => !Object.is(score, before[index])))
  fail('other scores');
// A fuzzer of which everything is refused tests little.
for (const kind of Object.keys(CODES)) {
  for (const how of ['answered', 'refused'])
    if (!(counts[`${kind} ${how}`] > calls / 100)) fail(`too few of ${kind} are ${how}`);
}
if (!(counts['scorer aborted'] > calls / 200)) fail('too few are aborted');
if (grows()) fail('memory grows');
console.log('all well');

/** Makes a call at once; its result is checked when it comes. */
async function make(call) {
  calls++;
  current = call;
  const { member, traces, scorer, callOptions } = call;
  const kind = member in CODES ? member : 'scorer';
  let reply;
  let isPlain = true;
  try {
    const given = traces.map(({ make }) => make(other));
    if (kind !== 'scorer') reply = kp.evaluateValue(given[0]);
    else {
      const { options, made } = callOptions(member);
      reply = scorer.scorer[member](member === 'score' ? given[0] : given, options);
      made();
      // With options anything may be refused, and stores fail.
      isPlain = options === undefined && scorer.isSafe;
    }
  } catch (error) {
    fail('thrown instead of rejected', error);
  }
  try {
    for (const one of [await reply].flat()) checkScore(one);
    count(kind, 'answered');
  } catch (error) {
    const isReason = [...thrown, DOWN].some((it) => Object.is(it, error));
    if (kind === 'scorer' && (isReason || error instanceof DOMException)) return count(kind, 'aborted');
    const isDocumented = CODES[kind].test(error?.code) && [TypeError, RangeError].includes(error.constructor);
    if (!isDocumented || typeof error.message !== 'string' || error.message === '')
      fail('no such error', error);
    if (isPlain && traces.every(({ isValid }) => isValid)) fail('valid, but refused', error);
    count(kind, 'refused');
  }
}

function checkScore(result) {
  const score = result.value ?? result;
  if (!(score >= 0 && score <= 1)) fail(`a score of ${score}`);
  if (result.overrides?.length > 0 && result.overrides.at(-1).after !== score)
    fail('overrides that lead elsewhere');
  if (result.nearest && !(Math.abs(result.nearest.similarity) <= 1 + 1e-6)) fail('a similarity beyond 1');
}

/** What the getter of a trace calls while that is read. */
function other() {
  kp._getLocalCache().clear();
  kp.evaluateValue(templates[1]).catch((error) => fail('called by a getter', error));
}

/** The scores of the fixed traces, from an empty memory. */
async function scoresOfTemplates() {
  kp._getLocalCache().clear();
  const scores = [];
  for (const template of [...templates, ...templates]) scores.push(await kp.evaluateValue(template));
  return scores;
}

/** Resident memory, after a collection. */
function residentMegabytes() {
  globalThis.Bun?.gc(true);
  globalThis.gc?.();
  return process.memoryUsage.rss() / 2 ** 20;
}

/** The growth of memory since the warm-up, and in how many calls. */
function growth() {
  const [from, first] = memory.find(([count]) => count >= calls * WARM_UP);
  return { megabytes: memory.at(-1)[1] - first, calls: calls - from };
}

function grows() {
  const { megabytes, calls } = growth();
  return megabytes > Math.max(MOST_GROWTH_MB, calls * MOST_PER_CALL_MB);
}

/** Ends the process: nothing that comes later would tell more. */
function fail(message, about = '') {
  console.error(`FAILED with seed ${seed}, about call ${calls}: ${message}`);
  for (const part of [about, current]) {
    try {
      console.error(part instanceof Error ? part : fc.stringify(part));
    } catch {
      console.error('what cannot be described');
    }
  }
  process.exit(1);
}
