// The tasks for every side that cleans texts.

import { makeTrace } from '../workload.mjs';
import { serve } from './serve.mjs';

const BATCHES = 4;

/** A multiple of neither ten nor sixteen, so that no pattern repeats where a text is cut. */
const STRIDE = 7919;

/** @type {Record<string, (length: number) => string[]>} texts by their kind, as long as they are to be */
const TEXTS = {
  steps: (count) =>
    Array.from({ length: count }, (_, index) => makeTrace({ kind: 'real', index }).steps)
      .flatMap((steps) => steps.map(({ content }) => content ?? ''))
      .filter((content) => content !== ''),
  letters: (length) => ['a'.repeat(length)],
  digits: (length) => ['1234567890'.repeat(length / 10)],
  base64: (length) => [base64(length)],
  prose: (length) => repeated('The quick brown fox jumps over the lazy dog, and then it sleeps. ', length),
  environment: (length) =>
    repeated('DB_HOST=db.internal\nDB_PASSWORD=hunter2\nPATH=/usr/bin:/bin\nLANG=C\n', length),
  headers: (length) => repeated('authorization:Basic a1 ', length),
  'first lines of keys': (length) => repeated('-----BEGIN RSA PRIVATE KEY-----token ', length),
  json: (length) => repeated('{"key": "value", "id": 12345, "name": "bob", "token": "x"},', length),
};

/**
 * @param {string} text
 * @param {number} length
 */
const repeated = (text, length) => [text.repeat(length / text.length)];

/** @param {number} length */
function base64(length) {
  const bytes = Buffer.alloc((length / 4) * 3);
  for (let index = 0; index < bytes.length; index++) bytes[index] = (index * index * STRIDE) >> 5;
  return bytes.toString('base64');
}

/** @typedef {{ kind: string, length: number }} Texts */

/** @param {(text: string) => { cleaned: string, redactions: object[] }} clean */
export function serveCleaner(clean) {
  return serve({
    /** @param {Texts} texts */
    answers: ({ kind, length }) => TEXTS[kind](length).map((text) => clean(text)),

    /**
     * Milliseconds for a text, in batches of `milliseconds` each; `batches` is how many.
     *
     * @param {Texts & { milliseconds: number, batches?: number }} work
     */
    time({ kind, length, milliseconds, batches = BATCHES }) {
      const texts = TEXTS[kind](length);
      const rounds = Math.max(1, Math.round(milliseconds / timeRounds(texts, 1)));
      return Array.from({ length: batches }, () => timeRounds(texts, rounds) / texts.length);
    },
  });

  /**
   * @param {string[]} texts
   * @param {number} rounds
   */
  function timeRounds(texts, rounds) {
    let found = 0;
    const start = performance.now();
    for (let round = 0; round < rounds; round++)
      for (const text of texts) found += clean(text).redactions.length;
    const elapsed = performance.now() - start;
    if (Number.isNaN(found)) throw new Error('the redactions have no number');
    return elapsed / rounds;
  }
}
