'use strict';

// The reference for every number: the scoring contract in plain JavaScript, as plain as it can be. Nothing
// here is shared with the implementation under test.

/** @typedef {import('../../index.js').ReasoningTrace} Trace */

const DEFAULT = { complexity: 0.25, novelty: 0.35, toolDiversity: 0.15, outcomeConfidence: 0.25 };

const PROFILES = new Map([
  ['default', DEFAULT],
  ['finance', { complexity: 0.2, novelty: 0.25, toolDiversity: 0.1, outcomeConfidence: 0.45 }],
  ['code', { complexity: 0.2, novelty: 0.3, toolDiversity: 0.3, outcomeConfidence: 0.2 }],
  ['medical', { complexity: 0.15, novelty: 0.2, toolDiversity: 0.1, outcomeConfidence: 0.55 }],
  ['customer_service', { complexity: 0.2, novelty: 0.3, toolDiversity: 0.2, outcomeConfidence: 0.3 }],
]);

/**
 * The text of a trace that is embedded.
 *
 * @param {Trace} trace
 */
function textOf(trace) {
  return `${trace.task.objective} ${trace.steps.map((step) => step.content ?? '').join(' ')}`;
}

/**
 * The four dimensions, for a known novelty.
 *
 * @param {Trace} trace
 * @param {number} novelty
 */
function dimensionsOf(trace, novelty) {
  const { steps, metadata, outcome } = trace;
  const uniqueTypes = new Set(steps.map((step) => step.type)).size;
  const errorRecovery = steps.filter((step) => step.type === 'error_recovery').length;
  const uniqueTools = new Set(steps.flatMap(({ tool }) => (tool ? [tool.name] : []))).size;
  return {
    complexity: Math.min(
      1,
      (uniqueTypes / 4) * 0.5 + (errorRecovery > 0 ? 0.3 : 0) + (steps.length / 20) * 0.2,
    ),
    novelty,
    toolDiversity: Math.min(1, (uniqueTools / Math.max(1, steps.length)) * 3),
    outcomeConfidence: outcome.confidence * (metadata.success ? 1.0 : 0.3),
  };
}

/**
 * What the rules make of a value, in their order, and whether each applies to a trace.
 *
 * @type {Record<string, { applies: (trace: Trace) => boolean, effect: (value: number) => number }>}
 */
const RULES = {
  'single-thought': {
    applies: ({ steps }) => steps.length === 1 && steps[0].type === 'thought',
    effect: () => 0.1,
  },
  'recovery-bonus': {
    applies: ({ steps, metadata }) =>
      metadata.success && steps.filter(({ type }) => type === 'error_recovery').length > 2,
    effect: (value) => Math.min(1, value + 0.1),
  },
  'single-tool-penalty': {
    applies: ({ steps }) => new Set(steps.flatMap(({ tool }) => (tool ? [tool.name] : []))).size === 1,
    effect: (value) => Math.max(0, value - 0.1),
  },
  clamp: { applies: () => true, effect: (value) => Math.min(1, Math.max(0, value)) },
};

/**
 * The score of a trace, for a known novelty.
 *
 * @param {Trace} trace
 * @param {number} novelty
 */
function scoreOf(trace, novelty) {
  const dimensions = dimensionsOf(trace, novelty);
  const weights = PROFILES.get(trace.metadata.task_domain) ?? DEFAULT;
  const composite =
    dimensions.complexity * weights.complexity +
    dimensions.novelty * weights.novelty +
    dimensions.toolDiversity * weights.toolDiversity +
    dimensions.outcomeConfidence * weights.outcomeConfidence;
  const rules = Object.values(RULES).filter(({ applies }) => applies(trace));
  return rules.reduce((value, { effect }) => effect(value), composite);
}

/**
 * Cosine similarity in double precision; 0 for a zero vector.
 *
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
function cosineSimilarity(a, b) {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}

/** A scorer with a memory of its own, for embeddings that come from elsewhere. */
class OracleScorer {
  /** @type {Float32Array[]} */
  #memory = [];
  #capacity;

  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  get size() {
    return this.#memory.length;
  }

  /**
   * Scores `trace` and remembers `embedding`; null stands for a missing embedder.
   *
   * @param {Trace} trace
   * @param {Float32Array | null} embedding
   */
  evaluate(trace, embedding) {
    if (embedding === null) return scoreOf(trace, 0.5);
    const similarities = this.#memory.map((remembered) => cosineSimilarity(embedding, remembered));
    const novelty = similarities.length === 0 ? 0.5 : 1 - Math.max(...similarities);
    this.#memory.push(embedding);
    if (this.#memory.length > this.#capacity) this.#memory.shift();
    return scoreOf(trace, novelty);
  }
}

module.exports = { OracleScorer, PROFILES, RULES, cosineSimilarity, dimensionsOf, scoreOf, textOf };
