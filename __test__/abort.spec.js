'use strict';

// Calls that are aborted: they reject with the signal's reason, and the memory is as if they had never been made.

const { getEventListeners } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const { Scorer, VectorCache, embed } = require('..');
const { revoked } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { runForResult } = require('./support/run-script.js');
const { cacheFileIn, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('abort');

const distinct = (count, salt) =>
  Array.from({ length: count }, (_, index) =>
    makeTrace({ objective: `${salt} ${index}: ${'look again '.repeat((index * 7) % 30)}` }),
  );

/** A trace that aborts a controller while it is read. */
function abortingTrace(controller, reason) {
  const get = () => {
    controller.abort(reason);
    return { confidence: 1 };
  };
  return Object.defineProperty(makeTrace(), 'outcome', { get });
}

/** Everything in a cache, to compare. */
const contents = (cache) => Array.from(cache, ({ vector, label }) => [Array.from(vector), label]);

const caught = (promise) =>
  promise.then(
    () => 'resolved',
    (reason) => reason,
  );

const expectEmpty = async (scorer) =>
  expect(await scorer.explain(makeTrace())).toMatchObject({ noveltyBasis: 'empty-cache' });

/** A call of each function that takes a signal and a trace or a text. */
const CALLS = {
  evaluateValue: (options, scorer = new Scorer()) => scorer.evaluateValue(makeTrace(), options),
  explain: (options, scorer = new Scorer()) => scorer.explain(makeTrace(), options),
  evaluateValues: (options, scorer = new Scorer()) => scorer.evaluateValues([makeTrace()], options),
  embed: (options) => embed(['text'], options),
};

/** The options of a batch that is aborted with 'enough' after a number of items, and how many it was told of. */
function abortedAfter(stop) {
  const controller = new AbortController();
  const told = [];
  const onProgress = ({ done }) => {
    told.push(done);
    if (done === stop) controller.abort('enough');
  };
  return { signal: controller.signal, onProgress, told };
}

test.each(Object.entries(CALLS))('%s with an aborted signal rejects with its reason', async (_, call) => {
  const scorer = new Scorer();
  const reason = new Error('on purpose');
  expect(await caught(call({ signal: AbortSignal.abort(reason) }, scorer))).toBe(reason);
  expect((await caught(call({ signal: AbortSignal.abort() }, scorer))).name).toBe('AbortError');
  expect(scorer.memory.size).toBe(0);
});

test('a signal has no listener of calls that are settled', async () => {
  const { signal } = new AbortController();
  await Promise.all(Object.values(CALLS).flatMap((call) => [call({ signal }), call({ signal })]));
  // They are removed in the turn after the reply.
  await new Promise(setImmediate);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('signals of AbortSignal.any, one for each call, leave no garbage', async () => {
  const { result } = await runForResult(`
    const memory = new kp.TraceMemory();
    const { signal } = new AbortController();
    const collect = async () => {
      await new Promise(setImmediate);
      globalThis.Bun ? Bun.gc(true) : require('node:v8').setFlagsFromString('--expose-gc');
      globalThis.Bun || require('node:vm').runInNewContext('gc')();
      return process.memoryUsage().heapUsed;
    };
    const make = async (calls) => {
      for (let call = 0; call < calls; call++) {
        await memory.nearest(makeTrace(), 1, { signal: AbortSignal.any([signal, new AbortController().signal]) });
      }
      return collect();
    };
    const before = await make(1000);
    console.log(JSON.stringify((await make(5000)) - before));
  `);
  // Each took 2,300 bytes where somebody went on listening to it.
  expect(result).toBeLessThan(5_000_000);
});

describe.each([
  ['that looks like an error of the addon', { name: 'TypeError', message: 'plain' }],
  ['of another realm', vm.runInNewContext('new RangeError("elsewhere")')],
  ['with the code of a caught panic', Object.assign(new Error('of a library'), { code: 'GenericFailure' })],
  ['that cannot be read', revoked({})],
  ['null', null],
])('a reason %s', (_, reason) => {
  // Nothing else looks at it: to resolve a promise with it would.
  const rejectsWithIt = (promise) =>
    promise.then(
      () => false,
      (other) => Object.is(other, reason),
    );

  test('comes back as it is', async () => {
    const later = new AbortController();
    const calls = [
      new Scorer().evaluateValue(abortingTrace(later, reason), { signal: later.signal }),
      ...[AbortSignal.abort(reason), later.signal].flatMap((signal) =>
        Object.values(CALLS).map((call) => call({ signal })),
      ),
    ];
    expect(await Promise.all(calls.map(rejectsWithIt))).toEqual(Array(9).fill(true));
  });

  test('thrown by onProgress does so too', async () => {
    const onProgress = () => {
      throw reason;
    };
    const calls = [
      new Scorer().evaluateValues([makeTrace()], { onProgress }),
      new Scorer({ embedder: null }).evaluateValues([makeTrace()], { onProgress }),
      embed(['text'], { onProgress }),
    ];
    expect(await Promise.all(calls.map(rejectsWithIt))).toEqual([true, true, true]);
  });
});

test('aborted calls in flight leave nothing in the memory', async () => {
  const traces = distinct(40, 'in flight');
  const [scorer, expected] = [new Scorer(), new Scorer()];
  const controllers = traces.map(() => new AbortController());
  const calls = traces.map((trace, index) => {
    const { signal } = controllers[index];
    const call =
      index % 2 === 0 ? scorer.evaluateValue(trace, { signal }) : scorer.explain(trace, { signal });
    return call.catch((reason) => reason);
  });
  for (const [index, controller] of controllers.entries()) if (index % 3 !== 0) controller.abort();
  const results = await Promise.all(calls);
  const scores = [];
  for (const [index, result] of results.entries()) {
    if (result?.name === 'AbortError') continue;
    // The first may have been done before its signal was aborted.
    expect(await expected.evaluateValue(traces[index])).toBe(result.score ?? result);
    scores.push(result);
  }
  expect(scores.length).toBeLessThan(30);
  expect(scores.length).toBeGreaterThanOrEqual(14);
  expect(contents(scorer.memory)).toEqual(contents(expected.memory));
});

test('an aborted batch leaves nothing, however far it was', async () => {
  const traces = distinct(80, 'batch');
  const cache = new VectorCache({ maxElements: 20 });
  const scorer = new Scorer({ memory: cache });
  await scorer.evaluateValues(distinct(25, 'before'));
  const before = contents(cache);
  for (const stop of [1, 13, 64, 79, 80]) {
    const { told, ...options } = abortedAfter(stop);
    expect(await caught(scorer.evaluateValues(traces, options))).toBe('enough');
    expect(contents(cache)).toEqual(before);
    await scorer.explain(traces[0], { remember: false });
    // Nothing is told of it afterwards.
    expect(told).toHaveLength(stop);
  }
});

describe('a batch whose onProgress throws', () => {
  const throwing =
    (stop) =>
    ({ done }) => {
      if (done === stop) throw 'on purpose';
    };

  test.each([
    [10, 1],
    [10, 10],
    [200, 1],
    [200, 150],
  ])('leaves nothing, with a signal or without: %d traces, at %d', async (count, stop) => {
    for (const signal of [new AbortController().signal, undefined]) {
      const scorer = new Scorer();
      const batch = scorer.evaluateValues(distinct(count, 'thrown'), { signal, onProgress: throwing(stop) });
      // It comes after the batch.
      const after = scorer.explain(makeTrace());
      expect(await caught(batch)).toBe('on purpose');
      expect(await after).toMatchObject({ noveltyBasis: 'empty-cache' });
      expect(scorer.memory.size).toBe(1);
    }
  });
});

test('calls after an aborted batch are as if there had been none', async () => {
  const [scorer, expected] = [new Scorer(), new Scorer()];
  const controller = new AbortController();
  const batch = caught(scorer.evaluateValues(distinct(200, 'aborted'), { signal: controller.signal }));
  const after = [
    scorer.evaluateValue(distinct(1, 'aborted')[0]),
    scorer.evaluateValues(distinct(5, 'aborted')),
  ];
  controller.abort('enough');
  expect(await batch).toBe('enough');
  expect(await after[0]).toBe(await expected.evaluateValue(distinct(1, 'aborted')[0]));
  expect(await after[1]).toEqual(await expected.evaluateValues(distinct(5, 'aborted')));
  expect(contents(scorer.memory)).toEqual(contents(expected.memory));
});

test('calls that waited for an aborted batch run before later ones', async () => {
  const scorer = new Scorer();
  const controller = new AbortController();
  const named = (id) => ({ ...makeTrace(), id });
  let later;
  const onProgress = () => {
    controller.abort();
    // A call in each of the next turns of the microtask queue: in one of them the batch gives up.
    later = (async () => {
      const calls = [];
      for (let turn = 0; turn < 20; turn++) {
        await null;
        calls.push(scorer.evaluateValue(named(`later ${turn}`)));
      }
      await Promise.all(calls);
    })();
  };
  const { signal } = controller;
  const batch = caught(scorer.evaluateValues(distinct(100, 'given up'), { signal, onProgress }));
  await Promise.all([scorer.evaluateValue(named('first')), scorer.explain(named('second')), batch]);
  await later;
  const labels = Array.from(scorer.memory, ({ label }) => label);
  expect(labels).toEqual(['first', 'second', ...Array.from({ length: 20 }, (_, turn) => `later ${turn}`)]);
});

test('a batch with a signal that stays quiet is a batch without one', async () => {
  const traces = [...distinct(90, 'quiet'), ...distinct(30, 'quiet')];
  for (const maxElements of [1000, 50, 1, 0]) {
    const [scorer, expected] = [0, 1].map(() => new Scorer({ memory: new VectorCache({ maxElements }) }));
    for (const each of [scorer, expected]) await each.evaluateValues(distinct(30, 'before'));
    const { signal } = new AbortController();
    expect(await scorer.evaluateValues(traces, { signal })).toEqual(await expected.evaluateValues(traces));
    expect(contents(scorer.memory)).toEqual(contents(expected.memory));
    // An invalid trace ends it; those before are remembered.
    const invalid = [...distinct(3, 'invalid'), null, ...distinct(2, 'later')];
    const errors = await Promise.all([
      caught(scorer.evaluateValues(invalid, { signal })),
      caught(expected.evaluateValues(invalid)),
    ]);
    expect(errors[0].message).toBe('traces[3] must be an object, got null');
    expect(errors[0].message).toBe(errors[1].message);
    expect(contents(scorer.memory)).toEqual(contents(expected.memory));
  }
});

test('a signal that aborts after the reply changes nothing', async () => {
  const scorer = new Scorer();
  const controller = new AbortController();
  const { signal } = controller;
  expect(await scorer.evaluateValue(makeTrace(), { signal })).toBeGreaterThan(0);
  expect(await scorer.evaluateValues([makeTrace()], { signal })).toHaveLength(1);
  controller.abort();
  await new Promise(setImmediate);
  expect(scorer.memory.size).toBe(2);
});

test('a signal of another realm is one, and what looks like one is refused', async () => {
  const { result } = await runForResult(`
    const like = { aborted: true, reason: 'no', addEventListener() {}, removeEventListener() {} };
    const refused = await kp.evaluateValue(makeTrace(), { signal: like }).catch(({ code }) => code);
    console.log(JSON.stringify(refused));
  `);
  expect(result).toBe('ERR_INVALID_OPTION');
  // Jest runs this file and the package in another realm than that of the signal.
  const scorer = new Scorer();
  expect(await caught(scorer.evaluateValue(makeTrace(), { signal: AbortSignal.abort('enough') }))).toBe(
    'enough',
  );
  await expectEmpty(scorer);
});

test.each(['evaluateValue', 'explain'])('%s: a trace that aborts while it is read', async (method) => {
  const scorer = new Scorer();
  const controller = new AbortController();
  const trace = abortingTrace(controller, 'while reading');
  expect(await caught(scorer[method](trace, { signal: controller.signal }))).toBe('while reading');
  await expectEmpty(scorer);
});

test('one signal serves a thousand calls, without a warning', async () => {
  const { result, stderr } = await runForResult(`
    const controller = new AbortController();
    const { signal } = controller;
    const scorer = new kp.Scorer();
    await Promise.all(Array.from({ length: 500 }, (_, i) => scorer.evaluateValue(makeTrace(), { signal })));
    const other = (i) => makeTrace({ objective: \`trace \${i} \${'with a long text '.repeat(100)}\` });
    const rest = Array.from({ length: 500 }, (_, i) => scorer.explain(other(i), { signal }).catch((e) => e.name));
    controller.abort();
    const names = await Promise.all(rest);
    const aborted = names.filter((name) => name === 'AbortError').length;
    console.log(JSON.stringify({ size: scorer.memory.size, aborted, done: 500 - aborted }));
  `);
  expect(stderr).toBe('');
  expect(result.size).toBe(500 + result.done);
  expect(result.aborted).toBeGreaterThan(0);
});

describe('without an embedder too', () => {
  test('calls are aborted', async () => {
    const scorer = new Scorer({ embedder: null });
    const controller = new AbortController();
    const { signal } = controller;
    expect(await scorer.evaluateValue(makeTrace(), { signal })).toBeGreaterThan(0);
    controller.abort('enough');
    expect(await caught(scorer.explain(makeTrace(), { signal }))).toBe('enough');
  });

  test('a batch is, however far it was', async () => {
    const stops = [10, 937, 1000].map((stop) => [1000, stop]);
    for (const [count, stop] of [[10, 1], [64, 1], [1000, 1], ...stops]) {
      const { told, ...options } = abortedAfter(stop);
      const batch = new Scorer({ embedder: null }).evaluateValues(Array(count).fill(makeTrace()), options);
      expect(await caught(batch)).toBe('enough');
      expect(told).toHaveLength(stop);
    }
  });

  test('and where none is installed', async () => {
    const env = { KNOWLEDGEPULSE_MODEL_DIR: path.join(scratch, 'nowhere') };
    const { result } = await runForResult(
      `
      process.removeAllListeners('warning');
      await kp.embedderStatus();
      const results = [];
      for (const stop of [1, 37, 1000]) {
        const controller = new AbortController();
        let told = 0;
        const onProgress = ({ done }) => {
          told = done;
          if (done === stop) controller.abort('enough');
        };
        const { signal } = controller;
        const batch = new kp.Scorer().evaluateValues(Array(1000).fill(makeTrace()), { signal, onProgress });
        results.push([await batch.then(() => 'resolved', (reason) => reason), told]);
      }
      console.log(JSON.stringify(results));
    `,
      { env },
    );
    expect(result).toEqual([1, 37, 1000].map((stop) => ['enough', stop]));
  });
});

test('embedding can be aborted', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const texts = Array.from({ length: 30 }, (_, index) => `embed ${index} ${'a long text '.repeat(50)}`);
  const batch = caught(embed(texts, { signal }));
  const singles = texts.map((text) => caught(embed([`${text} single`], { signal })));
  controller.abort('enough');
  expect(await batch).toBe('enough');
  expect(await singles.at(-1)).toBe('enough');
  expect((await embed([texts[0]]))[0]).toHaveLength(384);
});

test('texts whose embeddings are known already can be, too', async () => {
  const texts = Array(64).fill('the same text');
  await embed([texts[0]]);
  for (const stop of [1, 30, 64]) {
    const { told, ...options } = abortedAfter(stop);
    expect(await caught(embed(texts, options))).toBe('enough');
    expect(told).toHaveLength(stop);
  }
});

test('a load that is aborted while the embedder is asked for its model', async () => {
  const file = path.join(__dirname, 'support', 'other-model.safetensors');
  const load = `
    const controller = new AbortController();
    const load = kp.VectorCache.load(${JSON.stringify(file)}, { signal: controller.signal });
    const loaded = load.then(() => 'resolved', (reason) => reason.code ?? reason);
    // The embedder is loaded first: that takes longer than to read a small file.
    await kp.VectorCache.load(${JSON.stringify(file)}, { model: 'any' });
    await new Promise(setImmediate);
    controller.abort('enough');
    console.log(JSON.stringify(await loaded));
  `;
  expect((await runForResult(load)).result).toBe('enough');
});

test('an aborted save leaves the file unchanged', async () => {
  const file = cacheFileIn(scratch);
  const cache = new VectorCache({ maxElements: 20_000 });
  cache.add(new Float32Array(384).fill(1));
  await cache.save(file);
  const before = fs.readFileSync(file);
  for (let index = 0; index < 20_000; index++) cache.add(new Float32Array(384).fill(index + 1));
  const controller = new AbortController();
  const { signal } = controller;
  const calls = [cache.save(file, { signal }), VectorCache.load(file, { signal })].map(caught);
  controller.abort('enough');
  calls.push(caught(cache.save(file, { signal })));
  expect(await Promise.all(calls)).toEqual(Array(3).fill('enough'));
  // The thread that writes hears of it a little later.
  const directory = path.dirname(file);
  while (fs.readdirSync(directory).length > 1) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(fs.readFileSync(file).equals(before)).toBe(true);
  await cache.save(file, { signal: new AbortController().signal });
  expect((await VectorCache.load(file)).size).toBe(20_000);
});
