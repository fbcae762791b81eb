'use strict';

// Draws secrets of many kinds, and texts of the sort where agents meet them. The benchmark of the cleaner measures with them; another seed
// gives other secrets, names and neighbours.

const fs = require('node:fs');
const path = require('node:path');

const { random } = require('./random.js');

/**
 * Letters by the sign that stands for them in a template: `ghp_{36w}` is 36 letters or digits behind `ghp_`.
 *
 * @type {Record<string, string>}
 */
const ALPHABETS = {
  a: 'abcdefghijklmnopqrstuvwxyz',
  A: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
  d: '0123456789',
  h: '0123456789abcdef',
  H: '0123456789ABCDEF',
  l: 'abcdefghijklmnopqrstuvwxyz0123456789',
  U: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789',
  B: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  c: 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L',
  b: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  s: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-',
  w: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
  x: 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789',
};

/**
 * The rows of secret-kinds.txt. Kinds that are told by themselves have a name and a template, as their providers document it; those
 * that their name tells have the variable, the words of a sentence and a template.
 */
const KINDS = fs
  .readFileSync(path.join(__dirname, 'secret-kinds.txt'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split('|'))
  .map((row) => (row.length === 2 ? [row[0], '', '', row[1]] : [row[1], ...row]));

/**
 * Texts around a secret, by where agents meet them: `name` is the name of a variable, `words` what a sentence calls the secret.
 *
 * @type {Record<string, (pick: (...choices: string[]) => string, name: string, words: string, secret: string) => string>}
 */
const SURROUNDINGS = {
  'environment dumps': (pick, name, _, secret) =>
    `${pick('LANG=C.UTF-8', 'HOME=/root', 'TERM=xterm')}\n${name}=${secret}\n${pick('SHLVL=1', 'PWD=/srv', 'EDITOR=vi')}`,
  'shell history': (pick, name, _, secret) =>
    `${pick('cd /srv', 'git pull', 'ls -la')}\n${pick('export ', '', 'env ')}${name}=${pick(secret, `"${secret}"`, `'${secret}'`)}${pick('', ' make', ' npm run start')}\n${pick('make', 'exit')}`,
  'JSON within JSON': (pick, name, _, secret) =>
    JSON.stringify({
      type: pick('tool_result', 'message'),
      body: JSON.stringify({ id: 7, [pick(name, name.toLowerCase())]: secret, ok: true }),
    }),
  diffs: (pick, name, _, secret) =>
    `@@ -1,3 +1,3 @@\n region: eu\n-${name}: ${pick('changeme', 'none')}\n+${name}: ${pick(secret, `"${secret}"`)}\n replicas: 2`,
  'HTTP headers': (pick, name, _, secret) =>
    `${pick('GET', 'POST')} /v1 HTTP/1.1\r\nHost: api.example.com\r\nX-${name.replaceAll('_', '-')}: ${secret}\r\nAccept: */*`,
  YAML: (pick, name, _, secret) =>
    `service:\n  ${pick(name, name.toLowerCase())}: ${pick(secret, `"${secret}"`)}\n  replicas: 2`,
  logs: (pick, name, _, secret) =>
    `2026-03-0${pick('1', '2', '3')}T12:00:00Z ${pick('INFO', 'DEBUG')} started ${name.toLowerCase()}=${secret}${pick(' in 12ms', '', ', retrying')}`,
  prose: (pick, _, words, secret) =>
    `${pick('I looked it up.', 'Here it is.')} The ${words} is ${pick(secret, `\`${secret}\``)}${pick('.', ', please rotate it.', '\nThanks!')}`,
};

/**
 * Plants a secret of each kind in each of the surroundings.
 *
 * @param {number} seed
 * @returns {Array<{ kind: string, where: string, text: string, secret: string }>}
 */
function plantedSecrets(seed) {
  const next = random(seed);
  const pick = (/** @type {string[]} */ ...choices) => choices[Math.floor(next() * choices.length)];
  const draw = (/** @type {string} */ template) =>
    template.replace(/\{(\d+)(\w)\}/g, (_, count, sign) =>
      Array.from({ length: Number(count) }, () => pick(...ALPHABETS[sign])).join(''),
    );
  return KINDS.flatMap(([kind, name, words, template]) =>
    Object.entries(SURROUNDINGS).map(([where, make]) => {
      const secret = draw(template);
      const plain = pick('SERVICE_REF', 'UPSTREAM', 'THING_ONE');
      return {
        kind,
        where,
        text: make(pick, name || plain, words || pick('value', 'other one'), secret),
        secret,
      };
    }),
  );
}

/**
 * Returns whether anything of a secret is left: eight of its letters in a row, or all of it.
 *
 * @param {string} cleaned
 * @param {string} secret
 */
function isLeft(cleaned, secret) {
  const part = Math.min(8, secret.length);
  // The host and the scheme of a URL are no secrets.
  const core = secret.replace(/^.*:\/\/[^:]*:([^@]+)@.*$/, '$1').replace(/^https?:\/\/.*\//, '');
  for (let at = 0; at + part <= core.length; at++)
    if (cleaned.includes(core.slice(at, at + part))) return true;
  return core.length < part && cleaned.includes(core);
}

module.exports = { isLeft, plantedSecrets };
