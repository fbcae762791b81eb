// The sides that clean texts: `ours`, and `expressions`, the SDK's, run by the JavaScript engine.

import { cleanPii as cleanByExpressions } from '../../__test__/oracle/clean.js';
import { cleanPii } from '../../index.js';
import { makeTrace } from '../workload.mjs';
import { serve, timeBatches } from './serve.mjs';

/** @type {Record<string, (text: string) => object>} */
const sides = {
  ours: (text) => cleanPii(text),
  expressions: (text) => cleanByExpressions(text),
};
const clean = sides[process.argv[2]];

/** @type {Record<string, (length: number) => string[]>} texts by their kind; the length of `steps` counts traces */
const TEXTS = {
  steps: (count) =>
    Array.from({ length: count }, (_, index) => makeTrace({ kind: 'real', index }).steps)
      .flatMap((steps) => steps.map(({ content }) => content ?? ''))
      .filter((content) => content !== ''),
  letters: (length) => ['a'.repeat(length)],
};

serve({
  answers: ({ kind, length }) => TEXTS[kind](length).map(clean),
  /** Returns milliseconds for one text. */
  time({ kind, length, milliseconds, batches }) {
    const texts = TEXTS[kind](length);
    const rounds = timeBatches(() => texts.forEach(clean), { milliseconds, batches });
    return rounds.map((round) => round / texts.length);
  },
});
