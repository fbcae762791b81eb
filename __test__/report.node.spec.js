'use strict';

// The page that `kp-score report` writes, as text: what it holds, that nothing leaks into it, and what it allows.

const fs = require('node:fs');
const path = require('node:path');
const { gunzipSync } = require('node:zlib');

const { expectRun } = require('./support/kp-score.js');
const { readTemplate } = require('./support/report.js');
const { scratchDirectory } = require('./support/scratch.js');
const { claudeSession } = require('./support/sessions.js');

const DATA = /<script type="application\/json" id="figures">([^<]*)<\/script>/;
const scratch = scratchDirectory('report');

/** The data of a page, and its conversations. */
function read(html) {
  const desk = JSON.parse(DATA.exec(html)[1]);
  const conversations = [...html.matchAll(/<script type="text\/plain" id="session-\d+">([^<]*)<\/script>/g)];
  return {
    desk,
    conversations: conversations.map(([, text]) => gunzipSync(Buffer.from(text, 'base64')).toString()),
  };
}

/** What must not be in a page: a key, a password, an address, a user's name. In parts, because programs search for keys in sources. */
const PLANTED = [
  `ghp_${'a1B2c3D4e5F6g7H8i9'.repeat(2)}`,
  'hunter2-Correct-9!',
  'maja.lind@nordfrakt.example',
  'majalind',
];

/** A session of Claude Code that says them wherever it can. */
function session(id) {
  const [key, password, address, user] = PLANTED;
  const cwd = `/home/${user}/code/orderdesk`;
  const command = `curl -H "Authorization: Bearer ${key}" -u ${user}:${password} https://api.example`;
  const text = (text) => ({ type: 'text', text });
  const said = [
    ['user', `Add pagination, ask ${address}. The password is ${password}`],
    ['assistant', [text(`I use ${key}.`), { type: 'tool_use', id: 't', name: 'Bash', input: { command } }]],
    ['user', [{ type: 'tool_result', tool_use_id: 't', content: `GITHUB_TOKEN=${key}\nfrom ${cwd}\n` }]],
    ['assistant', [text(`Done, ${address}.`)]],
  ];
  return claudeSession(said, { sessionId: id, cwd, timestamp: '2026-09-01T05:26:00.000Z' });
}

const file = path.join(scratch, 'session-1.jsonl');
const page = path.join(scratch, 'page.html');
fs.writeFileSync(file, session('11111111-2222-4333-8444-555555555555'));

test('kp-score report writes no planted secret, address or name, in the list, in conversations or anywhere', async () => {
  await expectRun(['report', file, '-o', page], { code: 0, stderr: /wrote .*page\.html with 1 session/ });
  const html = fs.readFileSync(page, 'utf8');
  const { desk, conversations } = read(html);
  for (const planted of PLANTED) {
    expect(html).not.toContain(planted);
    for (const text of conversations) expect(text).not.toContain(planted);
  }
  expect(conversations).toHaveLength(1);
  expect(conversations[0]).toContain('[REDACTED:');
  expect(desk).toMatchObject({
    raw: false,
    command: expect.stringMatching(/^kp-score share --decisions decisions\.jsonl .* -o shared$/),
  });
  const [row] = desk.sessions;
  expect(row).toMatchObject({
    agent: 'claude-code',
    project: 'orderdesk',
    calls: 1,
    rank: 1,
    isWhole: true,
    began: '2026-09-01T05:26:00.000Z',
  });
  expect(row.replaced).toMatch(/^\d+ secrets?, \d+ e-mail address/);
  expect(row.secrets).toBeGreaterThan(1);
});

test('kp-score report --raw shows the original and says so', async () => {
  await expectRun(['report', '--raw', file, '-o', page], {
    code: 0,
    stderr: /not cleaned: do not pass it on/,
  });
  const { desk, conversations } = read(fs.readFileSync(page, 'utf8'));
  expect(desk.raw).toBe(true);
  for (const planted of PLANTED) expect(conversations[0]).toContain(planted);
});

test('kp-score select --report and share --report write clean pages', async () => {
  const folder = path.join(scratch, 'shared');
  for (const args of [
    ['select', '1', file, '--quiet', '--report', page],
    ['share', '1', file, '--yes', '--quiet', '-o', folder, '--report', page],
  ]) {
    fs.rmSync(page, { force: true });
    await expectRun(args, { code: 0 });
    const html = fs.readFileSync(page, 'utf8');
    const { desk, conversations } = read(html);
    expect(desk.sessions).toHaveLength(1);
    for (const planted of PLANTED) expect(html + conversations[0]).not.toContain(planted);
  }
});

test('the page of a report allows nothing but its own script, and no connections', () => {
  const template = readTemplate();
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(template)[1];
  const [, hash] = /script-src 'sha256-([^']+)'/.exec(policy);
  const [, script] = /<script>([\s\S]*?)<\/script>/.exec(template);
  const digest = require('node:crypto').createHash('sha256').update(script).digest('base64');
  expect(digest).toBe(hash);
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ]);
  expect(template).not.toMatch(/<(?:script|img|link|iframe)[^>]*(?:src|href)="(?!data:,")/);
});

test('the page of a report carries the licences of what is inlined', () => {
  const template = readTemplate();
  const licences = template.slice(template.lastIndexOf('</script>'));
  for (const name of ['d3-force', 'd3-quadtree']) {
    expect(licences).toContain(`${name} ${require(`../node_modules/${name}/package.json`).version} (ISC)`);
  }
});
