'use strict';

// Scorers: what a score is made of, memories, weights, options, batches, order and cancelled calls.

const { getEventListeners, getMaxListeners, setMaxListeners } = require('node:events');
const path = require('node:path');
const vm = require('node:vm');

const fc = require('fast-check');

const kp = require('..');
const { PROFILES, RULES, dimensionsOf, scoreOf } = require('./oracle/score.js');
const arbitraries = require('./support/arbitraries.js');
const { revoked, throwingGetter } = require('./support/hostile.js');
const { makeTrace, makeTraces } = require('./support/make-trace.js');
const { MemoryStore } = require('./store/stores.js');
const { root } = require('./support/paths.js');
const { rejectionOf } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');

const { Scorer, TraceMemory } = kp;

const METHODS = ['prefix', 'lexical', 'full'];

/** The score of a trace by weights, without an embedder. */
const valueBy = async (weights, trace) => (await new Scorer({ embed: false, weights }).score(trace)).value;

const valuesOf = (scores) => scores.map(({ value }) => value);

/** Makes calls at the same time, by their names, and gives these in the order of the replies. */
async function orderOf(calls) {
  const order = [];
  const note = (name) => () => order.push(name);
  await Promise.all(Object.entries(calls).map(([name, call]) => call().then(note(name), note(name))));
  return order;
}

/** Checks that the parts of a score make up its value, to the bit, and are what the trace says. */
function expectExact({ value, dimensions, weights, overrides }, trace) {
  expect(dimensions).toEqual(dimensionsOf(trace, dimensions.novelty));
  expect(weights).toEqual(PROFILES.get(trace.metadata.task_domain) ?? PROFILES.get('default'));
  const rules = overrides.map(({ rule }) => rule).filter((rule) => rule !== 'clamp');
  const applying = Object.keys(RULES).filter((rule) => RULES[rule].applies(trace));
  expect([...rules, 'clamp']).toEqual(applying);
  const names = ['complexity', 'novelty', 'toolDiversity', 'outcomeConfidence'];
  const composite = names.reduce((sum, name) => sum + dimensions[name] * weights[name], 0);
  const end = overrides.reduce((before, override) => {
    expect(override.before).toBe(before);
    expect(override.after).toBe(RULES[override.rule].effect(before));
    return override.after;
  }, composite);
  expect(value).toBe(end);
}

test('score gives the parts that make up its value, to the bit', async () => {
  const property = fc.asyncProperty(
    fc.array(arbitraries.trace, { minLength: 1, maxLength: 4 }),
    async (traces) => {
      const scorer = new Scorer();
      for (const trace of traces) expectExact(await scorer.score(trace), trace);
    },
  );
  // Types and tools that are lone surrogates are told apart.
  const surrogates = [
    ['\ud800', '\ud801'],
    ['\ud800', '\ufffd'],
  ].map((names) => names.map((type, step_id) => ({ step_id, type, tool: { name: type } })));
  await fc.assert(property, { numRuns: 60, examples: surrogates.map((steps) => [[makeTrace({ steps })]]) });
});

test('score names the nearest trace by its id, and the basis of the novelty', async () => {
  const scorer = new Scorer();
  const steps = Array(3).fill({ type: 'error_recovery', content: 'again', tool: { name: 'sh' } });
  const trace = makeTrace({ objective: 'recover', steps, domain: 'astronomy' });
  const first = await scorer.score(trace);
  expect(first).toMatchObject({ basis: 'empty-memory', nearest: null });
  expect(first.overrides.map(({ rule }) => rule)).toEqual(['recovery-bonus', 'single-tool-penalty']);
  const second = await scorer.score({ ...trace, id: 'second' });
  expect(second.basis).toBe('memory');
  expect(second.nearest).toEqual({
    ...{ id: trace.id, similarity: 1 - second.dimensions.novelty },
    ...{ lexical: null, contained: null, embedded: null, sharedWords: null, newWords: null },
  });
  // Objects of the realm that asks.
  for (const each of [second, second.nearest]) expect(each).toBeInstanceOf(Object);
  expect(second.overrides).toBeInstanceOf(Array);
});

test.each(METHODS)('score with remember: false leaves the memory as it is: %s', async (method) => {
  const memory = new TraceMemory({ method });
  const scorer = new Scorer({ memory });
  const trace = makeTrace({ objective: 'only asked' });
  const first = await scorer.score(trace, { remember: false });
  expect(memory.size).toBe(0);
  expect(await scorer.score(trace, { remember: true })).toEqual(first);
  expect(memory.size).toBe(1);
});

test('score without an embedder is neutral, but compares words', async () => {
  const neutral = await new Scorer({ embed: false }).score(makeTrace());
  expect(neutral).toMatchObject({ basis: 'no-embedder', nearest: null, dimensions: { novelty: 0.5 } });
  const lexical = new Scorer({ memory: new TraceMemory({ method: 'lexical' }), embed: false });
  const values = [await lexical.score(makeTrace()), await lexical.score(makeTrace())];
  expect(values.map(({ dimensions }) => dimensions.novelty)).toEqual([0.5, 0]);
  const { result } = await runForResult(
    'console.log(JSON.stringify(await new kp.Scorer().score(makeTrace())));',
    { env: { KNOWLEDGEPULSE_MODEL_DIR: '/nowhere' } },
  );
  expect(result).toEqual(neutral);
});

test('Scorer has a memory of its own by default, and may share one', async () => {
  const trace = makeTrace({ objective: 'each its own' });
  const scorers = [new Scorer(), new Scorer()];
  const [first, second] = await Promise.all(scorers.map(async (scorer) => (await scorer.score(trace)).value));
  expect(first).toBe(second);
  expect((await scorers[0].score(trace)).value).toBeLessThan(first);
  const memory = new TraceMemory({ method: 'prefix', maxElements: 2 });
  for (let count = 0; count < 3; count++) await new Scorer({ memory }).score(trace);
  expect(memory.size).toBe(2);
});

test('evaluateValue shares a memory of a thousand traces, and forgets the oldest', async () => {
  const { _getLocalCache, evaluateValue } = kp;
  const cache = _getLocalCache();
  cache.clear();
  const trace = makeTrace({ objective: 'the memory of the process' });
  const first = await evaluateValue(trace);
  const again = await Promise.all([trace, trace].map(evaluateValue));
  for (const value of again) expect(value).toBeLessThan(first);
  // The score of a single thought is fixed, and it is remembered all the same.
  expect(await evaluateValue(makeTrace({ steps: [{ type: 'thought' }] }))).toBe(0.1);
  expect(cache.size).toBe(4);
  cache.clear();
  const axis = (index) => Float32Array.from({ length: 384 }, (_, i) => (i === index ? 1 : 0));
  cache.add(axis(0));
  for (let i = 1; i < 1000; i++) cache.add(axis(1));
  expect(cache.maxCosineSimilarity(axis(0))).toBe(1);
  await evaluateValue(trace);
  expect([cache.size, cache.maxCosineSimilarity(axis(0)) < 0.5]).toEqual([1000, true]);
});

test('score remembers traces by usable ids', async () => {
  const long = 'x'.repeat(1024);
  const named = [
    ['kp:trace:a', 'kp:trace:a'],
    ...[undefined, 7, `${long}x`, 'é'.repeat(1000)].map((id) => [id, null]),
    ['', ''],
    [long, long],
    ['\ud800', '\ufffd'],
  ];
  for (const [id, expected] of named) {
    const scorer = new Scorer();
    await scorer.score({ ...makeTrace(), id });
    expect((await scorer.score(makeTrace(), { remember: false })).nearest.id).toBe(expected);
  }
  const thrower = throwingGetter(makeTrace(), 'id', new Error('on purpose'));
  const message = 'trace.id could not be read: it threw';
  expect(await rejectionOf(new Scorer().score(thrower))).toMatchObject({
    code: 'ERR_INVALID_TRACE',
    message,
  });
});

test('weights of a Scorer extend the profiles and replace them', async () => {
  const outcomeOnly = { complexity: 0, novelty: 0, toolDiversity: 0, outcomeConfidence: 1 };
  const weights = JSON.parse(
    JSON.stringify({ legal: outcomeOnly, code: outcomeOnly, p: outcomeOnly }).replace('"p"', '"__proto__"'),
  );
  const steps = [{ type: 'thought' }, { type: 'observation' }];
  const value = (domain) => valueBy(weights, makeTrace({ domain, steps, confidence: 0.7 }));
  for (const domain of ['legal', 'code', '__proto__']) expect(await value(domain)).toBe(0.7);
  for (const domain of ['finance', 'astronomy', 'default', 'constructor']) {
    expect(await value(domain)).toBe(scoreOf(makeTrace({ domain, steps, confidence: 0.7 }), 0.5));
  }
});

test('score takes null as options, and ignores undefined, inherited and symbol options', async () => {
  const scorer = new Scorer({ embed: false, storee: undefined });
  const options = [undefined, null, { remember: undefined }, { [Symbol('s')]: 1 }, { signal: null }];
  for (const each of options) expect((await scorer.score(makeTrace(), each)).value).toBeGreaterThan(0);
  const inherited = Object.create({ signal: AbortSignal.abort('enough'), sginal: null });
  expect(await rejectionOf(scorer.score(makeTrace(), inherited))).toBe('enough');
});

test.each(METHODS)(
  'scoreAll gives the scores and the memory of one call after another: %s',
  async (method) => {
    const [memory, expected] = [0, 1].map(() => new TraceMemory({ method, maxElements: 80 }));
    const one = new Scorer({ memory: expected });
    const traces = [...makeTraces(90, 'sequence'), ...makeTraces(9, 'sequence')];
    const scores = [];
    for (const trace of traces) scores.push(await one.score(trace));
    const seen = [];
    const onProgress = (progress) => seen.push(progress);
    expect(await new Scorer({ memory }).scoreAll(traces, { onProgress })).toEqual(scores);
    expect(seen).toEqual(traces.map((_, index) => ({ done: index + 1, total: traces.length })));
    const probe = makeTrace({ objective: 'another' });
    expect(await memory.nearest(probe, 80)).toEqual(await expected.nearest(probe, 80));
  },
);

test('scoreAll rejects for an invalid trace with its path, and remembers the traces before it', async () => {
  for (const method of METHODS) {
    const traces = makeTraces(100, 'invalid');
    traces[70] = { ...traces[70], steps: [{ type: 7 }] };
    const memory = new TraceMemory({ method });
    const error = await rejectionOf(new Scorer({ memory }).scoreAll(traces));
    const message = 'traces[70].steps[0].type must be a string, got number';
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_TRACE', message });
    expect(memory.size).toBe(70);
  }
});

test('scoreAll lets the event loop turn, also where nothing is embedded', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const scores = await new Scorer({ embed: false }).scoreAll(Array(20_000).fill(makeTrace()));
  clearInterval(timer);
  expect(new Set(valuesOf(scores)).size).toBe(1);
  expect(scores).toHaveLength(20_000);
  expect(turns).toBeGreaterThan(0);
});

/** Calls of every kind, some of which take longer on their way back to the caller than others. */
const callsOn = (scorer) => ({
  score: () => scorer.score(makeTrace()),
  cancellable: () => scorer.score(makeTrace(), { signal: new AbortController().signal }),
  plain: () => scorer.score(makeTrace()),
  invalid: () => scorer.score({}),
  last: () => scorer.score(makeTrace()),
});

test.each([
  ['a memory', () => new Scorer()],
  ['words', () => new Scorer({ memory: new TraceMemory({ method: 'lexical' }) })],
  ['a store', () => new Scorer({ memory: new MemoryStore('prefix') })],
])('replies come in the order of the calls with %s', async (_, make) => {
  const calls = callsOn(make());
  for (let repetition = 0; repetition < 3; repetition++)
    expect(await orderOf(calls)).toEqual(Object.keys(calls));
});

test('ten thousand replies come in order, while a thread ends among its own calls', async () => {
  const { result, stderr } = await runForResult(`
      const { Worker } = require('node:worker_threads');
      const scorer = new kp.Scorer();
      await kp.embedderStatus();
      const order = [];
      const calls = Array.from({ length: 10_000 }, (_, call) =>
        scorer.score(makeTrace()).then(() => order.push(call)));
      const code = \`
        const { parentPort, workerData } = require('node:worker_threads');
        const kp = require(workerData.root);
        for (let i = 0; i < 5000; i++) kp.evaluateValue(workerData.trace);
        parentPort.postMessage('busy');
      \`;
      const worker = new Worker(code, { eval: true, workerData: { root: ${JSON.stringify(root)}, trace: makeTrace() } });
      await new Promise((resolve) => worker.on('message', resolve));
      await worker.terminate();
      await Promise.all(calls);
      console.log(JSON.stringify(order.every((call, index) => call === index) && order.length));
    `);
  expect({ result, stderr }).toEqual({ result: 10_000, stderr: '' });
});

test('replies come in order when the embedder turns out to be broken', async () => {
  const { result } = await runForResult(
    `
      const order = [];
      const call = (name) => kp.evaluateValue(makeTrace()).then(() => order.push(name));
      const calls = ['queued', 'queued too'].map(call);
      // The event loop stands still while loading fails: what comes next needs no waiting, and the replies are on their way.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
      calls.push(call('at once'), call('at once too'));
      await Promise.all(calls);
      console.log(JSON.stringify(order));
    `,
    { env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(__dirname, 'nowhere') } },
  );
  expect(result).toEqual(['queued', 'queued too', 'at once', 'at once too']);
});

/** A trace that aborts a controller while it is read. */
function abortingTrace(controller, reason) {
  const get = () => {
    controller.abort(reason);
    return { confidence: 1 };
  };
  return Object.defineProperty(makeTrace(), 'outcome', { get });
}

test.each([
  ['that looks like an error of the addon', { name: 'TypeError', message: 'plain' }],
  ['of another realm', vm.runInNewContext('new RangeError("elsewhere")')],
  ['with the code of a caught panic', Object.assign(new Error('of a library'), { code: 'GenericFailure' })],
  ['that cannot be read', revoked({})],
  ['null', null],
])('a call that is aborted rejects with the reason %s as it is', async (_, reason) => {
  // Nothing else looks at it: to resolve a promise with it would.
  const rejectsWithIt = (promise) =>
    promise.then(
      () => false,
      (other) => Object.is(other, reason),
    );
  const later = new AbortController();
  const onProgress = () => {
    throw reason;
  };
  const calls = [
    new Scorer().score(abortingTrace(later, reason), { signal: later.signal }),
    new Scorer().score(makeTrace(), { signal: AbortSignal.abort(reason) }),
    new Scorer().scoreAll([makeTrace()], { signal: later.signal }),
    new Scorer().scoreAll([makeTrace()], { onProgress }),
    new Scorer({ embed: false }).scoreAll([makeTrace()], { onProgress }),
  ];
  expect(await Promise.all(calls.map(rejectsWithIt))).toEqual(Array(5).fill(true));
  expect(getEventListeners(later.signal, 'abort')).toEqual([]);
});

test('calls of one signal share a listener, and leave its limit of listeners as it is', async () => {
  const { signal } = new AbortController();
  setMaxListeners(3, signal);
  const scorer = new Scorer();
  const calls = makeTraces(20).map((trace) => scorer.score(trace, { signal }));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  expect(getMaxListeners(signal)).toBe(3);
  await Promise.all(calls);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('scoreAll that is aborted reads no more traces', async () => {
  const controller = new AbortController();
  let reads = 0;
  const traces = new Proxy(makeTraces(2000), {
    get(list, name) {
      if (typeof name === 'string' && /^\d+$/.test(name) && ++reads === 300) controller.abort('enough');
      return Reflect.get(list, name);
    },
  });
  const batch = new Scorer({ embed: false }).scoreAll(traces, { signal: controller.signal });
  expect(await rejectionOf(batch)).toBe('enough');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(reads).toBe(300);
});

test('score that is aborted leaves nothing in the memory', async () => {
  const traces = makeTraces(40, 'in flight');
  const [memory, expected] = [0, 1].map(() => new TraceMemory({ method: 'prefix' }));
  const scorer = new Scorer({ memory });
  const controllers = traces.map(() => new AbortController());
  const calls = traces.map((trace, index) =>
    scorer.score(trace, { signal: controllers[index].signal }).catch((reason) => reason),
  );
  for (const [index, controller] of controllers.entries()) if (index % 3 !== 0) controller.abort();
  for (const [index, result] of (await Promise.all(calls)).entries()) {
    if (result.name === 'AbortError') continue;
    // The first may have been done before its signal was aborted.
    expect((await new Scorer({ memory: expected }).score(traces[index])).value).toBe(result.value);
  }
  expect(memory.size).toBeLessThan(30);
  expect(await memory.nearest(traces[1], 40)).toEqual(await expected.nearest(traces[1], 40));
});

test.each([true, false])(
  'scoreAll that is aborted keeps the beginning of its batch: embed %p',
  async (embed) => {
    const traces = makeTraces(200, 'batch');
    for (const stop of [1, 13, 64, 150]) {
      const memory = new TraceMemory({ method: embed ? 'prefix' : 'lexical' });
      const scorer = new Scorer({ memory, embed });
      const controller = new AbortController();
      const told = [];
      const onProgress = ({ done }) => {
        told.push(done);
        if (done === stop) controller.abort('enough');
      };
      const batch = scorer.scoreAll(traces, { signal: controller.signal, onProgress });
      expect(await rejectionOf(batch)).toBe('enough');
      expect(told).toHaveLength(stop);
      // After all calls before it.
      await scorer.score(makeTrace(), { remember: false });
      expect(memory.size).toBeGreaterThanOrEqual(stop);
      expect(memory.size).toBeLessThanOrEqual(stop + 64);
      const ids = (await memory.nearest(traces[0], 200)).map(({ id }) => id).sort();
      expect(ids).toEqual(
        traces
          .slice(0, memory.size)
          .map(({ id }) => id)
          .sort(),
      );
    }
  },
);
