// `npm run fuzz:js`: hostile traces, options and signals in one process, many of them in flight. Vectors and the options of a scorer are read
// at once: the tables of vector-cache.spec.js and refused-arguments.node.spec.js have the hostile ones.
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

import { option, templates, texts, thrown, trace, value } from './values.mjs';

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
const seed = Number(given.seed ?? Math.floor(Math.random() * 2 ** 31));

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

const memories = [
  new TraceMemory({ method: 'lexical' }),
  new TraceMemory({ method: 'lexical', maxElements: 8, ttlMs: 1 }),
  new TraceMemory({ method: 'full', maxElements: 100 }),
  new TraceMemory({ method: 'prefix', maxElements: 4 }),
];
const stores = [
  new FailingStore('prefix'),
  new FailingStore('prefix', new TraceMemory({ method: 'prefix' })),
];
const scorers = [
  new Scorer(),
  new Scorer({ embed: false }),
  ...[memories[0], memories[2], memories[3], ...stores].map((memory) => new Scorer({ memory })),
];

const FIRST_WITH_STORE = scorers.length - stores.length;

/** Signals that abort at some moment, and other values. `made` is called when the call has been made. */
const signal = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(
        fc.constantFrom('before', 'at once', 'later', 'never'),
        fc.nat({ max: 12 }),
        fc.nat({ max: thrown.length - 1 }),
      )
      .map(([moment, turns, reason]) => () => {
        const controller = new AbortController();
        const abort = () => controller.abort(thrown[reason]);
        if (moment === 'before') abort();
        if (moment === 'later') setTimeout(abort, turns);
        return { signal: controller.signal, made: moment === 'at once' ? abort : () => {} };
      }),
  },
  value.map((make) => () => ({ signal: make(), made() {} })),
);
/** What a function that is called would do is its own affair. */
const progress = value.map((make) => () => {
  const it = make();
  return typeof it === 'function' ? null : it;
});
const callOptions = fc.oneof(
  { weight: 2, arbitrary: fc.constant(() => ({ made() {} })) },
  { weight: 1, arbitrary: value.map((make) => () => ({ options: make(), made() {} })) },
  {
    weight: 8,
    arbitrary: fc
      .record({ signal, remember: option([undefined, true, false]), onProgress: progress })
      .map((made) => (member) => {
        const { signal, made: whenMade } = made.signal();
        const options = { signal };
        if (member === 'score') options.remember = made.remember();
        if (member === 'scoreAll') options.onProgress = made.onProgress();
        return { options, made: whenMade };
      }),
  },
);

const batch = fc.array(trace, { maxLength: 6 });
const ofScorer = (members, argument) =>
  fc.record({
    ...{ kind: fc.constant('scorer'), member: fc.constantFrom(...members), argument },
    ...{ scorer: fc.nat({ max: scorers.length - 1 }), callOptions },
  });
/** Several traces as one argument. */
const together = (traces) => ({
  isValid: traces.every(({ isValid }) => isValid),
  make: (other) => traces.map(({ make }) => make(other)),
});
/** Calls that are made without waiting; then all are awaited. */
const wave = fc.array(
  fc.oneof(
    { weight: 80, arbitrary: fc.record({ kind: fc.constant('trace'), argument: trace }) },
    { weight: 34, arbitrary: ofScorer(['score'], trace) },
    { weight: 20, arbitrary: ofScorer(['scoreAll'], batch.map(together)) },
    {
      weight: 16,
      arbitrary: ofScorer(
        ['embed'],
        fc
          .array(option(texts), { maxLength: 4 })
          .map((all) => ({ isValid: false, make: () => all.map((make) => make()) })),
      ),
    },
  ),
  { minLength: 1, maxLength: 60, size: 'max' },
);

/** How each kind of call is made. */
const MAKERS = {
  trace: ({ argument }) => kp.evaluateValue(argument.make(other)),
  scorer({ member, scorer, argument, callOptions }) {
    const { options, made } = callOptions(member);
    const callee = member === 'embed' ? kp : scorers[scorer];
    const reply = callee[member](argument.make(other), options);
    made();
    return reply;
  },
};

/** The classes of errors, and which codes each kind of call may end with: docs/errors.md. */
const CLASSES = [TypeError, RangeError];
const CODES = { trace: /TRACE/, scorer: /TRACE|INPUT|OPTION/ };

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
for (const kind of Object.keys(MAKERS)) {
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
  let result;
  try {
    result = MAKERS[call.kind](call);
  } catch (error) {
    fail('thrown instead of rejected', error);
  }
  try {
    const fault = faultOf(await result, call);
    if (fault) fail(fault, call);
    count(call.kind, 'answered');
  } catch (error) {
    checkError(call, error);
  }
}

/** What is wrong with what a call gave, or undefined. */
function faultOf(result, { member }) {
  for (const one of [result].flat()) {
    if (member === 'embed') {
      if (Math.abs(Math.hypot(...one) - 1) > 1e-5) return 'an embedding of another length than 1';
      continue;
    }
    const score = one.value ?? one;
    if (!(score >= 0 && score <= 1)) return `a score of ${score}`;
    if (one.overrides?.length > 0 && one.overrides.at(-1).after !== score)
      return 'overrides that lead elsewhere';
    if (one.nearest && !(Math.abs(one.nearest.similarity) <= 1 + 1e-6)) return 'a similarity beyond 1';
  }
  return undefined;
}

function checkError({ kind, argument, scorer, member, callOptions }, error) {
  // Some reasons cannot be looked at.
  const isReason = [...thrown, DOWN].some((it) => Object.is(it, error));
  if (kind === 'scorer' && (isReason || error instanceof DOMException)) return count(kind, 'aborted');
  const isDocumented = CODES[kind].test(error?.code) && CLASSES.includes(error.constructor);
  if (!isDocumented || typeof error.message !== 'string' || error.message === '')
    fail('no such error', error);
  // With options anything may be refused, and stores fail.
  const mustWork =
    kind === 'trace' || (scorer < FIRST_WITH_STORE && callOptions(member).options === undefined);
  if (mustWork && argument.isValid) fail('valid, but refused', error);
  count(kind, 'refused');
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
