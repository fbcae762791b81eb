'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { env } = process;

/**
 * Where Chromium and its relatives are usually installed.
 *
 * @type {Partial<Record<NodeJS.Platform, string[]>>}
 */
const PLACES = {
  darwin: ['Google Chrome', 'Chromium', 'Microsoft Edge'].map(
    (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
  ),
  linux: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].flatMap((name) =>
    (env.PATH ?? '').split(path.delimiter).map((directory) => path.join(directory, name)),
  ),
  win32: ['ProgramFiles', 'ProgramFiles(x86)', 'LocalAppData'].flatMap((folder) =>
    ['Google\\Chrome\\Application\\chrome.exe', 'Microsoft\\Edge\\Application\\msedge.exe'].map((name) =>
      path.join(env[folder] ?? '', name),
    ),
  ),
};

/** The program of a Chromium that is installed: that of `CHROME_BIN`, or the first found; undefined if no browser is installed. */
function findChromium() {
  if (env.CHROME_BIN) return env.CHROME_BIN;
  return (PLACES[process.platform] ?? []).find((file) => fs.existsSync(file));
}

/** What keeps a Chromium from talking to anybody by itself. */
const QUIET = [
  ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

/**
 * Starts a Chromium without a window, and with a profile of its own that goes with it.
 *
 * @param {string} executablePath
 */
function launchChromium(executablePath) {
  return require('playwright-core').chromium.launch({ executablePath, args: QUIET });
}

/**
 * Opens an address in a profile of its own; `faults` are all that the page must not do: messages, errors, and requests that are not its own.
 *
 * @param {import('playwright-core').Browser} browser
 * @param {string} address
 * @param {(url: string) => boolean} isOwn
 * @param {import('playwright-core').BrowserContextOptions} options
 */
async function openPage(browser, address, isOwn, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on('console', (message) => faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  context.on('request', (request) => isOwn(request.url()) || faults.push(request.url()));
  await page.goto(address);
  return { page, faults, context };
}

/**
 * What axe-core finds in the part of a page that a selector names. A script that is added would be refused by a page's policy.
 *
 * @param {import('playwright-core').Page} page
 */
async function violationsOf(page, part = 'html') {
  const client = await page.context().newCDPSession(page);
  await client.send('Runtime.evaluate', { expression: require('axe-core').source });
  const run = (/** @type {string} */ selector) => /** @type {any} */ (globalThis).axe.run(selector);
  const { violations } = await page.evaluate(run, part);
  return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes[0].html}`);
}

module.exports = { findChromium, launchChromium, openPage, violationsOf };
