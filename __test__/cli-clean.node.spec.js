'use strict';

// `kp-score clean`: the same files with secrets and personal data replaced, and what was found in them.

const fs = require('node:fs');
const path = require('node:path');
const { gunzipSync, gzipSync } = require('node:zlib');

const { kpScore } = require('./support/kp-score.js');
const { scratchDirectory } = require('./support/scratch.js');

const KEY = `ghp_${'aB3dE5fG7hJ'.repeat(4).slice(0, 36)}`;
const scratch = scratchDirectory('clean');

/**
 * Writes files into a new folder; returns a function that gives their paths.
 *
 * @param {Record<string, string | Buffer>} files their contents by their names
 */
function write(files) {
  const folder = fs.mkdtempSync(path.join(scratch, 'case-'));
  for (const [name, contents] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), contents);
  return (/** @type {string} */ name) => path.join(folder, name);
}

/** @param {string} file */
const read = (file) => fs.readFileSync(file, 'utf8');

describe('kp-score clean', () => {
  test('writes one file to standard output, and says on standard error what it has replaced', async () => {
    const at = write({ log: `started with ${KEY}\nfor bob@example.com\n` });
    expect(await kpScore(['clean', at('log')])).toMatchObject({
      code: 0,
      stdout: 'started with [REDACTED:api_key]\nfor [REDACTED:email]\n',
      stderr: expect.stringContaining('1 file: replaced api_key 1, email 1'),
    });
  });

  test('reads standard input', async () => {
    const { code, stdout, stderr } = await kpScore(['clean', '--quiet'], { input: 'DB_PASSWORD=hunter22' });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'DB_PASSWORD=[REDACTED:password]',
      stderr: '',
    });
  });

  test('leaves of JSON every byte that it does not replace', async () => {
    const json = `{\n  "n": 1.50, "big": 12345678901234567890,\n  "list": ["bob@example.com"]\n}\n`;
    const at = write({ 'a.json': json });
    const { stdout } = await kpScore(['clean', '--quiet', at('a.json')]);
    expect(stdout).toBe(json.replace('bob@example.com', '[REDACTED:email]'));
  });

  test('writes several files into a folder, compressed ones too', async () => {
    const at = write({
      'a.jsonl': '{"password":"hunter22"}\nno JSON\n',
      'b.txt.gz': gzipSync('mail bob@example.com'),
    });
    const { code } = await kpScore(['clean', at('a.jsonl'), at('b.txt.gz'), '--out', `${at('out')}/`]);
    expect(code).toBe(0);
    expect(read(at('out/a.jsonl'))).toBe('{"password":"[REDACTED:password]"}\nno JSON\n');
    expect(gunzipSync(fs.readFileSync(at('out/b.txt.gz'))).toString()).toBe('mail [REDACTED:email]');
  });

  test('lists findings with file, line, kind and a masked excerpt', async () => {
    const at = write({ 'a.jsonl': `{"a":1}\n{"deep":{"list":["use ${KEY}"]}}\n` });
    const args = ['clean', at('a.jsonl'), '--out', at('clean'), '--findings'];
    await kpScore([...args, at('found.json')]);
    const excerpt = 'ghp_… (40)';
    expect(JSON.parse(read(at('found.json')))).toEqual([
      { file: at('a.jsonl'), line: 2, kind: 'api_key', path: '.deep.list[0]', excerpt },
    ]);
    await kpScore([...args, at('found.sarif')]);
    const sarif = JSON.parse(read(at('found.sarif')));
    expect(sarif.version).toBe('2.1.0');
    expect(sarif.runs[0].results).toEqual([
      {
        ruleId: 'api_key',
        level: 'error',
        message: { text: `api_key: ${excerpt}` },
        locations: [
          { physicalLocation: { artifactLocation: { uri: at('a.jsonl') }, region: { startLine: 2 } } },
        ],
      },
    ]);
  });

  test.each([
    ['secrets', 4],
    ['identifiers', 0],
    ['email,api_key', 4],
    ['iban', 0],
  ])('--fail-on %s ends with exit code %i where a key is found', async (kinds, code) => {
    const at = write({ log: `started with ${KEY}` });
    expect(await kpScore(['clean', at('log'), '--fail-on', kinds])).toMatchObject({ code });
  });

  test('--allow lets values and expressions stay, --rules replaces more', async () => {
    const at = write({
      log: 'a@example.com b@example.org c@example.net EMP-1234',
      allow: '# ours\na@example.com\n/.*@example\\.org/\n',
      rules: 'employee: EMP-\\d+\n',
    });
    const args = ['clean', at('log'), '--allow', at('allow'), '--rules', at('rules')];
    const { code, stdout } = await kpScore([...args, '--fail-on', 'employee']);
    expect(stdout).toBe('a@example.com b@example.org [REDACTED:email] [REDACTED:employee]');
    expect(code).toBe(4);
  });

  test('--pseudonyms gives the same address the same number in all files', async () => {
    const at = write({ a: 'a@example.com b@example.com', b: '{"from":"b@example.com"}' });
    await kpScore(['clean', at('a'), at('b'), '--pseudonyms', '--out', `${at('out')}/`]);
    expect(read(at('out/a'))).toBe('[REDACTED:email-1] [REDACTED:email-2]');
    expect(read(at('out/b'))).toBe('{"from":"[REDACTED:email-2]"}');
  });

  test('--level private leaves identifiers', async () => {
    const { stdout } = await kpScore(['clean', '--level', 'private'], { input: `bob@example.com ${KEY}` });
    expect(stdout).toBe('bob@example.com [REDACTED:api_key]');
  });

  test.each([
    [['clean', 'a', 'b'], 2, 'several files need --out FOLDER/'],
    [['clean', '--no-such'], 2, "Unknown option '--no-such'"],
    [['clean', 'a', '--fail-on', 'nothing'], 2, '--fail-on must be secrets, identifiers or of api_key'],
    [['clean', 'a', '--out', 'a'], 2, 'a is read too, and would lose the texts that are replaced'],
    [['clean', 'a', '--rules', 'rules'], 2, 'rules:1: '],
    [
      ['clean', 'a', '--level', 'public'],
      2,
      "--level must be aggregated, federated or private, got 'public'",
    ],
    [['clean', 'nothing'], 3, 'cannot read nothing: no such file or directory'],
    [['clean', 'latin'], 3, 'latin is not UTF-8 text'],
  ])('%j ends with exit code %i', async (args, code, message) => {
    const at = write({ a: 'x', b: 'x', rules: 'name: (', latin: Buffer.from([0xe9]) });
    const ended = await kpScore(args, { cwd: path.dirname(at('a')) });
    expect(ended).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });
});
