'use strict';

// The page to decide at, with data that no command has computed.

const fs = require('node:fs');
const path = require('node:path');
const { gunzipSync, gzipSync } = require('node:zlib');

const { root } = require('./paths.js');

/** @import { Conversation, Desk, SessionRow } from '../../report/data.js' */

/** The page without data. */
const readTemplate = () => gunzipSync(fs.readFileSync(path.join(root, 'dist', 'report.html.gz'))).toString();

/**
 * A session of a desk.
 *
 * @param {number} number
 * @param {Partial<SessionRow>} [parts]
 * @returns {SessionRow}
 */
function makeRow(number, parts = {}) {
  return {
    id: `kp:trace:${number}`,
    name: `Objective ${number}`,
    agent: ['claude-code', 'codex', 'opencode'][number % 3],
    model: null,
    project: `project-${number % 5}`,
    began: `2026-09-${String(1 + (number % 30)).padStart(2, '0')}T08:59:59.000Z`,
    turns: 3,
    calls: 2,
    failedCalls: 0,
    tokens: 4100,
    facts: [],
    replaced: '',
    secrets: 0,
    personal: 0,
    places: 0,
    success: null,
    rank: null,
    why: null,
    standsFor: 0,
    copies: 0,
    parent: null,
    alike: [],
    isWhole: true,
    ...parts,
  };
}

/**
 * A desk of sessions.
 *
 * @param {SessionRow[]} sessions
 * @param {Partial<Desk>} [parts]
 * @returns {Desk}
 */
const makeDesk = (sessions, parts = {}) => ({
  version: '1.2.3',
  raw: false,
  command: 'kp-score share --decisions decisions.jsonl -o shared',
  explanation: 'no outcome is known',
  sessions,
  ...parts,
});

/**
 * The page of a desk, as crates/command/src/desk writes it.
 *
 * @param {Desk} desk
 * @param {(position: number) => Conversation} conversationOf
 * @returns {string} HTML
 */
function renderDesk(desk, conversationOf) {
  const escaped = (/** @type {string} */ sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const data = JSON.stringify(desk).replace(/[<>&\u2028\u2029]/g, escaped);
  const texts = desk.sessions.map(({ isWhole }, at) => {
    if (!isWhole) return '';
    const text = gzipSync(JSON.stringify(conversationOf(at)), { level: 1 }).toString('base64');
    return `<script type="text/plain" id="session-${at}">${text}</script>\n`;
  });
  return readTemplate()
    .replace('__KNOWLEDGEPULSE_REPORT__', () => data)
    .replace('<!-- CONVERSATIONS -->', () => texts.join(''));
}

module.exports = { makeDesk, makeRow, readTemplate, renderDesk };
