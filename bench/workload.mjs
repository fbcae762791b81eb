// The traces of the benchmarks. Every side generates them from a few words, because reading megabytes from a pipe would be work
// for that side.

import fs from 'node:fs';
import path from 'node:path';

import { textOf } from '../__test__/oracle/score.js';
import { makeTrace as makeTestTrace } from '../__test__/support/make-trace.js';
import { readTraces, root, sharedTraces } from '../__test__/support/paths.js';

/** @typedef {import('../index.js').ReasoningTrace} ReasoningTrace */

/**
 * The parameters of {@link makeTrace}.
 *
 * @typedef {object} Description
 * @property {'real' | 'long' | 'grown' | 'short' | 'sentence'} kind
 * @property {number} [index]
 * @property {number} [megabytes]
 * @property {number} [cut]
 * @property {number | string} [run]
 */

/** The smallest text that certainly has more than 512 tokens. */
const LONG_TEXT = 5000;

const examples = path.join(root, 'examples', 'traces.jsonl');
const real = readTraces(fs.existsSync(sharedTraces) ? sharedTraces : examples);
const long = real.filter((trace) => textOf(trace).length >= LONG_TEXT);
const sentence = makeTestTrace({ objective: 'Find out why the invoice was not sent', steps: [] });
/** @type {Record<Description['kind'], ReasoningTrace[]>} */
const traces = { real, long, grown: long, short: [makeShort()], sentence: [sentence] };

/**
 * A trace:
 *
 * - `{ kind: 'real', index }`: one of the real ones, in their order
 * - `{ kind: 'long', index }`: a real one of more than 512 tokens
 * - `{ kind: 'grown', megabytes, cut }`: a long one whose steps say so much more; `cut` shortens each step to
 *   that many characters, for a side that would read all of it
 * - `{ kind: 'short' }`: five steps of a sentence or two
 * - `{ kind: 'sentence' }`: an objective of some 15 tokens, and no steps
 *
 * `run` goes into the text: another run is another text, so that no side can remember the answer.
 *
 * @param {Description} description
 * @returns {ReasoningTrace}
 */
export function makeTrace({ kind, index = 0, megabytes, cut, run }) {
  const trace = structuredClone(traces[kind][index % traces[kind].length]);
  if (run !== undefined) trace.task.objective = `Run ${run}: ${trace.task.objective}`;
  if (kind === 'grown') grow(trace, (megabytes ?? 0) * 1e6, cut);
  // Strings as they come out of a file, not as the pieces that they were put together from.
  return JSON.parse(JSON.stringify(trace));
}

/**
 * @param {ReasoningTrace} trace
 * @param {number} characters
 * @param {number | undefined} cut
 */
function grow(trace, characters, cut) {
  const times = Math.ceil(characters / textOf(trace).length);
  for (const step of trace.steps) step.content = step.content?.repeat(times).slice(0, cut);
}

/** About fifty tokens. */
function makeShort() {
  /** @type {Array<Partial<import('../index.js').ReasoningTrace['steps'][number]>>} */
  const steps = [
    { type: 'thought', content: 'The upload fails only for large files.' },
    { type: 'tool_call', content: 'Read the proxy settings', tool: { name: 'read_file' } },
    { type: 'observation', content: 'The body size is limited to 1 MB.' },
    { type: 'tool_call', content: 'Raise the limit to 20 MB', tool: { name: 'edit_file' } },
    { type: 'observation', content: 'The upload of 12 MB succeeds now.' },
  ];
  return makeTestTrace({ objective: 'Find out why customers cannot upload their invoices', steps });
}
