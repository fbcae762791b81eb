'use strict';

// The page of a report in a browser: what it draws, that it takes text as text, and that it makes no requests.

const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const { jsonLines, kpScore } = require('./support/kp-score.js');
const { makeTrace } = require('./support/make-trace.js');
const { findChromium, launchChromium } = require('./support/browser.js');
const { carrying, makeBreakdown, makeScored, randomNumbers } = require('./support/make-breakdown.js');
const { CHROMIUM, needing } = require('./support/needs.js');
const { renderReport } = require('./support/report.js');
const { scratchDirectory } = require('./support/scratch.js');

const chromium = findChromium();

const OVERRIDES = [
  [],
  [],
  [],
  [['recovery-bonus', (score) => Math.min(1, score + 0.1)]],
  [['single-tool-penalty', (score) => Math.max(0, score - 0.1)]],
  [
    ['recovery-bonus', (score) => Math.min(1, score + 0.1)],
    ['single-tool-penalty', (score) => Math.max(0, score - 0.1)],
  ],
  [['single-thought', () => 0.1]],
];

/** Traces of all kinds. */
function ordinaryTraces(count = 400) {
  const random = randomNumbers(5);
  return Array.from({ length: count }, (_, i) => {
    const similarity = random() < 0.25 ? 0.95 + random() * 0.05 : 0.2 + random() * 0.7;
    const nearest =
      i === 0
        ? null
        : {
            label: `kp:trace:${Math.floor(random() ** 2 * i)}`,
            similarity,
            ...(i % 5
              ? { lexical: null, contained: null, embedded: null, sharedWords: null, newWords: null }
              : {
                  lexical: similarity,
                  contained: 0.9,
                  embedded: i % 2 ? 0.5 : null,
                  sharedWords: ['flight', 'boston'].map((word) => ({ word, weight: 0.25, traces: 2 })),
                  newWords: [{ word: 'seattle', weight: 0.1, traces: 0 }],
                }),
          };
    const overrides = OVERRIDES[Math.floor(random() * OVERRIDES.length)];
    const dimensions = { complexity: random(), toolDiversity: random(), outcomeConfidence: random() };
    const novelty = i === 0 ? 0.5 : 1 - similarity;
    return makeScored(i, {
      agent: ['claude-code', 'codex', 'openhands'][i % 3],
      when: `2026-02-${String(1 + (i % 28)).padStart(2, '0')}T08:59:59.000Z`,
      steps: 3,
      domain: ['code', 'finance', 'medical', 'customer_service', 'astronomy'][Math.floor(random() ** 2 * 5)],
      success: i % 4 === 0 ? null : random() < 0.7,
      trace: {
        steps: [
          { type: 'thought', content: `Thought of ${i}, told by [REDACTED:email].` },
          {
            type: 'tool_call',
            content: '',
            tool: { name: 'Bash' },
            input: { command: 'ls' },
            output_summary: 'a b',
          },
          { type: 'observation', content: 'x'.repeat(2500) },
        ],
      },
      breakdown: makeBreakdown({ ...dimensions, novelty, nearest, overrides, truncated: random() < 0.5 }),
    });
  });
}

const ordinary = ordinaryTraces();
const ERRORS = [
  { source: 'traces.jsonl', line: 17, message: 'trace.steps must be an array, got a string' },
  { source: 'traces.jsonl', line: 1234, message: 'not JSON' },
];

const scratch = scratchDirectory('report');
let browser;
let pages = 0;

/** The pages of a test, which are closed after it, and must have no faults. */
const opened = [];

/** Opens a page; `faults` are all that it must not do. */
async function open(html, { javaScriptEnabled = true, colorScheme = 'light', media = 'screen' } = {}) {
  pages += 1;
  const file = path.join(scratch, `${pages}.html`);
  fs.writeFileSync(file, html);
  const context = await browser.newContext({
    javaScriptEnabled,
    colorScheme,
    viewport: { width: 1280, height: 900 },
  });
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  const faults = [];
  page.on('console', (message) => faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('dialog', (dialog) => faults.push(dialog.message()) && dialog.dismiss());
  page.on('request', (request) => request.url() !== url && faults.push(request.url()));
  await page.emulateMedia({ media, colorScheme });
  await page.goto(url);
  if (javaScriptEnabled) await drawn(page);
  const one = { page, faults, close: () => context.close() };
  opened.push(one);
  return one;
}

/** Waits until every chart has been drawn: observers of sizes report with the next frames. */
async function drawn(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** What each part of the score of each listed trace adds, by its title. */
async function partsOf(page) {
  const all = [];
  for (const open of await page.locator('.traces .open').all()) {
    await open.click();
    const rows = await page.locator('.opened tbody tr').all();
    const parts = rows.map(async (row) => [
      await row.locator('th').textContent(),
      await row.locator('td').last().textContent(),
    ]);
    all.push(await Promise.all(parts));
    await page.keyboard.press('Escape');
  }
  return all;
}

/** What is wrong with the drawings and the text that can be seen. */
function defectsOf(page) {
  return page.evaluate(() => {
    const defects = [];
    const says = /NaN|undefined|null|Infinity|\[object/.exec(document.getElementById('report').textContent);
    if (says) defects.push(`says ${says[0]}`);
    for (const svg of document.querySelectorAll('svg')) {
      const name = svg.getAttribute('aria-label') ?? svg.parentElement.className;
      const hidden = svg.getAttribute('aria-hidden') === 'true';
      if (!hidden && !svg.getAttribute('aria-label')) defects.push(`a chart without a label: ${name}`);
      if (svg.querySelectorAll('rect, circle, path, line').length === 0)
        defects.push(`nothing drawn: ${name}`);
      for (const mark of svg.querySelectorAll('*')) {
        for (const { value } of mark.attributes) {
          if (/NaN|undefined|Infinity/.test(value)) defects.push(`${name}: ${value}`);
        }
      }
    }
    if (document.documentElement.scrollWidth > innerWidth) defects.push('wider than the window');
    for (const cell of document.querySelectorAll('td, th')) {
      const { width, height } = cell.getBoundingClientRect();
      if (height > 4 * width && cell.textContent.length > 8)
        defects.push(`a narrow cell: ${cell.textContent}`);
    }
    for (const frame of document.querySelectorAll('figure > div:first-child')) {
      if (!frame.querySelector('svg')) defects.push('a figure without a chart');
    }
    return [...new Set(defects)];
  });
}

/**
 * Every visible text of too little contrast with what is behind it, after WCAG 2.2, and every colour of the charts of too
 * little with the page.
 */
function faintParts(page) {
  return page.evaluate(() => {
    const parse = (colour) => (/^rgba?\(([^)]*)\)/.exec(colour)?.[1] ?? '').split(',').map(Number);
    const luminance = (rgb) => {
      const [r, g, b] = rgb.map((c) =>
        c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
      const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
      return (light + 0.05) / (dark + 0.05);
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const [r, g, b, alpha = 1] = parse(getComputedStyle(at).backgroundColor);
        if (alpha > 0) return [r, g, b];
      }
      return [255, 255, 255];
    };
    const faint = [];
    let seen = 0;
    const walker = document.createTreeWalker(document.getElementById('report'), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const text = walker.currentNode.data.trim();
      if (text === '' || element.closest('style') || element.getClientRects().length === 0) continue;
      const style = getComputedStyle(element);
      const colour = parse(element.closest('svg') ? style.fill : style.color);
      if (colour.length < 3 || colour.some(Number.isNaN)) faint.push(`${text}: ${style.fill}`);
      const ratio = contrast(colour.slice(0, 3), behind(element));
      seen += 1;
      if (ratio < 4.5) faint.push(`${text}: ${ratio.toFixed(2)}`);
    }
    const probe = document.createElement('span');
    document.body.append(probe);
    for (const name of ['kept', 'dropped', 'complexity', 'novelty', 'tools', 'outcome']) {
      probe.style.color = `var(--${name})`;
      const ratio = contrast(parse(getComputedStyle(probe).color), behind(document.body));
      if (!(ratio >= 3)) faint.push(`--${name}: ${ratio.toFixed(2)}`);
    }
    probe.remove();
    return { faint, seen };
  });
}

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
    for (const one of opened.splice(0)) await one.close();
    expect(faults).toEqual([]);
  });

  const SIZES = [
    ['light', 1280],
    ['dark', 1280],
    ['dark', 400],
    ['light', 400],
  ];

  const openDetails = (page) =>
    page.evaluate(() => {
      for (const details of document.querySelectorAll('details')) details.open = true;
    });

  /** Checks the drawings of a page, and its texts with all details open, in each size and colour. */
  async function expectSound(page, { closed = SIZES, open = SIZES, check = async () => {} } = {}) {
    for (const isOpen of [false, true]) {
      if (isOpen) await openDetails(page);
      for (const [colorScheme, width] of isOpen ? open : closed) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        await drawn(page);
        const { faint, seen } = isOpen ? await faintParts(page) : { faint: [], seen: 0 };
        const found = { colorScheme, width, defects: await defectsOf(page), faint };
        expect(found).toEqual({ colorScheme, width, defects: [], faint: [] });
        if (isOpen) await check({ seen });
      }
    }
  }

  test('the page of 400 traces has every part, no defect and no faint text, in each size and colour', async () => {
    const { page } = await open(renderReport(ordinary, { errors: ERRORS }));
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const widthOfChart = async () => (await page.locator('figure svg').first().boundingBox()).width;
    const [light, wide] = [await background(), await widthOfChart()];
    const headings = await page.locator('h2').allTextContents();
    expect(headings).toEqual([
      ...['Traces', 'Scores', 'Near-duplicates', 'Domains', 'Bad lines', 'How scores are made'],
    ]);
    expect(await page.locator('.contents a').allTextContents()).toEqual(headings);
    expect(await page.locator('.traces tbody .bar').count()).toBe(25);
    expect(await page.locator('.groups details').count()).toBeGreaterThan(5);
    expect(await page.locator('figure [aria-label="rect"] rect').count()).toBeGreaterThan(8);
    const check = async ({ seen }) => {
      expect(seen).toBeGreaterThan(400);
      await page.locator('.traces .open').first().click();
      expect((await faintParts(page)).faint).toEqual([]);
      expect(await defectsOf(page)).toEqual([]);
      await page.keyboard.press('Escape');
    };
    await expectSound(page, { check });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await background()).not.toBe(light);
    expect(await widthOfChart()).toBeLessThan(wide / 2);
  });

  test('the page of a report tells what another threshold would keep', async () => {
    const { page } = await open(renderReport(ordinary));
    const scores = ordinary.map(({ breakdown }) => breakdown.score);
    const expectKept = async (threshold) => {
      const kept = scores.filter((score) => score >= threshold).length;
      const bar = threshold.toFixed(2);
      expect(await page.locator('.verdict').textContent()).toContain(`${kept} kept`);
      expect(await page.locator('.essentials').textContent()).toContain(`Kept at ${bar}`);
      expect(await page.locator('.essentials').textContent()).toContain(
        `${kept} kept, ${400 - kept} dropped`,
      );
      expect(await page.locator('#threshold').getAttribute('aria-valuetext')).toContain(
        `${bar}: ${kept} kept`,
      );
    };
    /** Where the line of the threshold stands, on the scale of the axis. */
    const line = () =>
      page.locator('figure').first().locator('[aria-label="rule"] line[x1]').last().getAttribute('x1');

    await expectKept(0.6);
    const before = Number(await line());
    const back = page.getByRole('button', { name: 'Back to 0.60' });
    expect(await back.isVisible()).toBe(false);
    await page.locator('#threshold').focus();
    await page.keyboard.press('ArrowRight');
    await expectKept(0.61);
    for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowLeft');
    await expectKept(0.41);
    const after = Number(await line());
    const width = await page
      .locator('figure > div')
      .first()
      .evaluate((frame) => frame.clientWidth);
    expect(before - after).toBeCloseTo((width - 48 - 16) * 0.19, 0);
    await page.keyboard.press('Home');
    await expectKept(0);
    await page.keyboard.press('End');
    expect(Math.max(...scores)).toBeLessThan(1);
    await expectKept(1);
    await back.click();
    await expectKept(0.6);
    expect(await back.isVisible()).toBe(false);
    expect(await defectsOf(page)).toEqual([]);
  });

  test('the page of a report lets the line of the threshold be dragged in the histogram, from 0 where nobody gave one', async () => {
    const { page } = await open(renderReport(ordinary, { options: { threshold: null } }));
    const verdict = page.locator('figure').first().locator('.verdict');
    expect(await verdict.isVisible()).toBe(false);
    expect(await page.locator('.essentials').textContent()).not.toContain('Kept');
    const frame = page.locator('.dragged').first();
    await frame.scrollIntoViewIfNeeded();
    const { x, y, width } = await frame.boundingBox();
    const at = (score) => x + 48 + score * (width - 48 - 16);
    await page.mouse.move(at(0), y + 120);
    await page.mouse.down();
    await page.mouse.move(at(0.3), y + 120, { steps: 5 });
    await page.mouse.move(at(0.5), y + 120, { steps: 5 });
    await page.mouse.up();
    expect(Number(await page.locator('#threshold').inputValue())).toBeCloseTo(0.5, 1);
    const dropped = ordinary.filter(({ breakdown }) => breakdown.score < 0.5).length;
    expect(dropped).toBeGreaterThan(20);
    expect(await verdict.textContent()).toMatch(/^\d+ kept, \d+%\d+ dropped/);
    await page.getByRole('button', { name: 'Back to 0.00' }).click();
    expect(await verdict.isVisible()).toBe(false);
    expect(await defectsOf(page)).toEqual([]);
  });

  test('the page of a report keeps what scores 1 at a threshold of 1', async () => {
    const best = makeBreakdown({ complexity: 1, novelty: 1, toolDiversity: 1, outcomeConfidence: 1 });
    const traces = [
      ...ordinary.slice(0, 50),
      ...Array.from({ length: 3 }, (_, i) => makeScored(50 + i, { breakdown: best })),
    ];
    const { page } = await open(renderReport(traces));
    await page.locator('#threshold').focus();
    await page.keyboard.press('End');
    expect(await page.locator('.verdict').textContent()).toContain('3 kept, ');
    const initial = await open(renderReport(traces, { options: { threshold: 1 } }));
    expect(await initial.page.locator('.verdict').textContent()).toContain('3 kept, ');
  });

  test('the page of a report takes nothing where nothing is left of it', async () => {
    const takes = [['single-tool-penalty', (score) => score - 0.00001]];
    const breakdowns = [
      { novelty: -0.0001 },
      { overrides: takes },
      { overrides: [['single-thought', () => 0.1], ...takes] },
    ];
    const traces = breakdowns.map((given, i) => makeScored(i, { breakdown: makeBreakdown(given) }));
    const { page } = await open(renderReport(traces));
    const amounts = (await partsOf(page)).flat().map(([, amount]) => amount);
    expect(amounts).toHaveLength(3 * 4 + 3);
    expect(amounts).toContain('0.0000');
    expect(amounts).not.toContain('−0.0000');
  });

  test('the page of a report explains scores by parts that add up', async () => {
    const traces = OVERRIDES.map((overrides, i) => {
      const random = randomNumbers(i);
      const dimensions = {
        complexity: random(),
        novelty: random() * 1.2,
        toolDiversity: random(),
        outcomeConfidence: random(),
      };
      return makeScored(i, { breakdown: makeBreakdown({ ...dimensions, overrides }) });
    });
    const high = { complexity: 1, novelty: 1.2, toolDiversity: 1, outcomeConfidence: 1 };
    const clamp = [['clamp', (score) => Math.min(1, score)]];
    traces.push(makeScored(99, { breakdown: makeBreakdown({ ...high, overrides: clamp }) }));
    const { page } = await open(renderReport(traces));
    const all = await partsOf(page);
    const scores = traces.map(({ breakdown }) => breakdown.score).sort((a, b) => b - a);
    const sums = all.map((parts) =>
      parts.reduce((sum, [, amount]) => sum + Number(amount.replace('−', '-')), 0),
    );
    expect(sums).toHaveLength(traces.length);
    for (const [i, sum] of sums.entries()) expect(sum).toBeCloseTo(scores[i], 3);
    expect(all[0].at(-1)).toEqual(['what left the range of 0 to 1 was brought back', '−0.0700']);
    const rules = all.flatMap((parts) => parts.slice(4));
    expect(rules).toContainEqual(['using only one tool takes 0.1', '−0.1000']);
    expect(rules).toContainEqual(['more than two recoveries in a success add 0.1', '0.1000']);
  });

  describe('of a chosen set', () => {
    const TASKS = ['book a flight', 'fix the failing build', 'triage a headache', 'reconcile an invoice'];
    const input = jsonLines(
      TASKS.flatMap((task, kind) =>
        Array.from({ length: 5 }, (_, run) => ({
          ...makeTrace({ objective: `${task} for customer ${run}`, success: run % 2 === 0 }),
          id: `kp:trace:${kind}-${run}`,
        })),
      ),
    );
    const pageOf = async (...args) => {
      const file = path.join(scratch, 'chosen.html');
      const { code } = await kpScore(['select', '5', '--report', file, '--quiet', ...args], { input });
      expect(code).toBe(0);
      return fs.readFileSync(file, 'utf8');
    };
    let html;
    beforeAll(async () => {
      html = await pageOf();
    });

    test('the page of a chosen set has a curve and no defect, in each size and colour', async () => {
      const { page } = await open(html);
      expect(await page.locator('h1').textContent()).toBe('5 chosen of 20 traces');
      expect(await page.locator('.essentials').textContent()).toMatch(
        /^Chosen5of 20 tracesCovered\d+%.*To review0names of people are not looked for/,
      );
      const chosen = page.locator('section').nth(1);
      expect(await chosen.locator('h2').textContent()).toBe('Coverage');
      expect(await chosen.locator('.finding').textContent()).toMatch(
        /^5 of 20 traces were chosen: the outcome of every trace is known.*They cover \d+%.*The curve bends at 4 \(\d+%\)/,
      );
      await expectSound(page);
    });

    test('the page of a chosen set tells by keyboard what another number covers', async () => {
      const { page } = await open(html);
      const verdict = page.locator('section').nth(1).locator('.verdict');
      const table = page.locator('section').nth(1).locator('.more tbody tr');
      const covered = async (size) =>
        (await table
          .nth(size - 1)
          .locator('td')
          .first()
          .textContent()) ?? '';
      expect(await verdict.textContent()).toContain(`5 traces cover ${await covered(5)}`);
      await page.locator('#set-size').focus();
      await page.keyboard.press('ArrowLeft');
      await page.keyboard.press('ArrowLeft');
      expect(await verdict.textContent()).toBe(`3 traces cover ${await covered(3)}select 3`);
      expect(await page.locator('#set-size').getAttribute('aria-valuetext')).toMatch(/^3 traces cover/);
      await page.keyboard.press('End');
      expect(await verdict.textContent()).toBe('20 traces cover 100%select 20');
    });

    test('the page of a chosen set lists the chosen traces first, and for whom each stands', async () => {
      const { page } = await open(html);
      const rows = page.locator('.traces tbody tr');
      const ranks = await rows.locator('.rank').allTextContents();
      expect(ranks).toEqual(['1', '2', '3', '4', '5', ...Array(15).fill('')]);
      await page.locator('.filters').getByLabel('Set').selectOption('not chosen');
      expect(await rows.count()).toBe(15);
      await page.locator('.filters').getByLabel('Set').selectOption('chosen');
      expect(await rows.count()).toBe(5);
      await rows.first().locator('.open').focus();
      await page.keyboard.press('Enter');
      const drawer = page.locator('dialog');
      const [, kind] = /for customer|^(\S+ \S+)/.exec(await drawer.locator('h2').textContent());
      const said = await drawer.getByText('Chosen as number 1').textContent();
      const stands = Number(/stands for (\d+)/.exec(said)[1]);
      const similar = await drawer.locator('.similar').last().locator('button').allTextContents();
      expect(similar).toHaveLength(Math.min(4, stands));
      expect(similar.every((name) => name.startsWith(kind))).toBe(true);
      await drawer.locator('.similar').last().locator('button').first().click();
      expect(await drawer.locator('h2').textContent()).toBe(similar[0]);
    });

    test('the page of a chosen set shows cleaned texts where they are cleaned', async () => {
      const file = path.join(scratch, 'cleaned.html');
      const objective = 'mail jane@example.com at 12 Main Street';
      const secret = jsonLines([{ ...makeTrace({ objective }), id: 'a' }]);
      const { stdout: input } = await kpScore(['clean', '-', '--quiet'], { input: secret });
      await kpScore(['select', '1', '--report', file, '--quiet'], { input });
      const { page } = await open(fs.readFileSync(file, 'utf8'));
      expect(await defectsOf(page)).toEqual([]);
      expect(await page.content()).not.toContain('jane@example.com');
      expect(await page.locator('.traces mark').textContent()).toBe('[REDACTED:email-1]');
      expect(await page.locator('.essentials').textContent()).toContain('To review1places in 1 trace');
    });
  });

  const textsOf = (page, column) => page.locator(`.traces tbody .${column}`).allTextContents();
  const numbers = (texts) => texts.map((text) => Number.parseFloat(text));

  test('the page of a report lists traces a page at a time, the best first, and sorted by each column', async () => {
    const { page } = await open(renderReport(ordinary));
    const status = page.locator('.pager [role=status]');
    expect(await status.textContent()).toBe('1–25 of 400');
    const best = ordinary
      .map(({ breakdown }) => breakdown.score.toFixed(2))
      .sort()
      .reverse();
    expect(await page.locator('.traces td .score').allTextContents()).toEqual(best.slice(0, 25));
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    expect(await status.textContent()).toBe('26–50 of 400');
    const sort = (name) => page.getByRole('columnheader', { name, exact: true }).getByRole('button').click();
    await sort('Score');
    expect(await page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('ascending');
    expect(await page.locator('.traces td .score').allTextContents()).toEqual(best.toReversed().slice(0, 25));
    await sort('Agent');
    expect(new Set(await textsOf(page, 'agent'))).toEqual(new Set(['claude-code']));
    await sort('Like');
    const like = numbers(await textsOf(page, 'like'));
    expect(like).toEqual(like.toSorted((a, b) => b - a));
    await sort('End');
    expect(await page.locator('th[aria-sort]').textContent()).toBe('End');
  });

  test('the page of a report searches and filters traces', async () => {
    const { page } = await open(renderReport(ordinary));
    const status = page.locator('.pager [role=status]');
    const counted = (is) => ordinary.filter(is).length;
    const found = async () => Number(/of (\d+)/.exec(await status.textContent())[1]);
    await page.locator('.filters').getByLabel('Agent').selectOption('codex');
    expect(await found()).toBe(counted(({ agent }) => agent === 'codex'));
    await page.locator('.filters').getByLabel('Domain').selectOption('finance');
    const both = ({ agent, domain }) => agent === 'codex' && domain === 'finance';
    expect(await found()).toBe(counted(both));
    await page.locator('.filters').getByLabel('Outcome').selectOption('? unknown');
    expect(await found()).toBe(counted((scored) => both(scored) && scored.success === null));
    expect(new Set(await page.locator('.traces td.outcome').allTextContents())).toEqual(new Set(['?']));
    for (const name of ['Agent', 'Domain', 'Outcome'])
      await page.locator('.filters').getByLabel(name).selectOption('all');
    await page.getByLabel('Search').fill('OBJECTIVE 39');
    expect(await found()).toBe(
      counted(({ objective }) => /Objective 39/.test(objective)) +
        counted(({ id, objective }) => !/ 39/.test(objective) && id.includes('39')),
    );
    await page.getByLabel('Search').fill('nothing like it');
    expect(await status.textContent()).toBe('No trace is like that');
    expect(await page.locator('.traces tbody tr').count()).toBe(0);
  });

  test('the page of a report opens traces by keyboard, with their steps, and turns to the next', async () => {
    const { page } = await open(renderReport(ordinary));
    const second = page.locator('.traces .open').nth(1);
    await second.focus();
    await page.keyboard.press('Enter');
    const drawer = page.locator('dialog');
    expect(await drawer.locator('h2').textContent()).toBe(await second.textContent());
    expect(await drawer.locator('.turn [role=status]').textContent()).toBe('2 of 400');
    expect(await drawer.textContent()).toMatch(/better than \d+(\.\d)?% of these traces/);
    const steps = drawer.locator('.steps li');
    expect(await steps.count()).toBe(3);
    expect(await steps.nth(0).locator('mark').textContent()).toBe('[REDACTED:email]');
    expect(await steps.nth(1).textContent()).toBe('tool callBash{"command":"ls"}→ a b');
    expect(await steps.nth(2).textContent()).toMatch(/x{2000}500 more characters are not shown$/);
    await drawer.getByRole('button', { name: 'Next' }).click();
    expect(await drawer.locator('h2').textContent()).toBe(
      await page.locator('.traces .open').nth(2).textContent(),
    );
    await page.keyboard.press('Escape');
    expect(await drawer.isVisible()).toBe(false);
    expect(await second.evaluate((element) => element === document.activeElement)).toBe(true);
  });

  test('the page of a report searches 10,000 traces within a second, and says which have no steps', async () => {
    const trace = { steps: [{ type: 'thought', content: 'x'.repeat(1000) }] };
    const many = Array.from({ length: 10_000 }, (_, i) => ({
      ...ordinary[i % 400],
      id: `kp:trace:${i}`,
      trace,
    }));
    const { page } = await open(renderReport(many));
    const took = await page.evaluate(() => {
      const start = performance.now();
      const search = document.querySelector('input[type=search]');
      search.value = 'objective';
      search.dispatchEvent(new Event('input'));
      return performance.now() - start;
    });
    expect(took).toBeLessThan(1000);
    await page.getByRole('columnheader', { name: 'Score', exact: true }).getByRole('button').click();
    await page.locator('.traces .open').first().click();
    expect(await page.locator('.opened').textContent()).toContain(
      'the traces that come first in it, up to 8 MB',
    );
  });

  test('the page of a report opens a group of near-duplicates, by keyboard too', async () => {
    const { page } = await open(renderReport(ordinary));
    const group = page.locator('.groups details').first();
    const size = Number(/\d+/.exec(await group.locator('.size').textContent())[0]);
    await group.locator('summary').focus();
    await page.keyboard.press('Enter');
    await group.locator('table').waitFor();
    expect(await group.locator('tbody tr').count()).toBe(Math.min(8, size));
    expect(await group.locator('tbody tr').nth(1).textContent()).toMatch(/Objective \d+line \d+.*kp:trace/);
    await group.locator('.open').first().click();
    expect(await page.locator('dialog h2').textContent()).toBe(
      await group.locator('.open').first().textContent(),
    );
    await page.keyboard.press('Escape');
    await group.locator('summary').focus();
    // Closed and opened again it has still one table.
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    expect(await group.locator('table').count()).toBe(1);
  });

  const HOSTILE = [
    '</script><script>window.hit = 1</script>',
    '<img src="http://127.0.0.1:9/x.png" onerror="window.hit = 1">',
    '<!--<script>',
    '"><svg onload=window.hit=1>',
    "javascript:window.hit=1//'",
    '<style>*{display:none}</style>',
    '\u202e\u2066abc\u0000',
    'x'.repeat(100_000),
  ];
  const html = renderReport(...carrying(HOSTILE));

  test('the page of a report shows hostile text as it is', async () => {
    const { page } = await open(html);
    await openDetails(page);
    await drawn(page);
    expect(await page.evaluate(() => window.hit)).toBeUndefined();
    // The figures and the program.
    expect(await page.locator('script').count()).toBe(2);
    expect(await page.locator('img, iframe, object, embed, form, a:not([href^="#"])').count()).toBe(0);
    expect(await page.locator('#report style').count()).toBe(await page.locator('svg.plot > style').count());
    const text = await page.evaluate(() => document.body.textContent);
    for (const shown of HOSTILE.slice(0, 6)) expect(text).toContain(shown);
    for (const width of [1280, 400]) {
      await page.setViewportSize({ width, height: 900 });
      await drawn(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      for (const opener of await page.locator('.traces .open').all()) {
        await opener.click();
        expect(await page.locator('.steps li').count()).toBe(1);
        const isWide = await page.locator('dialog').evaluate((it) => it.scrollWidth > it.clientWidth);
        expect(isWide).toBe(false);
        await page.keyboard.press('Escape');
      }
    }
    expect(await page.evaluate(() => window.hit)).toBeUndefined();
  });

  test('the page of a report would neither run code nor fetch anything if markup got into it', async () => {
    const { page, faults } = await open(renderReport(ordinary.slice(0, 5)));
    const blocked = await page.evaluate(async () => {
      const violations = [];
      document.addEventListener('securitypolicyviolation', (event) =>
        violations.push(event.effectiveDirective),
      );
      document.body.insertAdjacentHTML(
        'beforeend',
        '<img src="http://127.0.0.1:9/" onerror="window.hit = 1">',
      );
      const script = document.createElement('script');
      script.textContent = 'window.hit = 1';
      document.body.append(script);
      await fetch('http://127.0.0.1:9/').catch(() => {});
      await new Promise((done) => setTimeout(done, 100));
      return { violations: violations.sort(), hit: window.hit };
    });
    expect(blocked.hit).toBeUndefined();
    expect(new Set(blocked.violations)).toEqual(
      new Set(['connect-src', 'img-src', 'script-src-attr', 'script-src-elem']),
    );
    // The browser tells of each refusal, and asked for nothing.
    expect(faults.splice(0).length).toBeGreaterThan(0);
  });

  const noEmbedder = (i) =>
    makeScored(i, { breakdown: makeBreakdown({ outcomeConfidence: i / 50, noveltyBasis: 'no-embedder' }) });
  const same = (i) =>
    makeScored(i, { breakdown: makeBreakdown({ nearest: { label: 'kp:trace:0', similarity: 0.5 } }) });
  const bare = { id: null, domain: '', objective: '' };
  const best = makeBreakdown({ complexity: 1, novelty: 1, toolDiversity: 1, outcomeConfidence: 1 });
  const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
  /** Odd runs by their names: the traces, what describes the run, and what the page and its first trace say. */
  const ODD = {
    'no trace': { traces: [], says: 'No trace was scored' },
    'no trace, but errors': {
      traces: [],
      described: { errors: many(100, (i) => ({ source: 'a', line: i, message: 'not JSON' })) },
    },
    'one trace': { traces: [makeScored(0)] },
    'one trace of nothing': {
      traces: [
        makeScored(0, {
          ...bare,
          breakdown: makeBreakdown({
            ...{ complexity: 0, novelty: 0, toolDiversity: 0, outcomeConfidence: 0, profile: ' ' },
          }),
        }),
      ],
      opened: 'Weights of the profile (none)',
    },
    'two traces': { traces: many(2, same), opened: /What it is like.*0\.50Objective 0/ },
    'no embedder': {
      traces: many(50, noEmbedder),
      described: { options: { dtype: null } },
      says: 'There was no embedder, so nothing was compared',
      opened: 'novelty is 0.5 without an embedder',
    },
    'an embedder that failed midway': {
      traces: many(50, (i) => (i < 25 ? same(i) : noEmbedder(i))),
      says: 'failed for 25 traces',
    },
    'equal scores': { traces: many(40, same), says: 'All 40 traces score 0.50.' },
    'the highest scores': { traces: many(5, (i) => makeScored(i, { breakdown: best })) },
    'fifty domains in three sources': {
      traces: many(500, (i) =>
        makeScored(i, { domain: `domain number ${i % 50}`, source: `file-${i % 3}.jsonl` }),
      ),
      described: { options: { sources: ['a', 'b', 'c'] } },
    },
    'long names': {
      traces: many(5, (i) =>
        makeScored(i, { id: 'x'.repeat(500), domain: 'y'.repeat(500), source: 'z'.repeat(500) }),
      ),
      described: { options: { sources: ['z'.repeat(500), 'a'] } },
    },
    'novelty over the whole text': {
      traces: ordinary,
      described: { options: { novelty: 'full', dtype: 'q8' } },
    },
    'a list that is cut': {
      // Their names are as long as names are listed, so that 6 MB are full soon.
      traces: many(12_000, (i) => ({
        ...ordinary[i % 400],
        ...{
          id: `${i} ${'of many '.repeat(30)}`,
          objective: `${i} ${'words '.repeat(50)}`,
          trace: undefined,
        },
      })),
      says: /The first [\d,]+ traces of 12,000, by score, are listed\./,
    },
    'words that are compared': {
      traces: ordinary.filter(({ breakdown }) => breakdown.nearest?.sharedWords),
      opened:
        /Words 0\.\d\d.*by weight, are in it\.( Only the beginning of its text was compared\.)?Shared: flight, bostonNew: seattle/,
    },
    'no known outcome': {
      traces: ordinary.map((trace) => ({ ...trace, success: null })),
      says: /^.*400 traces, 3 agents, none with a known outcome/,
    },
    'no threshold': { traces: ordinary, described: { options: { threshold: null } } },
    'a threshold between two steps': {
      traces: ordinary,
      described: { options: { threshold: 0.7525 } },
      says: 'Kept at 0.7525',
    },
    'a threshold of 0': { traces: ordinary, described: { options: { threshold: 0 } } },
    'a threshold of 1': { traces: ordinary, described: { options: { threshold: 1 } } },
    'an interruption': {
      traces: ordinary.slice(0, 30),
      described: { run: { interrupted: true, seconds: 0 } },
      says: 'Scoring was interrupted',
    },
  };

  test.each(Object.entries(ODD))('the page of %s has no defect, and says so', async (...row) => {
    const [, { traces, described, says = '', opened: details }] = row;
    const { page } = await open(renderReport(traces, described));
    expect(await page.locator('#report').textContent()).toMatch(says);
    if (details !== undefined) {
      await page.locator('.traces .open').first().click();
      expect(await page.locator('.opened').textContent()).toMatch(details);
      await page.keyboard.press('Escape');
    }
    await expectSound(page, { closed: [SIZES[0]], open: [SIZES[3]] });
  });

  test('the page of a report can be printed', async () => {
    const { page } = await open(renderReport(ordinary), {
      colorScheme: 'dark',
      media: 'print',
    });
    expect(await page.locator('#threshold').isVisible()).toBe(false);
    const [red] = await page.evaluate(() =>
      /\d+/.exec(getComputedStyle(document.documentElement).backgroundColor),
    );
    expect(Number(red)).toBe(255);
    // Browsers leave backgrounds out, and these are all there is of a colour's key.
    const swatches = await page.evaluate(() =>
      [...document.querySelectorAll('.swatch')].map((swatch) =>
        getComputedStyle(swatch).getPropertyValue('-webkit-print-color-adjust'),
      ),
    );
    expect(new Set(swatches)).toEqual(new Set(['exact']));
    const pdf = await page.pdf({ format: 'A4' });
    expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
  });

  test('the page of a report says so where there is no JavaScript', async () => {
    const { page } = await open(renderReport(ordinary), { javaScriptEnabled: false });
    expect(await page.locator('noscript').textContent()).toContain('draws itself with JavaScript');
  });

  test('the page of 400 traces has no fault for axe-core', async () => {
    const { page } = await open(renderReport(ordinary, { errors: ERRORS }));
    // Contrast is measured above, in charts too. A script that is added would be refused.
    const client = await page.context().newCDPSession(page);
    await client.send('Runtime.evaluate', { expression: require('axe-core').source });
    // The name of the package stands outside of the landmarks.
    const rules = { 'color-contrast': { enabled: false }, region: { enabled: false } };
    const { violations } = await page.evaluate((options) => axe.run(options), { rules });
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`)).toEqual([]);
    expect(await page.locator('table').count()).toBeGreaterThan(4);
    expect(await page.locator('table:not(:has(caption))').count()).toBe(0);
  });
});
