'use strict';

// Scorers with memories and weights of their own.

const path = require('node:path');

const fc = require('fast-check');

const kp = require('..');
const { PROFILES, scoreOf } = require('./oracle/score.js');
const arbitraries = require('./support/arbitraries.js');
const { hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { thrownBy } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');

const { Scorer, TraceMemory, VectorCache } = kp;

const equal = { complexity: 0.25, novelty: 0.25, toolDiversity: 0.25, outcomeConfidence: 0.25 };

/** The score of a trace by weights, without an embedder. */
const scoreBy = (weights, trace) => new Scorer({ embedder: null, weights }).evaluateValue(trace);

describe('memories', () => {
  test('vectors that were added by hand are of any method, until a trace is remembered', async () => {
    const cache = new VectorCache();
    cache.add(new Float32Array(384).fill(1), 'by hand');
    const scorer = new Scorer({ memory: cache });
    expect((await scorer.explain(makeTrace(), { remember: false })).nearest.label).toBe('by hand');
    await scorer.evaluateValue(makeTrace());
    cache.add(new Float32Array(384).fill(1), 'by hand');
    expect(cache.method).toBe('prefix');
  });

  test('each scorer has its own', async () => {
    const trace = makeTrace({ objective: 'each its own' });
    const scorers = [new Scorer(), new Scorer()];
    const first = await Promise.all(scorers.map((scorer) => scorer.evaluateValue(trace)));
    expect(first[0]).toBe(first[1]);
    expect(await scorers[0].evaluateValue(trace)).toBeLessThan(first[0]);
    expect(scorers.map(({ memory }) => memory.size)).toEqual([2, 1]);
    expect(scorers[0].memory.maxElements).toBe(1000);
    expect(scorers[0].memory).toBe(scorers[0].memory);
  });

  test('a given one is used, and may be shared', async () => {
    const cache = new VectorCache({ maxElements: 2 });
    const trace = makeTrace({ objective: 'shared' });
    const [first, second] = [new Scorer({ memory: cache }), new Scorer({ memory: cache })];
    expect(first.memory).toBe(cache);
    const score = await first.evaluateValue(trace);
    expect(await second.evaluateValue(trace)).toBeLessThan(score);
    await second.evaluateValue(trace);
    expect(cache.size).toBe(2);
  });

  test('the functions of the package score with one memory', async () => {
    const { _getLocalCache, evaluateValue, explain } = kp;
    _getLocalCache().clear();
    const trace = makeTrace({ objective: 'the memory of the process' });
    const first = await evaluateValue(trace);
    expect((await explain(trace)).score).toBeLessThan(first);
    expect(_getLocalCache().size).toBe(2);
  });

  test('remembered traces go by their id', async () => {
    const scorer = new Scorer();
    const long = 'x'.repeat(1024);
    const ids = ['kp:trace:a', undefined, 7, '', long, `${long}x`, 'é'.repeat(1000), '\ud800'];
    for (const id of ids) await scorer.evaluateValue({ ...makeTrace(), id });
    await scorer.evaluateValue(throwingGetter(makeTrace(), 'id', new Error('on purpose')));
    const labels = Array.from(scorer.memory, ({ label }) => label);
    const none = undefined;
    expect(labels).toEqual(['kp:trace:a', none, none, '', long, none, none, '\ufffd', none]);
  });

  test('a scorer refuses a memory whose vectors are of another model', async () => {
    // A file of a process with the other model.
    const file = path.join(__dirname, 'support', 'other-model.safetensors');
    const memory = await VectorCache.load(file, { model: 'any' });
    const { size } = memory;
    const { model } = await kp.embedderStatus();
    expect(memory.model).not.toEqual({ model, dtype: 'fp32' });
    const error = await new Scorer({ memory }).evaluateValue(makeTrace()).catch((reason) => reason);
    expect(error).toMatchObject({ code: 'ERR_MEMORY_OTHER_MODEL', name: 'Error' });
    expect(memory.size).toBe(size);
  });
});

describe('weights', () => {
  test('extend the profiles and replace them', async () => {
    const outcomeOnly = { complexity: 0, novelty: 0, toolDiversity: 0, outcomeConfidence: 1 };
    const weights = { legal: outcomeOnly, code: outcomeOnly };
    const steps = [{ type: 'thought' }, { type: 'observation' }];
    const score = (domain) => scoreBy(weights, makeTrace({ domain, steps, confidence: 0.7 }));
    expect(await score('legal')).toBe(0.7);
    expect(await score('code')).toBe(0.7);
    for (const domain of ['finance', 'astronomy', 'default']) {
      const trace = makeTrace({ domain, steps, confidence: 0.7 });
      expect(await score(domain)).toBe(scoreOf(trace, 0.5));
    }
  });

  test('default is for every domain without its own', async () => {
    const weights = { default: { complexity: 0, novelty: 1, toolDiversity: 0, outcomeConfidence: 0 } };
    const steps = [{ type: 'thought' }, { type: 'observation' }];
    expect(await scoreBy(weights, makeTrace({ domain: 'astronomy', steps }))).toBe(0.5);
    const medical = makeTrace({ domain: 'medical', steps });
    expect(await scoreBy(weights, medical)).toBe(scoreOf(medical, 0.5));
  });

  test('names of inherited properties are ordinary profile names', async () => {
    const weights = JSON.parse(
      '{"__proto__": {"complexity": 0, "novelty": 0, "toolDiversity": 0, "outcomeConfidence": 1}}',
    );
    const steps = [{ type: 'thought' }, { type: 'observation' }];
    const score = (domain) => scoreBy(weights, makeTrace({ domain, steps, confidence: 0.7 }));
    expect(await score('__proto__')).toBe(0.7);
    expect(await score('constructor')).not.toBe(0.7);
  });

  test('any that add up to 1 are used as they are', async () => {
    const parts = fc.tuple(...Array(4).fill(fc.double({ min: 0, max: 1, noNaN: true })));
    const property = fc.asyncProperty(parts, arbitraries.trace, async (values, trace) => {
      const sum = values.reduce((a, b) => a + b);
      fc.pre(sum > 1e-6);
      const [complexity, novelty, toolDiversity, outcomeConfidence] = values.map((value) => value / sum);
      const weights = { complexity, novelty, toolDiversity, outcomeConfidence };
      PROFILES.set('custom', weights);
      const custom = { ...trace, metadata: { ...trace.metadata, task_domain: 'custom' } };
      expect(await scoreBy({ custom: weights }, custom)).toBe(scoreOf(custom, 0.5));
    });
    await fc.assert(property, { numRuns: 200 });
    PROFILES.delete('custom');
  });

  const changed = (parts) => ({ x: { ...equal, ...parts } });
  test.each([
    [
      'too much',
      changed({ outcomeConfidence: 0.5 }),
      /\["x"\] must sum to 1, but sums to 1\.25$/,
      RangeError,
    ],
    [
      'too little',
      changed({ outcomeConfidence: 0 }),
      /\["x"\] must sum to 1, but sums to 0\.75$/,
      RangeError,
    ],
    ['a little too much', changed({ outcomeConfidence: 0.25 + 2e-9 }), /sums to 1\.000000002$/, RangeError],
    ['a negative one', changed({ novelty: -0.25 }), /\["x"\]\.novelty .*, got -0\.25$/, RangeError],
    ['NaN', changed({ novelty: Number.NaN }), /\["x"\]\.novelty .*, got NaN$/, RangeError],
    ['infinity', changed({ outcomeConfidence: 1 / 0 }), /\.outcomeConfidence .*Infinity$/, RangeError],
    ['a missing one', { x: { complexity: 1 } }, /\["x"\]\.novelty must be a number$/],
    ['a string', changed({ outcomeConfidence: '0.25' }), /\["x"\]\.outcomeConfidence must be a number$/],
    [
      'an unknown one',
      changed({ tool: 0 }),
      /\["x"\]\.tool is not known; options.* has complexity, novelty,/,
    ],
    ['no object', { x: 1 }, /\["x"\] must be an object, got 1$/],
    ['null', { x: null }, /\["x"\] must be an object, got null$/],
    ['an array of them', [equal], /^options\.weights must be an object, got array$/],
    ['a number', 1, /^options\.weights must be an object, got 1$/],
    ['a Map', new Map([['x', equal]]), /^options\.weights must be an object, not a Map$/],
    ['a revoked proxy', revoked({}), /^options\.weights could not be read/],
    ['one that throws', throwingProxy({ x: equal }, 'thrown', 'x'), /\["x"\] could not be read/],
  ])('%s are refused', (...row) => {
    const [, weights, message, Class = TypeError] = row;
    const error = thrownBy(() => new Scorer({ weights }));
    expect(error).toBeInstanceOf(Class);
    expect(error.code).toBe('ERR_INVALID_OPTION');
    expect(error.message).toMatch(message);
  });

  test('a sum that is 1 but for rounding is not refused', () => {
    const weights = {
      x: { complexity: 0.1, novelty: 0.2, toolDiversity: 0.3, outcomeConfidence: 0.4 + 5e-10 },
    };
    expect(() => new Scorer({ weights })).not.toThrow();
  });
});

describe('other options', () => {
  const other = 'must have 384 dimensions, those of an embedding, got 3';

  const known = 'its options are embedder, fallback, memory, weights';
  const small = new TraceMemory({ novelty: 'full', dimensions: 3 });

  test.each([
    ['null', null, TypeError, ' must be an object, got null'],
    ['an array', [], TypeError, ' must be an object, got array'],
    ['small caches', { memory: new VectorCache({ dimensions: 3 }) }, RangeError, `.memory ${other}`],
    ['small memories', { memory: small }, RangeError, `.memory ${other}`],
    ['other embedders', { embedder: 'openai' }, RangeError, ".embedder must be 'default' or null"],
    ['unknown options', { novlety: 'full' }, TypeError, `.novlety is not an option of this call; ${known}`],
    ['throwing options', throwingProxy({}, 'no', 'memory'), TypeError, '.memory could not be read: it threw'],
  ])('%s are refused', (_, options, Class, message) => {
    const error = thrownBy(() => new Scorer(options));
    expect(error).toBeInstanceOf(Class);
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', message: `options${message}` });
  });

  const unknown = 'is not an option of this call; its options are signal';
  const silent = new Proxy({}, { ownKeys: () => hostile.toString() });
  const { signal } = new AbortController();

  test.each([
    ['a number', 7, 'options must be an object, got 7'],
    ['a string', '7', 'options must be an object, got string'],
    ['an array', [], 'options must be an object, got array'],
    ['a function', () => {}, 'options must be an object, got function'],
    ['a signal that is an ordinary object', { signal: {} }, 'options.signal must be an AbortSignal'],
    ['a controller', { signal: new AbortController() }, 'options.signal must be an AbortSignal'],
    ['a signal alone', signal, 'options must be an object with the signal in it: { signal }'],
    ['an unknown option', { sginal: null }, new RegExp(`^options\\.sginal ${unknown}`)],
    ['an option whose name is no word', { 'a b': 1 }, new RegExp(`^options\\["a b"\\] ${unknown}`)],
    [
      'an unknown option that throws',
      throwingGetter({}, 'sginal', 1),
      'options.sginal could not be read: it threw',
    ],
    ['a proxy that does not tell its options', silent, 'options could not be read: it threw'],
  ])('calls reject for %s', async (_, options, message) => {
    const scorer = new Scorer();
    // To the functions of the package a number is no options: see below.
    const modules = typeof options === 'number' ? [] : [kp];
    const calls = [
      () => scorer.explain(makeTrace(), options),
      () => scorer.flush(options),
      () => kp.embed(['text'], options),
      ...[scorer, ...modules].flatMap((each) => [
        () => each.evaluateValue(makeTrace(), options),
        () => each.evaluateValues([makeTrace()], options),
      ]),
    ];
    if (modules.length > 0) calls.push(() => kp.explain(makeTrace(), options));
    for (const call of calls) {
      const error = await call().catch((reason) => reason);
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_INVALID_OPTION');
      if (typeof message === 'string') expect(error.message).toBe(message);
      else expect(error.message).toMatch(message);
    }
    expect(scorer.memory.size).toBe(0);
  });

  test('calls reject for options of another type', async () => {
    const scorer = new Scorer();
    const error = await scorer.explain(makeTrace(), { remember: 'no' }).catch((reason) => reason);
    expect(error).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: 'options.remember must be a boolean',
    });
    const call = scorer.evaluateValues([makeTrace()], { onProgress: 1 });
    expect(await call.catch(({ message }) => message)).toBe('options.onProgress must be a function');
  });

  test('calls reject an option of other calls, and name their own', async () => {
    const scorer = new Scorer();
    const message = (call) => call.catch((error) => error.message);
    for (const { evaluateValue } of [kp, scorer]) {
      expect(await message(evaluateValue.call(scorer, makeTrace(), { remember: false }))).toBe(
        'options.remember is not an option of this call; its options are signal',
      );
    }
    expect(await message(scorer.explain(makeTrace(), { onProgress() {} }))).toBe(
      'options.onProgress is not an option of this call; its options are signal, remember, novelty',
    );
    expect(scorer.memory.size).toBe(0);
  });

  test('calls take null, and ignore undefined, inherited and symbol options', async () => {
    const scorer = new Scorer({ embedder: null, storee: undefined });
    const inherited = Object.create({ signal: AbortSignal.abort('enough'), sginal: null });
    for (const options of [
      undefined,
      null,
      { remember: undefined },
      { [Symbol('s')]: 1 },
      { signal: null },
    ]) {
      expect(await scorer.evaluateValue(makeTrace(), options)).toBeGreaterThan(0);
    }
    expect(await kp.evaluateValue(makeTrace(), null)).toBeGreaterThan(0);
    expect(await scorer.evaluateValue(makeTrace(), inherited).catch((reason) => reason)).toBe('enough');
  });

  test('the functions of the package obey them', async () => {
    const { evaluateValue, evaluateValues } = kp;
    const { size } = kp._getLocalCache();
    const options = { signal: AbortSignal.abort('enough') };
    const calls = [
      evaluateValue(makeTrace(), options),
      evaluateValues([makeTrace()], options),
      kp.explain(makeTrace(), options),
    ];
    for (const call of calls) expect(await call.catch((reason) => reason)).toBe('enough');
    expect(kp._getLocalCache().size).toBe(size);
  });

  test.each([
    ['evaluateValue', 'number'],
    ['explain', 'object'],
    ['evaluateValues', 'object'],
  ])('%s can be handed to map', async (name, type) => {
    const traces = [makeTrace(), makeTrace({ objective: 'another' })];
    const each = name === 'evaluateValues' ? traces.map((trace) => [trace]) : traces;
    const results = await Promise.all(each.map(kp[name]));
    expect(results.map((result) => typeof result)).toEqual([type, type]);
  });
});

test('progress is told for each trace, in order', async () => {
  const traces = Array.from({ length: 70 }, (_, index) => makeTrace({ objective: `progress ${index % 5}` }));
  const seen = [];
  await new Scorer().evaluateValues(traces, { onProgress: (progress) => seen.push(progress) });
  expect(seen).toEqual(traces.map((_, index) => ({ done: index + 1, total: 70 })));
});

test('replies come in the order of the calls, also when the embedder turns out to be broken', async () => {
  const { result } = await runForResult(
    `
    const order = [];
    const call = (name) => kp.evaluateValue(makeTrace()).then(() => order.push(name));
    const calls = ['queued', 'queued too'].map(call);
    // The event loop stands still while loading fails: what comes next needs no waiting, and the replies are on their way.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
    calls.push(call('at once'), call('at once too'));
    await Promise.all(calls);
    calls.push(call('later'));
    await calls.at(-1);
    console.log(JSON.stringify(order));
  `,
    { env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(__dirname, 'nowhere') } },
  );
  expect(result).toEqual(['queued', 'queued too', 'at once', 'at once too', 'later']);
});
