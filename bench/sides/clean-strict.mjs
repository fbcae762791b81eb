// `cleanPii` with `strict`, and how good it is: which planted secrets it finds, and which harmless lines it changes.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { HARMLESS } from '../../__test__/support/harmless-lines.js';
import { readTraces, root, sharedTraces } from '../../__test__/support/paths.js';
import { KEYS, SURROUNDINGS, TOLD_BY_NAMES } from '../../__test__/support/planted-secrets.js';
import { cleanPii } from '../../index.js';
import { serveCleaner } from './cleaner.mjs';

const clean = (/** @type {string} */ text) => cleanPii(text, { strict: true });

/** Folders of programs without secrets. The cleaner's own folders are full of examples. */
const SOURCES = ['lib', 'cli', 'scripts', 'report', 'src', 'crates'];

/**
 * Lines that hold no secret, by where they are from.
 *
 * @type {Record<string, () => string[]>}
 */
const LINES = {
  crafted: () => HARMLESS,
  sources: () => [
    ...SOURCES.flatMap(linesOfFolder),
    ...linesOf('package-lock.json'),
    ...linesOf('Cargo.lock'),
  ],
  traces: () =>
    readTraces(sharedTraces).flatMap((trace) => [...stringsOf(trace)].flatMap((text) => text.split('\n'))),
};

await serveCleaner(clean, {
  /** Returns how many secrets are planted, and of how many nothing is left. */
  recall() {
    const planted = [
      ...KEYS.flatMap(([, secret]) =>
        SURROUNDINGS.map(([, make]) => ({ text: make(secret), secrets: [secret] })),
      ),
      ...TOLD_BY_NAMES.map(([, text, secrets]) => ({ text, secrets: [secrets].flat() })),
    ];
    const found = planted.filter(({ text, secrets }) => {
      const { cleaned } = clean(text);
      return !secrets.some((secret) => cleaned.includes(secret));
    });
    return { planted: planted.length, found: found.length };
  },

  /**
   * Returns how many lines there are, and in how many `strict` replaces more than the SDK does.
   *
   * @param {{ from: string }} lines
   */
  falseAlarms({ from }) {
    const lines = LINES[from]();
    const changed = lines.filter((line) => clean(line).cleaned !== cleanPii(line).cleaned);
    return { lines: lines.length, changed: changed.length };
  },
});

/**
 * @param {string} folder
 * @returns {string[]}
 */
function linesOfFolder(folder) {
  const entries = readdirSync(path.join(root, folder), { withFileTypes: true });
  return entries.flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory())
      return entry.name === 'clean' || entry.name === 'target' ? [] : linesOfFolder(file);
    return /\.(?:js|mjs|ts|rs|css|html)$/.test(entry.name) ? linesOf(file) : [];
  });
}

/** @param {string} file */
function linesOf(file) {
  return readFileSync(path.join(root, file), 'utf8').split('\n');
}

/**
 * @param {unknown} value
 * @returns {Generator<string>}
 */
function* stringsOf(value) {
  if (typeof value === 'string') yield value;
  else if (value !== null && typeof value === 'object')
    for (const each of Object.values(value)) yield* stringsOf(each);
}
