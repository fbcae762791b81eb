// The site in Chromium: the documentation, and the page to try the package.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { temporaryDirectory } from '../../scripts/platform.mjs';
import { serve, site } from '../../scripts/site.mjs';
import { test } from '../support/steps.mjs';

const require = createRequire(import.meta.url);
const { findChromium, launchChromium, openPage, violationsOf } = require('../support/browser.js');
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

const chromium = findChromium();
if (!chromium) {
  console.error('there is no Chromium: Debian has the package chromium, and CHROME_BIN may name another');
  process.exit(1);
}
const { address, close } = await serve(site);
const browser = await launchChromium(chromium);
const scratch = temporaryDirectory('site');

/** @param {string} place @param {import('playwright-core').BrowserContextOptions} [options] */
async function open(place, options = {}) {
  const isOwn = (/** @type {string} */ url) => url.replace(/^blob:/, '').startsWith(address);
  const own = { viewport: { width: 1000, height: 1400 }, ...options };
  const opened = await openPage(browser, address + place, isOwn, own);
  opened.context.setDefaultTimeout(PATIENCE);
  return opened;
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
  await page.locator('.choices input').first().setInputFiles(files);
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
  assert.deepEqual(await violationsOf(page, part), [], where);
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
      assert.match(await press(page, 'Read examples'), /^30 sessions read\.$/);
      await checkPage(page, 'the desk');
      await page.locator('.list a').first().click();
      await page.locator('.turn').first().waitFor();
      await checkPage(page, 'a session');
      assert.deepEqual(faults, []);
      await context.close();
    });
  }

  await test('recordings of rows, of a session and in an archive are read and shown', async () => {
    for (const [name, agent] of [
      ['chat.jsonl', 'openai-chat'],
      ['session.jsonl', 'claude-code'],
      ['inspect.eval', 'inspect'],
    ]) {
      const { page, faults, context } = await openTry();
      assert.match(await readFiles(page, path.join(formats, name)), /^\d+ sessions? read\.$/, name);
      const about = await page.locator('.list .meta').first().textContent();
      assert.ok(about?.includes(agent === 'claude-code' ? 'Claude Code' : agent), about ?? '');
      assert.deepEqual(faults, []);
      await context.close();
    }
  });

  await test("an agent's folder is read with its sub-agents, and what is no session is counted", async () => {
    const folder = path.join(scratch, '.claude');
    const projects = path.join(folder, 'projects', '-home-maja-shop');
    mkdirSync(projects, { recursive: true });
    const session = readFileSync(path.join(formats, 'session.jsonl'), 'utf8');
    writeFileSync(path.join(projects, 'a.jsonl'), session);
    writeFileSync(path.join(projects, 'copy.jsonl'), session);
    writeFileSync(path.join(folder, 'settings.json'), '{"theme":"dark"}');
    writeFileSync(path.join(folder, 'picture.png'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]));
    const { page, faults, context } = await openTry();
    await page.getByLabel('Open a folder').setInputFiles(folder);
    const [, number] =
      /^(\d+) sessions? read; 2 files beside the sessions not read\.$/.exec(await settled(page)) ?? [];
    assert.equal(Number(number), new Set(session.match(/"sessionId":"[^"]+"/g)).size);
    assert.deepEqual(faults, []);
    await context.close();
  });

  await test('by keyboard alone, sessions are read, decided about and saved; no key is in the page, and nothing struck out in the zip', async () => {
    const { page, faults, context } = await openTry();
    const key = `ghp_${'a1B2c3D4e5F6g7H8i9'.repeat(2)}`;
    const secret = makeTrace({ objective: `Use ${key} for bob@example.com` });
    await readFiles(page, {
      name: 'secret.jsonl',
      mimeType: '',
      buffer: Buffer.from(`${JSON.stringify(secret)}\n`),
    });
    await page.locator('.list a').first().click();
    await page.locator('.turn mark').first().waitFor();
    const html = await page.content();
    assert.ok(!html.includes(key) && !html.includes('bob@example.com'));
    // Nothing of it is left for the next reading.
    await page.goto(`${address}try/index.html`);
    await page.reload();
    await tabTo(page, page.getByRole('button', { name: 'Read examples' }));
    await page.keyboard.press('Enter');
    assert.equal(await settled(page), '30 sessions read.');
    await tabTo(page, page.locator('.list a[tabindex="0"]'));
    await page.keyboard.press('Enter');
    await page.locator('.turn').first().waitFor();
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.locator('.turn').first().waitFor();
    const words = await page.evaluate(() => {
      const text = /** @type {Text} */ (document.querySelector('.turn.user bdi')?.firstChild);
      getSelection()?.setBaseAndExtent(text, 0, text, text.data.indexOf(' ', 8));
      return getSelection()?.toString() ?? '';
    });
    await page.keyboard.press('s');
    const download = page.waitForEvent('download');
    await tabTo(page, page.getByRole('button', { name: 'Save the set' }));
    await page.keyboard.press('Enter');
    const [, count] =
      /^(\d+) sessions saved/.exec(
        (await settled(page)) || (await page.locator('#state').textContent()) || '',
      ) ?? [];
    const saved = await download;
    assert.equal(saved.suggestedFilename(), 'shared.zip');
    const unpacked = path.join(scratch, 'unpacked');
    execFileSync('python3', ['-m', 'zipfile', '-e', await saved.path(), unpacked]);
    const sessions = sessionsIn(unpacked);
    assert.equal(sessions.length, Number(count));
    assert.equal(sessions.length, 19);
    for (const session of sessions) assert.ok(!session.includes(words), session.slice(0, 200));
    assert.ok(sessions.some((session) => session.includes('[REDACTED:struck')));
    assert.deepEqual(faults, []);
    await context.close();
  });

  await test(`the page stays responsive with ${MEGABYTES} MB of sessions, and can be stopped`, async () => {
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
    await page.locator('.choices input').first().setInputFiles(file);
    await page.getByRole('button', { name: 'Stop' }).click();
    assert.equal(await settled(page), 'That did not work: it was stopped.');
    const start = performance.now();
    await page.evaluate(() =>
      Object.assign(/** @type {any} */ (globalThis).kept, { longest: 0, last: performance.now() }),
    );
    const number = lines.length.toLocaleString('en');
    assert.equal(await readFiles(page, file), `${number} sessions read.`);
    const longest = await page.evaluate(() => /** @type {any} */ (globalThis).kept.longest);
    assert.ok(longest < BLOCKED, `the page was blocked for ${longest} ms`);
    assert.deepEqual(faults, []);
    await context.close();
    return `${number} sessions in ${((performance.now() - start) / 1000).toFixed(1)} s, blocked for ${longest.toFixed(0)} ms`;
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
    const files = Object.entries(garbage).map(([name, buffer]) => ({ name, mimeType: '', buffer }));
    assert.match(await readFiles(page, files), /^1 session read; \d files beside the sessions not read\.$/);
    assert.equal(await page.locator('.list a').count(), 1);
    await page.reload();
    assert.equal(await readFiles(page, files.slice(0, 1)), 'There is no session in these files.');
    assert.deepEqual(faults, []);
    await context.close();
  });
} finally {
  await browser.close();
  close();
}
