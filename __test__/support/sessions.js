'use strict';

/**
 * A session of Claude Code, a line for each record.
 *
 * @param {Array<[role: string, content: unknown]>} said
 * @param {{ sessionId: string, timestamp: string, [name: string]: unknown }} common what all records have
 */
function claudeSession(said, common) {
  const uuidOf = (/** @type {number} */ at) => (at < 0 ? null : `${common.sessionId}-${at}`);
  const lines = said.map(([type, content], at) => {
    const place = { uuid: uuidOf(at), parentUuid: uuidOf(at - 1) };
    return `${JSON.stringify({ type, ...common, ...place, message: { role: type, content } })}\n`;
  });
  return lines.join('');
}

module.exports = { claudeSession };
