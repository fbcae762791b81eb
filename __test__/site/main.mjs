// The site in Chromium: the documentation, and the page to try the package.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { serveSite, site } from '../../scripts/site.mjs';

const require = createRequire(import.meta.url);
const axe = require('axe-core');
const { share } = require('../../index.js');
const { findChromium, launchChromium } = require('../support/browser.js');
const { makeTrace } = require('../support/make-trace.js');
const { readTraces, root } = require('../support/paths.js');

/** @typedef {import('playwright-core').Page} Page */

/** How long something may take, in milliseconds. Generous, because it is no measurement. */
const PATIENCE = 300_000;
/** How long the page may be blocked while the worker works, in milliseconds. */
const BLOCKED = 1000;
const MEGABYTES = 50;

const examples = path.join(root, 'examples', 'traces.jsonl');
const formats = path.join(root, '__test__', 'formats');

/** Some of the tests, by a regular expression. */
const only = new RegExp(process.argv[2] ?? '');

/** @param {string} name @param {() => unknown} run */
async function test(name, run) {
  if (!only.test(name)) return;
  const start = performance.now();
  const said = await run();
  console.log(`ok  ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)${said ? `: ${said}` : ''}`);
}

const chromium = findChromium();
if (!chromium) {
  console.error('there is no Chromium: Debian has the package chromium, and CHROME_BIN may name another');
  process.exit(1);
}
const { address, close } = await serveSite();
const browser = await launchChromium(chromium);
const scratch = mkdtempSync(path.join(tmpdir(), 'site-'));

/**
 * Opens a page in a profile of its own; `faults` are all that it must not do.
 *
 * @param {string} place
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function open(place, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 1400 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  /** @type {string[]} */
  const requests = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => faults.push(message.text()));
  context.on('request', (request) => {
    const url = request.url();
    requests.push(url);
    if (!url.startsWith(address) && !url.startsWith(`blob:${address}`)) faults.push(url);
  });
  await page.goto(address + place);
  return { page, faults, requests, context };
}

const openTry = (/** @type {import('playwright-core').BrowserContextOptions} */ options = {}) =>
  open('try/index.html', options);

/** Waits until the page has done what it was asked for; returns what it says then. @param {Page} page */
async function settled(page) {
  await page.locator('body[aria-busy=false]').waitFor();
  return (await page.locator('#state').textContent()) ?? '';
}

/** @param {Page} page @param {string} name */
async function press(page, name) {
  await page.getByRole('button', { name, exact: true }).click();
  return settled(page);
}

/** @param {Page} page @param {Parameters<import('playwright-core').Locator['setInputFiles']>[0]} files */
async function readFiles(page, files) {
  await page.locator('.drop input').setInputFiles(files);
  return settled(page);
}

/**
 * Nothing that axe-core finds in the page, or in its text where the frame around it is VitePress's; nothing wider than the screen.
 *
 * @param {Page} page
 * @param {string} where
 * @param {string} [part] a selector
 */
async function checkPage(page, where, part = 'html') {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(
    (selector) => /** @type {any} */ (globalThis).axe.run(selector),
    part,
  );
  const found = violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes[0].html}`);
  assert.deepEqual(found, [], where);
  const [width, screen] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(width <= screen, `${where}: ${width} px wide on a screen of ${screen}`);
}

/** Presses Tab until the element has the focus. @param {Page} page @param {import('playwright-core').Locator} target */
async function tabTo(page, target) {
  for (let i = 0; i < 300; i++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${target}`);
}

/** @param {Page} page @param {string} name */
async function pressByKeyboard(page, name) {
  await tabTo(page, page.getByRole('button', { name, exact: true }));
  await page.keyboard.press('Enter');
  return settled(page);
}

/** The texts of the sessions in a shared folder. @param {string} folder */
const sessionsIn = (folder) =>
  readdirSync(path.join(folder, 'sessions')).map((name) =>
    readFileSync(path.join(folder, 'sessions', name), 'utf8'),
  );

const LOOKS = /** @type {const} */ ([
  { name: 'light', options: { colorScheme: 'light' } },
  { name: 'dark', options: { colorScheme: 'dark' } },
  { name: 'narrow', options: { colorScheme: 'light', viewport: { width: 320, height: 700 } } },
]);

try {
  for (const { name, options } of LOOKS) {
    await test(`the documentation has no fault for axe-core, ${name}`, async () => {
      const pages = readdirSync(site, { recursive: true, encoding: 'utf8' })
        .map((file) => file.replaceAll(path.sep, '/'))
        .filter((file) => file.endsWith('.html') && !file.startsWith('try/'));
      const { page, faults, context } = await open('index.html', options);
      for (const file of pages) {
        await page.goto(address + file);
        await page.locator('.vp-doc, .NotFound').first().waitFor();
        await checkPage(page, file, '.VPContent');
      }
      assert.deepEqual(faults, []);
      await context.close();
      return `${pages.length} pages`;
    });

    await test(`the page to try it has no fault for axe-core, ${name}`, async () => {
      const { page, faults, context } = await openTry(options);
      await checkPage(page, 'empty');
      assert.match(await press(page, 'Read examples'), /^30 traces read, in 1 format, from 1 file\.$/);
      await page.getByText('The 30 traces').click();
      await page.locator('.folds li').first().waitFor();
      const secret = { name: 'secret.jsonl', mimeType: '', buffer: Buffer.from('no trace\n') };
      assert.match(await readFiles(page, secret), /^30 traces read, .*; 1 record could not be read\.$/);
      assert.match(await press(page, 'Clean'), /^Cleaned: /);
      await page.getByText('What was replaced').click();
      await page.locator('.folds').nth(1).locator('summary').first().click();
      await page.locator('del').first().waitFor();
      assert.match(await press(page, 'Choose'), /^3 of 30 traces chosen; all scored in .* \(by words\)\.$/);
      await checkPage(page, 'in use');
      await page.locator('.traces .open').first().click();
      await page.locator('dialog .steps li').first().waitFor();
      await checkPage(page, 'a trace');
      await page.keyboard.press('Escape');
      assert.deepEqual(faults, []);
      const picture = process.env.KNOWLEDGEPULSE_PICTURE;
      if (picture && name === 'light') {
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({ path: picture });
      }
      await context.close();
    });
  }

  await test('recordings of rows, of a session and in an archive are read and listed', async () => {
    const { page, faults, context } = await openTry();
    for (const [name, ...expected] of [
      ['chat.jsonl', 'openai-chat'],
      ['session.jsonl', 'claude-code'],
      ['inspect.eval', 'inspect'],
    ]) {
      assert.match(await readFiles(page, path.join(formats, name)), /^\d+ traces? read[.,]/, name);
      await page.getByText(/^The [\d,]+ traces?$/).click();
      await page.locator('.folds li').first().waitFor();
      const shown = await page.locator('.folds').first().locator('.where').allTextContents();
      assert.deepEqual([...new Set(shown.map((text) => text.split(',')[0]))], expected, name);
      await press(page, 'Start over');
    }
    assert.deepEqual(faults, []);
    await context.close();
  });

  await test('by keyboard alone, traces are read, cleaned, chosen and saved', async () => {
    const { page, faults, context } = await openTry();
    const secret = makeTrace({ objective: 'Write to bob@example.com about 10.1.2.3' });
    await tabTo(page, page.getByText('Paste text', { exact: true }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('textbox', { name: 'Traces as text' }));
    await page.keyboard.insertText(`${JSON.stringify(secret)}\n`);
    assert.match(await pressByKeyboard(page, 'Read the text'), /^1 trace read, in 1 format, from 1 file\.$/);
    assert.match(
      await pressByKeyboard(page, 'Read examples'),
      /^31 traces read, in 1 format, from 2 files\.$/,
    );
    assert.match(await pressByKeyboard(page, 'Clean'), /^Cleaned: \d+ traces changed, .* replaced\.$/);
    await tabTo(page, page.getByText('What was replaced', { exact: true }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.locator('.folds').nth(1).locator('summary').first());
    await page.keyboard.press('Enter');
    const change = page.locator('.folds').nth(1).locator('.change').first();
    await change.waitFor();
    assert.deepEqual(await change.locator('del').allTextContents(), ['bob@example.com', '10.1.2.3']);
    assert.deepEqual(await change.locator('ins').allTextContents(), [
      '[REDACTED:email-1]',
      '[REDACTED:ip-1]',
    ]);

    await tabTo(page, page.getByLabel('Number or percentage'));
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText('4');
    assert.match(await pressByKeyboard(page, 'Choose'), /^4 of 31 traces chosen; /);
    const folder = path.join(scratch, 'shared');
    await share([secret, ...readTraces(examples)], folder);
    const expected = sessionsIn(folder);
    for (const [button, count] of /** @type {const} */ ([
      ['Save the chosen traces', 4],
      ['Save all traces', 31],
    ])) {
      const download = page.waitForEvent('download');
      const said = await pressByKeyboard(page, button);
      assert.match(said, new RegExp(`^${count} sessions saved\\. Look for names of people and streets`));
      const saved = await download;
      assert.equal(saved.suggestedFilename(), 'shared.zip');
      const unpacked = path.join(scratch, String(count));
      execFileSync('python3', ['-m', 'zipfile', '-e', await saved.path(), unpacked]);
      const sessions = sessionsIn(unpacked);
      assert.equal(sessions.length, count);
      for (const session of sessions) assert.ok(expected.includes(session), session.slice(0, 200));
      const card = readFileSync(path.join(unpacked, 'README.md'), 'utf8');
      assert.match(card, new RegExp(`^# ${count} agent sessions$`, 'm'));
      const manifest = readFileSync(path.join(unpacked, 'manifest.jsonl'), 'utf8').trim().split('\n');
      assert.deepEqual(
        manifest.map((line) => JSON.parse(line).rank),
        Array.from({ length: count }, (_, index) => index + 1),
      );
    }
    assert.deepEqual(faults, []);
    await context.close();
  });

  await test('the model is fetched on the first use, with its progress, and kept', async () => {
    const { page, faults, requests, context } = await openTry();
    await page.evaluate(() => {
      const state = /** @type {HTMLElement} */ (document.getElementById('state'));
      /** @type {Array<string | null>} */
      const said = [];
      Object.assign(globalThis, { said });
      new MutationObserver(() => said.push(state.textContent)).observe(state, { childList: true });
    });
    const ofModel = () => requests.filter((url) => url.includes('/model/')).length;
    await press(page, 'Read examples');
    await press(page, 'Choose');
    assert.equal(ofModel(), 0);
    await page.getByLabel('Compare scores by').selectOption('prefix');
    assert.match(await press(page, 'Choose'), /^3 of 30 .* \(q8, simd128\)\.$/);
    const said = await page.evaluate(() => /** @type {any} */ (globalThis).said);
    assert.ok(
      said.some((/** @type {string} */ text) => /^Fetching the model: \d+\.\d of 24\.0 MB$/.test(text)),
      said,
    );
    assert.equal(ofModel(), 2);
    await page.reload();
    await press(page, 'Read examples');
    await page.getByLabel('Compare scores by').selectOption('prefix');
    assert.match(await press(page, 'Choose'), /^3 of 30 .* \(q8, simd128\)\.$/);
    assert.equal(ofModel(), 2);
    assert.deepEqual(faults, []);
    await context.close();
  });

  await test('the page says why there is no model, and works without one', async () => {
    const { page, context } = await openTry();
    await press(page, 'Read examples');
    await page.getByLabel('Compare scores by').selectOption('prefix');
    await context.route('**/model/**', (route) => route.fulfill({ status: 404 }));
    const missing = /^That did not work: model\/[0-9a-f]{16}\/model\.safetensors cannot be fetched: 404\.$/;
    assert.match(await press(page, 'Choose'), missing);
    await context.unroute('**/model/**');
    await context.route('**/model/**', (route) => route.fulfill({ body: 'cut off' }));
    assert.match(await press(page, 'Choose'), /has 7 bytes in place of 23537056: load it again\.$/);
    await page.getByLabel('Compare scores by').selectOption('lexical');
    assert.match(await press(page, 'Choose'), /^3 of 30 traces chosen; /);
    await context.unroute('**/model/**');
    await page.getByLabel('Compare scores by').selectOption('prefix');
    assert.match(await press(page, 'Choose'), /^3 of 30 .* \(q8, simd128\)\.$/);
    await context.close();
  });

  await test(`the page stays responsive with ${MEGABYTES} MB of traces`, async () => {
    const file = path.join(scratch, 'large.jsonl');
    const traces = readTraces(examples);
    const lines = [];
    for (let size = 0; size < MEGABYTES * 1e6; ) {
      const trace = structuredClone(traces[lines.length % traces.length]);
      trace.id = `kp:trace:${lines.length}`;
      trace.task.objective += ` Attempt ${lines.length}, tell user${lines.length}@example.com.`;
      const line = JSON.stringify(trace);
      lines.push(line);
      size += Buffer.byteLength(line) + 1;
    }
    writeFileSync(file, lines.join('\n'));
    const { page, faults, context } = await openTry();
    await page.evaluate(() => {
      const kept = { longest: 0, last: performance.now() };
      Object.assign(globalThis, { kept });
      setInterval(() => {
        const now = performance.now();
        kept.longest = Math.max(kept.longest, now - kept.last);
        kept.last = now;
      }, 5);
    });
    const spent = [];
    const step = async (/** @type {string} */ name, /** @type {() => Promise<string>} */ work) => {
      const start = performance.now();
      await page.evaluate(() =>
        Object.assign(/** @type {any} */ (globalThis).kept, { longest: 0, last: performance.now() }),
      );
      const said = await work();
      const longest = await page.evaluate(() => /** @type {any} */ (globalThis).kept.longest);
      assert.ok(longest < BLOCKED, `${name} blocked the page for ${longest} ms`);
      spent.push(`${name} ${((performance.now() - start) / 1000).toFixed(1)} s (${longest.toFixed(0)} ms)`);
      return said;
    };
    const number = lines.length.toLocaleString('en');
    assert.match(await step('read', () => readFiles(page, file)), new RegExp(`^${number} traces read, `));
    const cleaned = await step('clean', () => press(page, 'Clean'));
    assert.match(cleaned, new RegExp(`^Cleaned: ${number} traces changed, `));
    await page.getByLabel('Number or percentage').fill('20');
    assert.match(
      await step('choose', () => press(page, 'Choose')),
      new RegExp(`^20 of ${number} traces chosen; `),
    );
    // What takes long can be stopped, and what was done is undone or shown.
    await page.getByRole('button', { name: 'Clean', exact: true }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    assert.match(await settled(page), /^Cleaning was stopped: the traces are as they were\.$/);
    await page.getByRole('button', { name: 'Choose', exact: true }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    assert.equal(await settled(page), 'That did not work: it was stopped.');
    assert.deepEqual(faults, []);
    await context.close();
    return `${number} traces: ${spent.join(', ')}`;
  });

  await test('garbage is refused with a reason, and does no harm', async () => {
    const { page, faults, context } = await openTry();
    const hostile = makeTrace({
      objective: '<img src=x onerror="console.log(1)"><script>console.log(2)</script>\u202e',
    });
    const noise = Buffer.from(Array.from({ length: 1e6 }, (_, i) => (i * 2654435761) >>> 13));
    const garbage = {
      'empty.jsonl': Buffer.from(''),
      'noise.bin': noise,
      'gzip.gz': Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]),
      'zip.eval': Buffer.concat([Buffer.from('PK\x03\x04'), noise]),
      'utf16.json': Buffer.from('\ufeff{}', 'utf16le').swap16(),
      'deep.json': Buffer.from('['.repeat(1e6)),
      'values.jsonl': Buffer.from('null\n1\n"x"\n[]\n{}\n{"steps":3}\n{"@type":"ReasoningTrace"}\n'),
      'half.jsonl': Buffer.from(JSON.stringify(hostile).slice(0, -9)),
      'hostile.jsonl': Buffer.from(JSON.stringify(hostile)),
    };
    for (const [name, buffer] of Object.entries(garbage)) {
      const said = await readFiles(page, [{ name, mimeType: '', buffer }]);
      assert.match(said, /^\d+ traces? read[.,;]/, name);
    }
    await page.getByText(/^The [\d,]+ traces?$/).click();
    await page.getByLabel('Compare scores by').selectOption('prefix');
    for (const [button, outcome] of /** @type {const} */ ([
      ['Clean', /^(Cleaned: |That did not work: )/],
      ['Choose', /^1 of 1 trace chosen; /],
      ['Save all traces', /saved/],
    ]))
      assert.match(await press(page, button), outcome);
    await page.getByLabel('Number or percentage').fill('many');
    assert.match(await press(page, 'Choose'), /^That did not work: options\.count must be /);
    assert.match(await press(page, 'Read examples'), /^\d+ traces read, /);
    assert.deepEqual(faults, []);
    await context.close();
  });

  await test('a new report leaves nothing of the one before', async () => {
    const { page, context } = await openTry();
    await press(page, 'Read examples');
    const client = await context.newCDPSession(page);
    const held = async () => {
      assert.match(await press(page, 'Choose'), /^3 of 30 traces chosen; /);
      await page.locator('#threshold').fill('0.7');
      await client.send('HeapProfiler.collectGarbage');
      return client.send('Memory.getDOMCounters');
    };
    await held();
    const before = await held();
    for (let i = 0; i < 4; i++) await held();
    const after = await held();
    // A report has more than a thousand nodes and ten listeners.
    assert.ok(after.nodes < before.nodes + 500, `${before.nodes} nodes have become ${after.nodes}`);
    assert.ok(after.jsEventListeners < before.jsEventListeners + 5);
    await context.close();
    return `${after.nodes} nodes, ${after.jsEventListeners} listeners`;
  });
} finally {
  await browser.close();
  close();
  rmSync(scratch, { recursive: true, force: true });
}
