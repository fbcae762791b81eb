'use strict';

// The page to decide at, in a browser: what it draws, what keys and clicks do, that it takes text as text, and that it makes no requests.

const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const { findChromium, launchChromium, openPage, violationsOf } = require('./support/browser.js');
const { CHROMIUM, needing } = require('./support/needs.js');
const { makeDesk, makeRow, renderDesk } = require('./support/report.js');
const { scratchDirectory } = require('./support/scratch.js');

const chromium = findChromium();
const scratch = scratchDirectory('report-page');
let browser;
let pages = 0;

/** The pages of a test, which are closed after it, and must have no faults. */
const opened = [];

const call = (tool, input, result, failed = false) => ({ tool, input, result, failed });
const [before, after] = ['a\nrows = all()\nz', 'a\nrows = page()\nrows.sort()\nz'];

/** A conversation with all that a page draws. */
const CONVERSATION = {
  turns: [
    { by: 'user', text: 'Add pagination. Torsten Berg asked for it, his mail is [REDACTED:email-1].' },
    {
      by: 'agent',
      reasoning: 'The route comes first.',
      text: 'I will look at the route.',
      calls: [
        call('Read', { file_path: '/home/user-1/shop/routes.py' }, 'rows = all()'),
        call('Edit', { file_path: 'routes.py', old_string: before, new_string: after }, 'done'),
        call(
          ...['Bash', { command: 'pytest -q' }],
          ...[`token = [REDACTED:api_key-1]\n${'line\n'.repeat(400)}user-1 was here`, true],
        ),
      ],
    },
    { by: 'agent', text: 'The last page has no cursor. Torsten Berg may want one.' },
  ],
  places: ['Torsten Berg'],
};

/** Sessions of all kinds. */
const SESSIONS = [
  makeRow(0, {
    ...{
      name: 'Add pagination to GET /shipments',
      rank: 1,
      standsFor: 2,
      places: 2,
      secrets: 4,
      personal: 1,
    },
    ...{ replaced: '4 secrets, 1 e-mail address, 60 paths', alike: [[1, 0.8]] },
    facts: [
      { words: 'tests passed', good: true },
      { words: 'ended with an error', good: false },
      { words: 'interrupted once', good: null },
    ],
  }),
  makeRow(1, { name: 'The docker build fails', rank: 2, success: true, replaced: '22 paths', copies: 3 }),
  makeRow(2, { name: 'Terraform wants to recreate it', why: 'one step', alike: [[0, 0.5]] }),
  makeRow(3, { name: 'Look for the route', parent: 0 }),
];

/** Opens a page. */
async function open(html, { hash = '', ...options } = {}) {
  pages += 1;
  const file = path.join(scratch, `${pages}.html`);
  fs.writeFileSync(file, html);
  const own = { viewport: { width: 1280, height: 900 }, timezoneId: 'UTC', acceptDownloads: true };
  const isOwn = (url) => /^(file:|blob:)/.test(url);
  const one = await openPage(browser, pathToFileURL(file).href + hash, isOwn, { ...own, ...options });
  opened.push(one);
  return one.page;
}

const openDesk = (options, parts) =>
  open(
    renderDesk(makeDesk(SESSIONS, parts), () => CONVERSATION),
    options,
  );

/** The decisions that the page saves. */
async function saved(page) {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save decisions' }).click();
  const file = await (await download).path();
  const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

/** Selects words of the conversation. */
const select = (page, words) =>
  page.evaluate((wanted) => {
    const walker = document.createTreeWalker(document.querySelector('.conversation'), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const at = walker.currentNode.data.indexOf(wanted);
      if (at < 0) continue;
      getSelection().setBaseAndExtent(walker.currentNode, at, walker.currentNode, at + wanted.length);
      return;
    }
    throw new Error(`${wanted} is not there`);
  }, words);

needing(
  chromium,
  CHROMIUM,
  describe,
)('the page of a report', () => {
  beforeAll(async () => {
    browser = await launchChromium(chromium);
  });

  afterAll(() => browser?.close());

  afterEach(async () => {
    const faults = opened.flatMap((one) => one.faults);
    for (const { context } of opened.splice(0)) await context.close();
    expect(faults).toEqual([]);
  });

  test('the list says first how many sessions, agents, days and projects there are', async () => {
    const page = await openDesk();
    expect(await page.title()).toBe('3 sessions, 2 to share');
    expect(await page.locator('h1').textContent()).toBe('3 sessions, 2 to share');
    expect(await page.locator('header p').textContent()).toBe(
      '1 of Claude Code, 1 of Codex, 1 of opencode · 1 to 3 September 2026 · 3 projects · cleaned text only',
    );
    // A sub-agent stands below its session alone.
    expect(await page.locator('.list li').count()).toBe(3);
    const first = page.locator('.list li').first();
    expect(await first.locator('.meta').textContent()).toContain(
      '3 prompts · 4.1k tokens · +1 sub-agent · stands for 2 like it',
    );
    expect(await first.locator('.facts span').allTextContents()).toEqual([
      ...['tests passed', 'ended with an error', 'interrupted once', '2 places to look at'],
      '4 secrets, 1 e-mail address, 60 paths',
    ]);
  });

  test('an opened session reads as a conversation, with its calls folded and changes as a diff', async () => {
    const page = await openDesk({ hash: '#kp%3Atrace%3A0' });
    await page.locator('.turn').first().waitFor();
    expect(await page.locator('.turn > small').allTextContents()).toEqual(['user', 'Claude Code']);
    const calls = page.locator('details.call');
    expect(await calls.locator('summary').allTextContents()).toEqual([
      'Read /home/user-1/shop/routes.py',
      'Edit routes.py+2 −1',
      'Bash pytest -qfailed402 lines',
    ]);
    expect(await calls.evaluateAll((all) => all.map(({ open }) => open))).toEqual([false, true, false]);
    expect(await calls.nth(1).locator('ins.line').allTextContents()).toEqual([
      '+ rows = page()\n',
      '+ rows.sort()\n',
    ]);
    expect(await calls.nth(1).locator('.del').allTextContents()).toEqual(['- rows = all()\n']);
    await calls.nth(2).locator('summary').click();
    const result = calls.nth(2).getByRole('group', { name: 'Result' });
    const before = (await result.boundingBox()).height;
    await calls.nth(2).getByRole('button', { name: 'Show all 402 lines' }).click();
    expect((await result.boundingBox()).height).toBeGreaterThan(before);
    expect(await page.locator('article section li a').allTextContents()).toEqual(['Look for the route']);
  });

  test('n and p go from mark to mark, also into folded and cut results', async () => {
    const page = await openDesk({ hash: '#kp%3Atrace%3A0' });
    await page.locator('.turn').first().waitFor();
    const marks = await page.locator('.conversation mark').allTextContents();
    expect(marks).toEqual([
      'Torsten Berg',
      '[REDACTED:email-1]',
      'user-1',
      '[REDACTED:api_key-1]',
      'user-1',
      'Torsten Berg',
    ]);
    const seen = [];
    for (let i = 0; i < marks.length; i++) {
      await page.keyboard.press('n');
      const here = page.locator('mark.here');
      expect(await here.isVisible()).toBe(true);
      seen.push(await here.textContent());
    }
    expect(seen).toEqual(marks);
    expect(await page.locator('.verdict [role=status]').textContent()).toBe('6 of 6 marks');
    await page.keyboard.press('p');
    expect(await page.locator('mark.here').textContent()).toBe('user-1');
    expect(await page.locator('mark.place').count()).toBe(2);
  });

  test('keys that come at once are of the session that the one before or a click opened', async () => {
    const page = await openDesk({ hash: '#kp%3Atrace%3A0' });
    await page.evaluate(() => {
      const press = (key) => dispatchEvent(new KeyboardEvent('keydown', { key }));
      for (const key of ['j', 'j', 'y']) press(key);
      document.querySelector('.list a[href="#kp%3Atrace%3A1"]').click();
      press('x');
    });
    expect(await saved(page)).toEqual([
      { session: 'kp:trace:0', decision: 'keep' },
      { session: 'kp:trace:1', decision: 'leave out' },
      { session: 'kp:trace:2', outcome: 'succeeded' },
    ]);
  });

  test('decisions by key and by click are saved, a line a session, with struck words and told outcomes', async () => {
    const page = await openDesk({ hash: '#kp%3Atrace%3A0' });
    await page.locator('.turn').first().waitFor();
    await page.keyboard.press('y');
    await select(page, 'Torsten Berg');
    await page.keyboard.press('s');
    expect(await page.locator('.conversation del').allTextContents()).toEqual([
      'Torsten Berg',
      'Torsten Berg',
    ]);
    await page.keyboard.press('j');
    await page.getByRole('button', { name: 'Leave out' }).click();
    await page.keyboard.press('j');
    await page.getByRole('button', { name: 'Keep' }).click();
    await page.keyboard.press('f');
    expect(await page.locator('h1').textContent()).toBe('3 sessions, 2 to share');
    expect(await page.locator('footer').textContent()).toContain('2 kept, 1 left out1 text struck out');
    const strike = ['Torsten Berg'];
    expect(await saved(page)).toEqual([
      { session: 'kp:trace:0', decision: 'keep', outcome: 'succeeded', strike },
      { session: 'kp:trace:1', decision: 'leave out' },
      { session: 'kp:trace:2', decision: 'keep', outcome: 'failed', strike },
    ]);
    // The same key takes a decision back.
    await page.keyboard.press('k');
    expect(await page.locator('.chip').allTextContents()).toEqual([
      'All 3',
      'To share 1',
      'Left out 1',
      'Undecided 1',
    ]);
  });

  test('a selection is struck out without its markers and line ends, and can be restored', async () => {
    const page = await openDesk({ hash: '#kp%3Atrace%3A0' });
    await page.locator('.turn').first().waitFor();
    await page.evaluate(() => {
      const [first, , second] = document.querySelector('.said bdi').childNodes;
      getSelection().setBaseAndExtent(first, 0, second, 10);
    });
    await page.evaluate(() =>
      getSelection().setBaseAndExtent(document.querySelector('.said'), 0, document.querySelector('.said'), 1),
    );
    await page.keyboard.press('s');
    await page.locator('.struck summary').click();
    expect(await page.locator('.struck li bdi').allTextContents()).toEqual([
      'Add pagination. Torsten Berg asked for it, his mail is',
    ]);
    await page.getByRole('button', { name: 'Restore' }).click();
    expect(await page.locator('.conversation del').count()).toBe(0);
  });

  test('saved decisions are opened again, and others are refused', async () => {
    const page = await openDesk();
    const file = path.join(scratch, 'decisions.jsonl');
    fs.writeFileSync(
      file,
      '{"session":"kp:trace:2","decision":"keep","strike":["Berg"]}\n{"session":"other","decision":"keep"}\n',
    );
    await page.locator('footer input').setInputFiles(file);
    await page.getByText('1 decision taken from decisions.jsonl.').waitFor();
    expect(await page.locator('h1').textContent()).toBe('3 sessions, 3 to share');
    fs.writeFileSync(file, 'not JSON\n');
    await page.locator('footer input').setInputFiles(file);
    await page.getByText('decisions.jsonl has no decisions').waitFor();
  });

  test('search, chips, menus and the timeline filter the list', async () => {
    const page = await openDesk();
    const shown = () => page.locator('.list li:not([hidden]) a').allTextContents();
    await page.keyboard.press('/');
    await page.keyboard.type('docker PROJECT-1');
    expect(await shown()).toEqual(['The docker build fails']);
    await page.getByRole('searchbox').fill('');
    await page.getByRole('button', { name: 'To share' }).click();
    expect(await shown()).toHaveLength(2);
    await page.getByRole('button', { name: 'All 3' }).click();
    await page.getByLabel('Agent').selectOption('opencode');
    expect(await shown()).toEqual(['Terraform wants to recreate it']);
    await page.getByLabel('Agent').selectOption('Agent');
    await page.getByLabel('Danger').selectOption('secrets');
    expect(await shown()).toEqual(['Add pagination to GET /shipments']);
    await page.getByLabel('Danger').selectOption('Danger');
    await page.getByRole('button', { name: '2 September 2026: 1 session' }).click();
    expect(await shown()).toEqual(['The docker build fails']);
    await page.getByRole('searchbox').fill('nothing has this');
    expect(await page.getByText('No session is like that.').isVisible()).toBe(true);
  });

  test('each session has an address, arrows go through the list, and Escape goes back to all', async () => {
    const page = await openDesk();
    await page.locator('.list a').first().focus();
    await page.keyboard.press('Enter');
    await page.locator('.turn').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.getByRole('heading', { name: 'The docker build fails' }).waitFor();
    expect(page.url()).toContain('#kp%3Atrace%3A1');
    expect(await page.locator('.list li.here a').textContent()).toBe('The docker build fails');
    await page.keyboard.press('Escape');
    expect(await page.locator('.overview').isVisible()).toBe(true);
    await page.locator('.map circle').first().click();
    await page.locator('.turn').first().waitFor();
  });

  test('original text is told in red on every screen', async () => {
    for (const hash of ['', '#kp%3Atrace%3A0']) {
      for (const width of [390, 1280]) {
        const page = await openDesk({ hash, viewport: { width, height: 800 } }, { raw: true });
        const notice = page.getByRole('alert');
        expect(await notice.textContent()).toContain('Original text.');
        await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
        expect((await notice.boundingBox()).y).toBe(0);
        expect(await page.title()).toMatch(/^Original text: /);
      }
    }
  });

  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 390],
  ])(
    'the page has no fault for axe-core and is not wider than the screen: %s, %i points',
    async (colorScheme, width) => {
      const page = await openDesk(
        { colorScheme, viewport: { width, height: 800 } },
        { unread: { count: 3, first: [{ place: 'a.jsonl', reason: 'not JSON' }] } },
      );
      const check = async () => {
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        expect(await violationsOf(page)).toEqual([]);
      };
      await check();
      await page.locator('.list a').first().click();
      await page.locator('.turn').first().waitFor();
      await page.evaluate(() => {
        for (const details of document.querySelectorAll('article details')) details.open = true;
      });
      await check();
      await page.keyboard.press('?');
      expect(await page.getByRole('dialog').isVisible()).toBe(true);
      await check();
    },
  );

  const HOSTILE = [
    '</script><script>alert(1)</script>',
    '<!--<script>',
    '<img src=x onerror=alert(1)>',
    'a\u2028\u2029b',
    '__KNOWLEDGEPULSE_REPORT__',
    '<!-- CONVERSATIONS -->',
    '$& $1 $`',
    '\u202e\u0000"\\',
    '&lt;&#60;',
    '*** Begin Patch',
    'x'.repeat(100_000),
  ];

  test('sessions that carry hostile texts everywhere are shown as text', async () => {
    const rowOf = (text, at) =>
      makeRow(at, {
        ...{ id: text.slice(0, 200), name: text, agent: text, model: text, project: text, began: text },
        ...{ why: text, replaced: text, facts: [{ words: text, good: null }] },
      });
    const conversationOf = (text) => {
      const input = { [text]: text, command: text, old_string: text, new_string: `${text}!` };
      const call = { tool: text, input, result: text, failed: true };
      const answer = { by: 'agent', text, reasoning: text, calls: [call] };
      return { turns: [{ by: 'user', text }, answer], places: [text, ''] };
    };
    const all = HOSTILE.join(' ');
    const desk = makeDesk(HOSTILE.map(rowOf), { explanation: all, command: all });
    const page = await open(renderDesk(desk, (at) => conversationOf(HOSTILE[at])));
    for (const [at, text] of HOSTILE.entries()) {
      await page.locator('.list a').nth(at).click();
      const said = page.locator('.turn.user .said');
      await page.waitForFunction(
        (wanted) => document.querySelector('.turn.user .said')?.textContent === wanted,
        text,
      );
      expect(await said.textContent()).toBe(text);
      const foreign = page.locator('img, iframe, script:not([type]):not(#figures)');
      expect(await foreign.count()).toBeLessThanOrEqual(1);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1280);
      await page.keyboard.press('Escape');
    }
  });

  test('a session without its conversation says which command prints it', async () => {
    const page = await open(
      renderDesk(makeDesk([makeRow(0, { isWhole: false })]), () => CONVERSATION),
      { hash: '#kp%3Atrace%3A0' },
    );
    await page.getByText('kp-score show kp:trace:0').waitFor();
  });

  test('of no session, and of one without a time, an agent that is known or words, the page says so', async () => {
    const empty = await open(renderDesk(makeDesk([]), () => CONVERSATION));
    expect(await empty.locator('h1').textContent()).toBe('0 sessions, 0 to share');
    const bare = makeRow(0, {
      name: '',
      agent: 'unknown',
      began: null,
      project: null,
      turns: 0,
      calls: 0,
      tokens: 0,
    });
    const page = await open(
      renderDesk(makeDesk([bare]), () => ({ turns: [], places: [] })),
      { hash: '#kp%3Atrace%3A0' },
    );
    await page.getByText('nothing marked').waitFor();
    expect(await page.locator('#report').textContent()).not.toMatch(/NaN|undefined|null|Invalid|\[object/);
  });

  test('the page of 2,000 sessions draws its list before the conversations are read', async () => {
    const sessions = Array.from({ length: 2000 }, (_, i) =>
      makeRow(i, { rank: i < 20 ? i + 1 : null, alike: i > 0 ? [[i >> 1, 0.5]] : [] }),
    );
    const long = { ...CONVERSATION, turns: Array.from({ length: 40 }, () => CONVERSATION.turns).flat() };
    const page = await open(renderDesk(makeDesk(sessions), () => long));
    // No number of milliseconds: other work may take the processor, and the page may be painted after it is loaded.
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    const drawn = await page.evaluate(
      () =>
        [...document.querySelectorAll('.list a')].filter((item) =>
          item.checkVisibility({ contentVisibilityAuto: true }),
        ).length,
    );
    expect(drawn).toBeLessThan(60);
    await page.locator('.map circle').nth(1999).waitFor({ state: 'attached' });
  });

  test('the page says so where there is no JavaScript', async () => {
    const page = await openDesk({ javaScriptEnabled: false });
    expect(await page.locator('noscript').textContent()).toContain('draws itself with JavaScript');
  });
});
