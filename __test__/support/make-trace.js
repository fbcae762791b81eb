'use strict';

/**
 * A valid trace of two steps, with the given parts replaced.
 *
 * @param {{ objective?: string, steps?: Array<Partial<import('../..').ReasoningTrace['steps'][number]>>, domain?: string, success?: boolean, confidence?: number }} [parts]
 * @returns {import('../../index.js').ReasoningTrace}
 */
function makeTrace({
  objective = 'Find the cause of the failing build',
  steps,
  domain = 'code',
  success = true,
  confidence = 0.9,
} = {}) {
  return {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id: 'kp:trace:0b0e7a0c-6a3e-4f3a-9d6e-2f1f3f8a1c11',
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

module.exports = { makeTrace };
