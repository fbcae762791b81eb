// The sides that clean texts: `ours`, `strict`, and `expressions`, the SDK's, run by the JavaScript engine.

import { cleanPii as cleanByExpressions } from '../../__test__/oracle/clean.js';
import { clean as cleanMore, cleanPii } from '../../index.js';
import { makeTrace } from '../workload.mjs';
import { serve, timeBatches } from './serve.mjs';

/** @type {Record<string, (text: string) => object | Promise<object>>} */
const sides = {
  ours: (text) => cleanPii(text),
  strict: (text) => cleanMore(text),
  expressions: (text) => cleanByExpressions(text),
};
const clean = sides[process.argv[2]];

/** A multiple of neither ten nor sixteen, so that no pattern repeats where a text is cut. */
const STRIDE = 7919;

/** @type {Record<string, (length: number) => string[]>} texts by their kind; the length of `steps` counts traces */
const TEXTS = {
  steps: (count) =>
    Array.from({ length: count }, (_, index) => makeTrace({ kind: 'real', index }).steps)
      .flatMap((steps) => steps.map(({ content }) => content ?? ''))
      .filter((content) => content !== ''),
  letters: (length) => ['a'.repeat(length)],
  digits: (length) => ['1234567890'.repeat(length / 10)],
  base64: (length) => [base64(length)],
};

/** @param {number} length */
function base64(length) {
  const bytes = Buffer.alloc((length / 4) * 3);
  for (let index = 0; index < bytes.length; index++) bytes[index] = (index * index * STRIDE) >> 5;
  return bytes.toString('base64');
}

await serve({
  answers: ({ kind, length }) => TEXTS[kind](length).map(clean),
  /** Returns milliseconds for one text. */
  time({ kind, length, milliseconds, batches }) {
    const texts = TEXTS[kind](length);
    const rounds = timeBatches(() => texts.forEach(clean), { milliseconds, batches });
    return rounds.map((round) => round / texts.length);
  },
});
