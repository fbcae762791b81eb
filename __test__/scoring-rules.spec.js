'use strict';

const fc = require('fast-check');

const { _getLocalCache, evaluateValue } = require('..');
const { PROFILES, scoreOf } = require('./oracle/score.js');
const arbitraries = require('./support/arbitraries.js');
const { makeTrace } = require('./support/make-trace.js');

/** The score with an empty memory, where novelty is known to be 0.5. */
function evaluateAlone(trace) {
  _getLocalCache().clear();
  return evaluateValue(trace);
}

const steps = (...types) => types.map((type, step_id) => ({ step_id, type }));
const withTools = (list, ...names) =>
  list.map((step, index) => (names[index] === undefined ? step : { ...step, tool: { name: names[index] } }));

/** The change in score from what one dimension adds, other things being equal. */
async function expectScore(parts, expected) {
  expect(await evaluateAlone(makeTrace(parts))).toBeCloseTo(expected, 12);
}

describe('complexity', () => {
  const base = (complexity) => complexity * 0.25 + 0.5 * 0.35 + 0 + 0.25;
  const cases = [
    ['no steps', [], 0],
    ['one type of four', steps('observation'), 0.125 + 0.01],
    ['each type once counts once', steps('thought', 'thought', 'observation'), 0.25 + 0.03],
    ['an unknown type is a type', steps('thought', 'reflection'), 0.25 + 0.02],
    ['one error recovery adds 0.3', steps('thought', 'error_recovery'), 0.25 + 0.3 + 0.02],
    [
      'two error recoveries add no more',
      steps('thought', 'error_recovery', 'error_recovery'),
      0.25 + 0.3 + 0.03,
    ],
    ['twenty steps add 0.2', steps(...Array(20).fill('observation')), 0.125 + 0.2],
    ['it is capped at 1', steps(...Array(200).fill('observation')), 1],
  ];
  test.each(cases)('%s', async (_, list, complexity) => {
    await expectScore({ steps: list, domain: 'default', confidence: 1 }, base(complexity));
  });
});

describe('tool diversity', () => {
  const base = (diversity, length) => (0.125 + length * 0.01) * 0.2 + 0.5 * 0.3 + diversity * 0.3 + 0.2;
  const calls = (length) => steps(...Array(length).fill('tool_call'));
  const cases = [
    ['none without tools', calls(4), 0],
    ['two tools over four steps are capped at 1', withTools(calls(4), 'a', 'b'), 1],
    ['two tools over twelve steps', withTools(calls(12), 'a', 'b'), 0.5],
    ['a tool counts once', withTools(calls(12), 'a', 'b', 'a', 'b'), 0.5],
    ['an empty name is a name', withTools(calls(12), '', 'b'), 0.5],
  ];
  test.each(cases)('%s', async (_, list, diversity) => {
    await expectScore({ steps: list, domain: 'code', confidence: 1 }, base(diversity, list.length));
  });
});

describe('outcome', () => {
  const cases = [
    ['success counts in full', true, 0.8, 0.8],
    ['failure counts 0.3', false, 0.8, 0.24],
    ['confidence 0', true, 0, 0],
  ];
  test.each(cases)('%s', async (_, success, confidence, outcome) => {
    const expected = 0.145 * 0.15 + 0.5 * 0.2 + outcome * 0.55;
    await expectScore(
      { steps: steps('observation', 'observation'), domain: 'medical', success, confidence },
      expected,
    );
  });
});

describe('weights', () => {
  const list = withTools(
    steps('thought', 'tool_call', 'tool_call', 'observation', 'error_recovery'),
    undefined,
    'a',
    'b',
  );

  test.each([...PROFILES])('the profile %s', async (domain, weights) => {
    const expected =
      Math.min(1, 0.5 + 0.3 + 0.05) * weights.complexity +
      0.5 * weights.novelty +
      weights.toolDiversity +
      0.7 * weights.outcome;
    await expectScore({ steps: list, domain, confidence: 0.7 }, expected);
  });

  test.each(['astronomy', '', 'Finance', 'code ', 'constructor', '__proto__', 'toString', 'hasOwnProperty'])(
    'the unknown domain %j gets the default profile',
    async (domain) => {
      const [unknown, known] = [domain, 'default'].map((name) => makeTrace({ steps: list, domain: name }));
      expect(await evaluateAlone(unknown)).toBe(await evaluateAlone(known));
    },
  );

  test('an absent domain gets the default profile', async () => {
    const { task_domain, ...metadata } = makeTrace().metadata;
    const trace = { ...makeTrace({ steps: list }), metadata };
    expect(task_domain).toBe('code');
    expect(await evaluateAlone(trace)).toBe(
      await evaluateAlone(makeTrace({ steps: list, domain: 'default' })),
    );
  });
});

describe('overrides', () => {
  const recoveries = steps('error_recovery', 'error_recovery', 'error_recovery');

  test('a single thought scores 0.1', async () => {
    await expectScore({ steps: steps('thought') }, 0.1);
  });

  test('a single step of another type does not', async () => {
    expect(await evaluateAlone(makeTrace({ steps: steps('observation') }))).toBeGreaterThan(0.2);
  });

  test('more than two recoveries add 0.1 on success', async () => {
    const plain = scoreOf(makeTrace({ steps: recoveries, success: false, confidence: 0 }), 0.5);
    await expectScore({ steps: recoveries, success: true, confidence: 0 }, plain + 0.1);
    await expectScore({ steps: recoveries, success: false, confidence: 0 }, plain);
  });

  test('two recoveries add nothing', async () => {
    const list = steps('error_recovery', 'error_recovery');
    await expectScore({ steps: list, domain: 'code', confidence: 0 }, (0.125 + 0.3 + 0.02) * 0.2 + 0.5 * 0.3);
  });

  test('a single tool takes 0.1 away, none takes nothing', async () => {
    const list = steps(...Array(30).fill('tool_call'));
    const without = (0.125 + 0.3) * 0.2 + 0.5 * 0.3 + 0.2;
    await expectScore({ steps: list, domain: 'code', confidence: 1 }, without);
    await expectScore(
      { steps: withTools(list, 'a', 'a'), domain: 'code', confidence: 1 },
      without + 0.1 * 0.3 - 0.1,
    );
  });

  test('first the thought, then the penalty: a thought with a tool scores 0', async () => {
    await expectScore({ steps: withTools(steps('thought'), 'a') }, 0);
  });

  test('first the bonus, then the penalty', async () => {
    const list = withTools(recoveries, 'a');
    const before = (0.125 + 0.3 + 0.03) * 0.2 + 0.5 * 0.3 + 0.3 + 0.2;
    await expectScore({ steps: list, domain: 'code', confidence: 1 }, before + 0.1 - 0.1);
  });
});

describe('novelty', () => {
  test('is 0.5 for the first trace, and nearly nothing for its repetition', async () => {
    const trace = makeTrace({ domain: 'code' });
    const first = await evaluateAlone(trace);
    expect(first).toBeCloseTo(scoreOf(trace, 0.5), 12);
    expect(await evaluateValue(trace)).toBeCloseTo(scoreOf(trace, 0), 6);
  });

  test('is unclamped: against its opposite it is 2, and the score is clamped to 1', async () => {
    const trace = makeTrace({ objective: 'unclamped', domain: 'default', confidence: 0 });
    await evaluateAlone(trace);
    const embedding = embeddingInCache();
    _getLocalCache().clear();
    _getLocalCache().add(embedding.map((component) => -component));
    const expected = scoreOf({ ...trace }, 2);
    expect(expected).toBeGreaterThan(scoreOf(trace, 1));
    expect(await evaluateValue(trace)).toBeCloseTo(expected, 5);

    const rich = makeTrace({ objective: 'unclamped', domain: 'default', confidence: 1 });
    _getLocalCache().clear();
    _getLocalCache().add(embedding.map((component) => -component));
    expect(await evaluateValue(rich)).toBe(1);
  });

  test('a single thought is remembered although its score is fixed', async () => {
    await evaluateAlone(makeTrace({ steps: steps('thought') }));
    expect(_getLocalCache().size).toBe(1);
  });

  test('the memory holds a thousand and drops the oldest', async () => {
    const cache = _getLocalCache();
    cache.clear();
    const axis = (index) => Float32Array.from({ length: 384 }, (_, i) => (i === index ? 1 : 0));
    cache.add(axis(0));
    for (let i = 1; i < 1000; i++) cache.add(axis(1));
    expect(cache.maxCosineSimilarity(axis(0))).toBe(1);
    await evaluateValue(makeTrace());
    expect(cache.size).toBe(1000);
    expect(cache.maxCosineSimilarity(axis(0))).toBeLessThan(0.5);
  });
});

/** Reads the only vector in the memory, component by component, through its similarities to the axes. */
function embeddingInCache() {
  const cache = _getLocalCache();
  expect(cache.size).toBe(1);
  return Float32Array.from({ length: 384 }, (_, axis) => {
    const unit = new Float32Array(384);
    unit[axis] = 1;
    return cache.maxCosineSimilarity(unit);
  });
}

describe('property', () => {
  test('the arithmetic agrees with the oracle within 1e-12', async () => {
    const property = fc.asyncProperty(arbitraries.trace, async (trace) => {
      const difference = Math.abs((await evaluateAlone(trace)) - scoreOf(trace, 0.5));
      expect(difference).toBeLessThanOrEqual(1e-12);
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
