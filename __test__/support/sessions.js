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

/**
 * A session of Codex in which the agent is asked something and says `Done.`, a line for each record.
 *
 * @param {string} asked
 * @param {{ id: string, cwd: string, timestamp: string }} common
 */
function codexSession(asked, { id, cwd, timestamp }) {
  const said = (/** @type {string} */ role, /** @type {string} */ type, /** @type {string} */ text) => ({
    ...{ timestamp, type: 'response_item' },
    payload: { type: 'message', role, content: [{ type, text }] },
  });
  const meta = { timestamp, type: 'session_meta', payload: { id, cwd } };
  const records = [meta, said('user', 'input_text', asked), said('assistant', 'output_text', 'Done.')];
  return records.map((record) => `${JSON.stringify(record)}\n`).join('');
}

module.exports = { claudeSession, codexSession };
