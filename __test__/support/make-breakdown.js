'use strict';

const WEIGHTS = { complexity: 0.25, novelty: 0.35, toolDiversity: 0.15, outcome: 0.25 };

/**
 * The breakdown of a score that no trace has, by the arithmetic of one that a trace has.
 *
 * @param {Partial<import('../..').ScoreBreakdown['dimensions']> & { overrides?: Array<[string, (score: number) => number]>,
 *   nearest?: object | null, noveltyBasis?: string, profile?: string, truncated?: boolean }} [parts]
 */
function makeBreakdown({
  complexity = 0.5,
  novelty = 0.5,
  toolDiversity = 0.5,
  outcome = 0.5,
  overrides = [],
  nearest = null,
  noveltyBasis = nearest === null ? 'empty-cache' : 'cache',
  profile = 'default',
  truncated = false,
} = {}) {
  const dimensions = { complexity, novelty, toolDiversity, outcome };
  const contributions = Object.fromEntries(
    Object.entries(dimensions).map(([key, value]) => [key, value * WEIGHTS[key]]),
  );
  const composite = Object.values(contributions).reduce((sum, value) => sum + value);
  let score = composite;
  const applied = overrides.map(([rule, change]) => {
    const before = score;
    score = change(before);
    return { rule, before, after: score };
  });
  return {
    score,
    dimensions,
    profile,
    weights: { ...WEIGHTS },
    contributions,
    composite,
    overrides: applied,
    noveltyBasis,
    nearest,
    tokens: noveltyBasis === 'no-embedder' ? null : 100,
    truncated: noveltyBasis === 'no-embedder' ? null : truncated,
  };
}

/** What a report is given of a trace. */
function makeScored(index, { breakdown = makeBreakdown(), ...parts } = {}) {
  return {
    index,
    id: `kp:trace:${index}`,
    source: 'traces.jsonl',
    line: index + 1,
    domain: 'code',
    success: true,
    excerpt: `Objective ${index}`,
    breakdown,
    ...parts,
  };
}

/** Numbers from 0 to 1 that are the same in every run. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

module.exports = { makeBreakdown, makeScored, randomNumbers };
