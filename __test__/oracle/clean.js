'use strict';

// The reference for `cleanPii`: its contract in JavaScript's own regular expressions, as plain as it can be. Nothing here is
// shared with the implementation under test. Some of these expressions take quadratic time.

const VALUE = '[^\\s\'"`,;)}\\]]';

/** @type {Array<{ type: string, expression: RegExp, replacement?: string, isIdentifier?: boolean }>} */
const KINDS = [
  {
    type: 'connection_string',
    expression:
      /(?:postgresql|postgres|mysql|redis|rediss|mongodb|mongodb\+srv|amqp|amqps):\/\/[^\s'"`,)}\]]+/gi,
  },
  {
    type: 'bearer_token',
    expression: /Bearer\s+(?!kp_)[A-Za-z0-9_\-.~+/=]{20,}/g,
    replacement: 'Bearer [REDACTED:bearer_token]',
  },
  { type: 'api_key', expression: /sk-[A-Za-z0-9]{20,}/g },
  { type: 'api_key', expression: /gh[poas]_[A-Za-z0-9]{36,}/g },
  { type: 'api_key', expression: /AKIA[A-Z0-9]{16}/g },
  { type: 'api_key', expression: /kp_[0-9a-f]{16,}/g },
  { type: 'api_key', expression: /xox[bpras]-[A-Za-z0-9-]+/g },
  {
    type: 'password',
    expression:
      /\b((?:password|passwd|secret|token|api_key|apikey|api_secret|access_token|auth_token)\s*[=:]\s*)(?!\[REDACTED)(?:'[^'"]*'|"[^'"]*"|[^\s'"`,;)}[\]]{2,})/gi,
    replacement: '$1[REDACTED:password]',
  },
  { type: 'email', expression: /[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}/g, isIdentifier: true },
  {
    type: 'phone',
    expression: /(?:\+?1[-.\s]?)?\(?\d{3}\)?[-.\s]?\s?\d{3}[-.\s]\d{4}\b/g,
    isIdentifier: true,
  },
  { type: 'phone', expression: /\+[1-9]\d{6,14}\b/g, isIdentifier: true },
  {
    type: 'ip',
    expression: /\b(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\b/g,
    isIdentifier: true,
  },
  {
    type: 'filepath',
    expression: new RegExp(`/(?:home|Users)/[A-Za-z0-9._-]+(?:/${VALUE}*)?`, 'g'),
    isIdentifier: true,
  },
  {
    type: 'filepath',
    expression: new RegExp(`[A-Z]:\\\\Users\\\\[A-Za-z0-9._-]+(?:\\\\${VALUE}*)*`, 'g'),
    isIdentifier: true,
  },
];

/**
 * The clean text, and how often each type was found.
 *
 * @param {string} text
 * @param {'aggregated' | 'federated' | 'private'} [level]
 */
function cleanPii(text, level = 'aggregated') {
  /** @type {Map<string, number>} */
  const counts = new Map();
  let cleaned = text;
  for (const { type, expression, replacement = `[REDACTED:${type}]`, isIdentifier = false } of KINDS) {
    if (isIdentifier && level === 'private') continue;
    const found = cleaned.match(expression)?.length ?? 0;
    if (found === 0) continue;
    counts.set(type, (counts.get(type) ?? 0) + found);
    cleaned = cleaned.replace(expression, replacement);
  }
  return { cleaned, redactions: [...counts].map(([type, count]) => ({ type, count })) };
}

module.exports = { cleanPii };
