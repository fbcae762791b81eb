'use strict';

// The scores of evaluateValue, from the formula and against the plain reference. invalid-traces.spec.js has the unknown domains.

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

// The numbers of each rule are tested in crates/score (dimensions.rs, overrides.rs).
test.each([
  ['no steps', '', {}],
  ['an unknown type', 'thought reflection', {}],
  ['two error recoveries', 'thought error_recovery error_recovery', {}],
  ['twenty steps', many(20, 'observation'), {}],
  ['two hundred steps', many(200, 'observation'), {}],
  ['two tools in four steps', `a=a a=b ${many(2, 'a')}`, { domain: 'code' }],
  ['an empty name of a tool', `a= a=b ${many(10, 'a')}`, { domain: 'code' }],
  ['a failure', 'a a', { domain: 'medical', success: false, confidence: 0.8 }],
  ['a single thought', 'thought', {}],
  ['three recoveries and success', many(3, 'error_recovery'), {}],
  ['three recoveries and failure', many(3, 'error_recovery'), { success: false }],
  ['two recoveries alone', many(2, 'error_recovery'), { domain: 'code' }],
  ['a single tool', `a=t a=t ${many(28, 'a')}`, {}],
  ['a single thought with a tool', 'thought=t', {}],
  ['two lone surrogates as types and tools', '\ud800=\ud800 \ud801=\ud801', {}],
  ['a lone surrogate and its replacement', '\ud800=\ud800 \ufffd=\ufffd', {}],
  ['a bonus and a penalty', `a=t ${many(3, 'error_recovery')}`, {}],
])('evaluateValue scores as the reference a trace with %s', async (_, types, parts) => {
  const trace = makeTrace({ steps: stepsOf(types), domain: 'default', confidence: 1, ...parts });
  expect(await evaluateAlone(trace)).toBeCloseTo(scoreOf(trace, 0.5), 12);
});

test.each([...PROFILES])('evaluateValue weighs by the profile of the domain %s', async (domain, weights) => {
  const steps = stepsOf('thought tool_call=a tool_call=b observation error_recovery');
  const expected =
    0.85 * weights.complexity +
    0.5 * weights.novelty +
    weights.toolDiversity +
    0.7 * weights.outcomeConfidence;
  expect(await evaluateAlone(makeTrace({ steps, domain, confidence: 0.7 }))).toBeCloseTo(expected, 12);
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
