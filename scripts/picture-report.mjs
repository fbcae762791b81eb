// Makes docs/report.png, the picture in the README: the page of `kp-score report` about plausible sessions, with the first one open; and,
// where the site is built, docs/try.png, the page to try it with these sessions. It needs an installed Chromium (see
// __test__/support/browser.js).
//
//   node scripts/picture-report.mjs

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { root, temporaryDirectory } from './platform.mjs';
import { runScript } from './setup.mjs';
import { serve, site } from './site.mjs';

const require = createRequire(import.meta.url);
const { findChromium, launchChromium } = require('../__test__/support/browser.js');

const [WIDTH, HEIGHT] = [1280, 860];

/** Ten plausible sessions. Broken bars keep other programs from taking their keys for real ones. */
const SESSIONS = path.join(root, 'scripts', 'picture-sessions.jsonl');

await runScript(async () => {
  const chromium = findChromium();
  if (!chromium) throw new Error('there is no Chromium; install one, or name it by CHROME_BIN');
  const browser = await launchChromium(chromium);
  try {
    const directory = temporaryDirectory('picture');
    const [file, input] = ['report.html', 'sessions.jsonl'].map((name) => path.join(directory, name));
    writeFileSync(input, readFileSync(SESSIONS, 'utf8').replaceAll('¦', ''));
    const command = path.join(root, 'bin', 'kp-score.js');
    const args = ['report', path.basename(input), '--quiet', '-o', file];
    execFileSync(process.execPath, [command, ...args], { cwd: directory });
    const viewport = { width: WIDTH, height: HEIGHT };
    const page = await browser.newPage({ viewport, colorScheme: 'light', timezoneId: 'UTC' });
    await page.goto(pathToFileURL(file).href);
    await page.locator('.list a').first().click();
    await page.locator('.turn').first().waitFor();
    await page
      .locator('.call')
      .nth(2)
      .evaluate((/** @type {any} */ call) => {
        call.open = true;
      });
    await page.screenshot({ path: path.join(root, 'docs', 'report.png') });
    if (!existsSync(path.join(site, 'try'))) return;
    const { address, close } = await serve(site);
    await page.goto(`${address}try/index.html`);
    await page.locator('.choices input').first().setInputFiles(input);
    await page.locator('.list a').first().waitFor();
    await page.locator('body[aria-busy=false]').waitFor();
    await page.screenshot({ path: path.join(root, 'docs', 'try.png') });
    await close();
  } finally {
    await browser.close();
  }
});
