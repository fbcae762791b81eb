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

module.exports = { findChromium, launchChromium };
