'use strict';

// How a score came about: its parts make it up exactly.

const fc = require('fast-check');

const { Scorer, TraceMemory, VectorCache, _getLocalCache, evaluateValue, explain } = require('..');
const { PROFILES, dimensionsOf } = require('./oracle/score.js');
const arbitraries = require('./support/arbitraries.js');
const { makeTrace } = require('./support/make-trace.js');
const { MemoryStore } = require('./support/memory-store.js');
const { runForResult } = require('./support/run-script.js');

const ORDER = ['complexity', 'novelty', 'toolDiversity', 'outcomeConfidence'];

/** What each rule makes of a score, and whether it applies to a trace. */
const RULES = {
  'single-thought': {
    applies: ({ steps }) => steps.length === 1 && steps[0].type === 'thought',
    effect: () => 0.1,
  },
  'recovery-bonus': {
    applies: ({ steps, metadata }) =>
      metadata.success && steps.filter(({ type }) => type === 'error_recovery').length > 2,
    effect: (score) => Math.min(1, score + 0.1),
  },
  'single-tool-penalty': {
    applies: ({ steps }) => new Set(steps.filter(({ tool }) => tool).map(({ tool }) => tool.name)).size === 1,
    effect: (score) => Math.max(0, score - 0.1),
  },
};

/** Checks that the parts of a breakdown make up its score, to the bit, and are what the trace says. */
function expectExact(breakdown, trace) {
  const { dimensions, weights, contributions, composite, overrides, score } = breakdown;
  expect(dimensions).toEqual(dimensionsOf(trace, dimensions.novelty));
  expect(weights).toEqual(PROFILES.get(breakdown.profile));
  expect(breakdown.profile).toBe(
    PROFILES.has(trace.metadata.task_domain) ? trace.metadata.task_domain : 'default',
  );
  let sum = 0;
  for (const name of ORDER) {
    expect(contributions[name]).toBe(dimensions[name] * weights[name]);
    sum += contributions[name];
  }
  expect(Object.keys(contributions)).toEqual(ORDER);
  expect(composite).toBe(sum);

  let value = composite;
  const expected = Object.keys(RULES).filter((rule) => RULES[rule].applies(trace));
  for (const { rule, before, after } of overrides) {
    expect(before).toBe(value);
    if (rule === 'clamp') {
      expect(after).toBe(Math.min(1, Math.max(0, before)));
      expect(after).not.toBe(before);
    } else {
      expect(rule).toBe(expected.shift());
      expect(after).toBe(RULES[rule].effect(before));
    }
    value = after;
  }
  expect(expected).toEqual([]);
  expect(score).toBe(value);
}

test('the parts make up the score, and the score is that of evaluateValue', async () => {
  const property = fc.asyncProperty(
    fc.array(arbitraries.trace, { minLength: 1, maxLength: 4 }),
    async (traces) => {
      const [explaining, evaluating] = [new Scorer(), new Scorer()];
      for (const trace of traces) {
        const breakdown = await explaining.explain(trace);
        expectExact(breakdown, trace);
        expect(breakdown.score).toBe(await evaluating.evaluateValue(trace));
      }
      expect(explaining.memory.size).toBe(evaluating.memory.size);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('every part at once', async () => {
  const scorer = new Scorer();
  const steps = Array(3).fill({ type: 'error_recovery', content: 'again', tool: { name: 'sh' } });
  const trace = makeTrace({ objective: 'recover', steps, domain: 'astronomy' });
  const first = await scorer.explain(trace);
  expectExact(first, trace);
  expect(first.overrides.map(({ rule }) => rule)).toEqual(['recovery-bonus', 'single-tool-penalty']);
  // [CLS] recover again again again [SEP]
  const told = { tokens: 6, truncated: false };
  expect(first).toMatchObject({ profile: 'default', noveltyBasis: 'empty-cache', nearest: null, ...told });
  const second = await scorer.explain({ ...trace, id: 'second' });
  expectExact(second, trace);
  expect(second.noveltyBasis).toBe('cache');
  expect(second.dimensions.novelty).toBeCloseTo(0, 6);
  expect(second.nearest).toEqual({
    ...{ label: trace.id, similarity: 1 - second.dimensions.novelty },
    ...{ lexical: null, contained: null, embedded: null, sharedWords: null, newWords: null },
  });
});

/** With these, the score of a trace of these steps is its novelty. */
const weights = { code: { complexity: 0, novelty: 1, toolDiversity: 0, outcomeConfidence: 0 } };
const steps = [{ type: 'thought' }, { type: 'observation' }];

test('opposites can need the clamp', async () => {
  const scorer = new Scorer({ weights });
  const trace = makeTrace({ steps, objective: 'opposite' });
  await scorer.explain(trace);
  const [{ vector }] = scorer.memory;
  scorer.memory.clear();
  const mirror = vector.map((component) => -component);
  scorer.memory.add(mirror, 'mirror');
  const breakdown = await scorer.explain(trace);
  expect(breakdown.nearest).toMatchObject({ label: 'mirror', similarity: expect.closeTo(-1, 5) });
  expect(breakdown.overrides).toEqual([{ rule: 'clamp', before: breakdown.composite, after: 1 }]);
  expect(breakdown.composite).toBeCloseTo(2, 5);
  expect(breakdown.dimensions.novelty).toBeCloseTo(2, 5);
  expect(breakdown.score).toBe(1);
});

test('so can a similarity that rounding has taken beyond 1', async () => {
  const store = new MemoryStore('prefix');
  const parts = { lexical: null, contained: null, embedded: null };
  store.compareAndAdd = async () => [{ label: 'duplicate', similarity: 1.0005, ...parts }];
  const breakdown = await new Scorer({ memory: store, weights }).explain(makeTrace({ steps }));
  expect(breakdown.dimensions.novelty).toBeCloseTo(-0.0005, 10);
  expect(breakdown.nearest).toMatchObject({ label: 'duplicate', similarity: 1.0005 });
  expect(breakdown.overrides).toEqual([{ rule: 'clamp', before: breakdown.composite, after: 0 }]);
  expect(breakdown.score).toBe(0);
});

test('the memory need not remember', async () => {
  const scorer = new Scorer();
  const trace = makeTrace({ objective: 'only asked' });
  const first = await scorer.explain(trace, { remember: false });
  expect(scorer.memory.size).toBe(0);
  expect(await scorer.explain(trace, { remember: false })).toEqual(first);
  expect((await scorer.explain(trace, { remember: true })).score).toBe(first.score);
  expect(scorer.memory.size).toBe(1);
});

describe('explain with a novelty', () => {
  const compared = { noveltyBasis: 'given', nearest: null, tokens: null, truncated: null };

  test.each(['prefix', 'lexical', 'full'])(
    'scores a trace as before, and remembers nothing: %s',
    async (method) => {
      const scorer = new Scorer({
        memory: method === 'prefix' ? new VectorCache() : new TraceMemory({ novelty: method }),
      });
      const trace = makeTrace({ objective: 'Book a flight', domain: 'finance' });
      await scorer.explain(makeTrace({ objective: 'Book a hotel' }));
      const first = await scorer.explain(trace);
      const { novelty } = first.dimensions;
      const again = await scorer.explain(trace, { novelty, remember: true });
      expect(again).toEqual({ ...first, ...compared });
      expectExact(again, trace);
      expect(scorer.memory.size).toBe(2);
    },
  );

  test('needs no embedder, and asks no store', async () => {
    const trace = makeTrace();
    for (const options of [{ embedder: null }, { memory: new MemoryStore('prefix') }]) {
      const scorer = new Scorer(options);
      const breakdown = await scorer.explain(trace, { novelty: 0.25 });
      expect(breakdown).toMatchObject({ ...compared, dimensions: { novelty: 0.25 } });
      expect(options.memory?.calls ?? []).toEqual([]);
    }
  });

  test('comes in its turn, and rejects an invalid trace', async () => {
    const scorer = new Scorer();
    const order = [];
    const calls = [{}, { novelty: 1 }].map((options, call) =>
      scorer.explain(makeTrace(), options).then(() => order.push(call)),
    );
    await Promise.all(calls);
    expect(order).toEqual([0, 1]);
    await expect(scorer.explain({}, { novelty: 1 })).rejects.toMatchObject({ code: 'ERR_INVALID_TRACE' });
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -0.5, 2.5, '0.5', null])(
    '%p is no novelty',
    async (novelty) => {
      await expect(explain(makeTrace(), { novelty })).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' });
    },
  );
});

test('the nearest of several is told', async () => {
  const scorer = new Scorer();
  const about = {
    pets: 'feed the cat and the dog',
    code: 'fix the failing build',
    tax: 'file the tax return',
  };
  for (const [id, objective] of Object.entries(about)) {
    await scorer.evaluateValue({ ...makeTrace({ objective, steps: [] }), id });
  }
  const ask = async (objective) => (await scorer.explain(makeTrace({ objective, steps: [] }))).nearest;
  expect(await ask('what do cats and dogs eat?')).toMatchObject({ label: 'pets' });
  expect(await ask('the compiler reports an error')).toMatchObject({ label: 'code' });
  expect(await ask('income taxes')).toMatchObject({ label: 'tax' });
});

test('long text is told to be cut', async () => {
  const scorer = new Scorer();
  const words = (count) => makeTrace({ objective: 'word '.repeat(count), steps: [] });
  expect(await scorer.explain(words(510))).toMatchObject({ tokens: 512, truncated: false });
  expect(await scorer.explain(words(511))).toMatchObject({ tokens: 512, truncated: true });
  expect(await scorer.explain(words(100_000))).toMatchObject({ tokens: 512, truncated: true });
});

test('without an embedder', async () => {
  const trace = makeTrace();
  const breakdown = await new Scorer({ embedder: null }).explain(trace);
  expectExact(breakdown, trace);
  const neutral = { noveltyBasis: 'no-embedder', nearest: null, tokens: null, truncated: null };
  expect(breakdown).toMatchObject(neutral);
  expect(breakdown.dimensions.novelty).toBe(0.5);
  const { result } = await runForResult(`console.log(JSON.stringify(await kp.explain(makeTrace())));`, {
    env: { KNOWLEDGEPULSE_MODEL_DIR: '/nowhere' },
  });
  expect(result).toEqual(breakdown);
});

test('the function explains with the memory of the process, in objects and arrays of the realm that asks', async () => {
  _getLocalCache().clear();
  const trace = makeTrace({ objective: 'of the process' });
  await evaluateValue(trace);
  const breakdown = await explain(trace);
  expect(breakdown).toMatchObject({ noveltyBasis: 'cache', nearest: { label: trace.id } });
  expect(_getLocalCache().size).toBe(2);
  expect(breakdown).toBeInstanceOf(Object);
  expect(breakdown.overrides).toBeInstanceOf(Array);
  expect(breakdown.nearest).toBeInstanceOf(Object);
});
