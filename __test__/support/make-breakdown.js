'use strict';

/** @typedef {import('../../index.js').ScoreBreakdown} ScoreBreakdown */

const WEIGHTS = { complexity: 0.25, novelty: 0.35, toolDiversity: 0.15, outcome: 0.25 };

/**
 * The breakdown of a score that no trace has, by the arithmetic of one that a trace has.
 *
 * @param {Partial<ScoreBreakdown['dimensions']> & Partial<Pick<ScoreBreakdown, 'nearest' | 'noveltyBasis' | 'profile'>> &
 *   { overrides?: Array<[ScoreBreakdown['overrides'][number]['rule'], (score: number) => number]>, truncated?: boolean }} [parts]
 * @returns {ScoreBreakdown}
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
  const contributions = {
    complexity: complexity * WEIGHTS.complexity,
    novelty: novelty * WEIGHTS.novelty,
    toolDiversity: toolDiversity * WEIGHTS.toolDiversity,
    outcome: outcome * WEIGHTS.outcome,
  };
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

/**
 * What a report is given of a trace.
 *
 * @param {number} index
 * @param {Partial<Parameters<InstanceType<typeof import('../../cli/report/collector.js').ReportCollector>['add']>[0]>} [parts]
 */
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

/**
 * Numbers from 0 to 1 that are the same in every run.
 *
 * @param {number} seed
 */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What the reports of the tests are of, besides traces. */
const REPORT_OPTIONS = {
  threshold: 0.6,
  sources: ['traces.jsonl'],
  novelty: 'prefix',
  dtype: 'fp32',
  version: '1.2.3',
};

module.exports = { REPORT_OPTIONS, makeBreakdown, makeScored, randomNumbers };
