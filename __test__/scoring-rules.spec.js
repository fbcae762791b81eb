'use strict';

// The scores of evaluateValue, from the formula and against the plain reference.

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

const many = (count, type) => Array(count).fill(type).join(' ');

/** Steps of types, each with the tool that may stand behind its type: `tool_call=search thought`. */
const stepsOf = (text) =>
  text
    .split(' ')
    .filter(Boolean)
    .map((step, step_id) => {
      const [type, name] = step.split('=');
      return { step_id, type, ...(name !== undefined && { tool: { name } }) };
    });

// The rules with their corner cases are tested in crates/score and, against the reference, below. `code` weighs complexity 0.2,
// novelty 0.3, tool diversity 0.3 and outcome 0.2, `medical` 0.15, 0.2, 0.1 and 0.55, `default` 0.25, 0.35, 0.15 and 0.25.
test.each([
  ['no steps', '', {}, 0],
  ['an unknown type', 'thought reflection', {}, (0.25 + 0.02) * 0.25],
  ['two error recoveries', 'thought error_recovery error_recovery', {}, (0.25 + 0.3 + 0.03) * 0.25],
  ['twenty steps', many(20, 'observation'), {}, (0.125 + 0.2) * 0.25],
  ['two hundred steps', many(200, 'observation'), {}, 0.25],
  ['two tools in four steps', `a=a a=b ${many(2, 'a')}`, { domain: 'code' }, (0.125 + 0.04) * 0.2 + 0.3],
  ['an empty name of a tool', `a= a=b ${many(10, 'a')}`, { domain: 'code' }, (0.125 + 0.12) * 0.2 + 0.15],
  ['a failure', 'a a', { domain: 'medical', success: false, confidence: 0.8 }, 0.145 * 0.15 + 0.24 * 0.55],
])('evaluateValue scores by the formula a trace with %s', async (_, types, parts, expected) => {
  const { domain = 'default', success = true, confidence = 1 } = parts;
  const { novelty, outcome } = PROFILES.get(domain);
  const rest = 0.5 * novelty + (success ? confidence * outcome : 0);
  const score = await evaluateAlone(makeTrace({ steps: stepsOf(types), domain, success, confidence }));
  expect(score).toBeCloseTo(expected + rest, 12);
});

test.each([...PROFILES])('evaluateValue weighs by the profile of the domain %s', async (domain, weights) => {
  const steps = stepsOf('thought tool_call=a tool_call=b observation error_recovery');
  const expected =
    0.85 * weights.complexity + 0.5 * weights.novelty + weights.toolDiversity + 0.7 * weights.outcome;
  expect(await evaluateAlone(makeTrace({ steps, domain, confidence: 0.7 }))).toBeCloseTo(expected, 12);
});

test.each(['', 'Finance', 'code ', 'constructor', '__proto__'])(
  'evaluateValue takes the default profile for the unknown domain %j',
  async (domain) => {
    const [unknown, known] = [domain, 'default'].map((name) => makeTrace({ domain: name }));
    expect(await evaluateAlone(unknown)).toBe(await evaluateAlone(known));
  },
);

const code = (complexity, rest) => complexity * 0.2 + 0.5 * 0.3 + rest;
test.each([
  ['a single thought', 'thought', {}, 0.1],
  ['three recoveries and success', many(3, 'error_recovery'), {}, code(0.455, 0.2) + 0.1],
  ['three recoveries and failure', many(3, 'error_recovery'), { success: false }, code(0.455, 0.06)],
  ['two recoveries', many(2, 'error_recovery'), {}, code(0.445, 0.2)],
  ['a single tool', `a=t a=t ${many(28, 'a')}`, {}, code(0.425, 0.1 * 0.3 + 0.2) - 0.1],
  ['a single thought with a tool', 'thought=t', {}, 0],
  ['a bonus and a penalty', `a=t ${many(3, 'error_recovery')}`, {}, code(0.59, 0.225 + 0.2)],
])('evaluateValue applies the overrides to a trace with %s', async (_, types, parts, expected) => {
  const trace = makeTrace({ steps: stepsOf(types), domain: 'code', confidence: 1, ...parts });
  expect(await evaluateAlone(trace)).toBeCloseTo(expected, 12);
});

describe('novelty', () => {
  test('is 0.5 for the first trace, and nearly nothing for its repetition', async () => {
    const trace = makeTrace({ domain: 'code' });
    const first = await evaluateAlone(trace);
    expect(first).toBeCloseTo(scoreOf(trace, 0.5), 12);
    expect(await evaluateValue(trace)).toBeCloseTo(scoreOf(trace, 0), 6);
  });

  test('a single thought is remembered although its score is fixed', async () => {
    await evaluateAlone(makeTrace({ steps: stepsOf('thought') }));
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

test('evaluateValue agrees with the reference within 1e-12', async () => {
  const property = fc.asyncProperty(arbitraries.trace, async (trace) => {
    const difference = Math.abs((await evaluateAlone(trace)) - scoreOf(trace, 0.5));
    expect(difference).toBeLessThanOrEqual(1e-12);
  });
  await fc.assert(property, { numRuns: 300 });
});
