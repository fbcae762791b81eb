'use strict';

/**
 * A valid trace of two steps, with the given parts replaced.
 *
 * @param {{ id?: string, objective?: string, steps?: Array<Partial<import('../..').ReasoningTrace['steps'][number]>>, domain?: string, success?: boolean, confidence?: number }} [parts]
 * @returns {import('../../index.js').ReasoningTrace}
 */
function makeTrace({
  id = 'kp:trace:0b0e7a0c-6a3e-4f3a-9d6e-2f1f3f8a1c11',
  objective = 'Find the cause of the failing build',
  steps,
  domain = 'code',
  success = true,
  confidence = 0.9,
} = {}) {
  return {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id,
    metadata: {
      created_at: '2026-01-01T00:00:00.000Z',
      task_domain: domain,
      success,
      quality_score: 0,
      visibility: 'network',
      privacy_level: 'aggregated',
    },
    task: { objective },
    steps: /** @type {import('../../index.js').ReasoningTrace['steps'] | undefined} */ (steps) ?? [
      { step_id: 0, type: 'thought', content: 'The log ends in a linker error.' },
      { step_id: 1, type: 'tool_call', content: 'Read the build log', tool: { name: 'read_file' } },
    ],
    outcome: { result_summary: 'done', confidence },
  };
}

/** Traces of different tasks, lengths and confidences, whose ids are their numbers behind `salt`. */
function makeTraces(/** @type {number} */ count, salt = '') {
  return Array.from({ length: count }, (_, at) => {
    const objective = `${salt} task ${at}: ${'step back and look '.repeat((at * 7) % 12)}`;
    return makeTrace({ id: `${salt}${at}`, objective, confidence: (at % 11) / 10 });
  });
}

module.exports = { makeTrace, makeTraces };
