'use strict';

/** @typedef {import('../../lib/score.js').Breakdown} ScoreBreakdown */

const WEIGHTS = { complexity: 0.25, novelty: 0.35, toolDiversity: 0.15, outcomeConfidence: 0.25 };

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
  outcomeConfidence = 0.5,
  overrides = [],
  nearest = null,
  noveltyBasis = nearest === null ? 'empty-cache' : 'cache',
  profile = 'default',
  truncated = false,
} = {}) {
  const dimensions = { complexity, novelty, toolDiversity, outcomeConfidence };
  const contributions = {
    complexity: complexity * WEIGHTS.complexity,
    novelty: novelty * WEIGHTS.novelty,
    toolDiversity: toolDiversity * WEIGHTS.toolDiversity,
    outcomeConfidence: outcomeConfidence * WEIGHTS.outcomeConfidence,
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
 * A trace that was scored, as the crate of the command reads it.
 *
 * @param {number} number how many there are before it
 * @param {Partial<{ id: string | null, source: string, agent: string, when: string | null, domain: string, success: boolean | null,
 *   steps: number, objective: string, breakdown: ScoreBreakdown, trace: object }>} [parts] `trace` has its steps
 */
function makeScored(number, { breakdown = makeBreakdown(), ...parts } = {}) {
  return {
    source: 'traces.jsonl',
    line: number + 1,
    index: null,
    format: 'trace',
    agent: 'trace',
    when: null,
    steps: 0,
    success: true,
    hasConfidence: true,
    id: `kp:trace:${number}`,
    objective: `Objective ${number}`,
    domain: 'code',
    breakdown,
    kept: true,
    ...parts,
  };
}

/**
 * Traces, sources and errors that carry texts wherever they can, to hand to `renderReport`.
 *
 * @param {string[]} texts
 */
function carrying(texts) {
  const traces = texts.map((text, i) => {
    const parts = { lexical: null, contained: null, embedded: null, sharedWords: null, newWords: null };
    const nearest = { label: text, similarity: 0.99, ...parts };
    const breakdown = makeBreakdown({ outcomeConfidence: i / 10, profile: text, nearest });
    const steps = [{ type: text, content: text, tool: { name: text }, output_summary: text }];
    const texts = { id: text, source: text, agent: text, when: text, domain: text, objective: text };
    return makeScored(i, { ...texts, steps: 1, breakdown, trace: { steps } });
  });
  const errors = texts.map((text) => ({ source: text, line: 1, message: text }));
  return /** @type {const} */ ([traces, { options: { sources: texts }, errors }]);
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

module.exports = { carrying, makeBreakdown, makeScored, randomNumbers };
