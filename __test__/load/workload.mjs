// The traces of the load, and what is known of their scores.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { scoreOf } = require('../oracle/score.js');
const { makeTrace } = require('../support/make-trace.js');

const WORDS = 'The agent reads a log, retries the call and writes what it found into the ticket'.split(' ');

const MEGABYTES = [1, 10];
/** More than the 512 tokens that count. */
const long = MEGABYTES.map((_, index) => words(index, 600));
/**
 * Texts of many sizes, which come again and again: each is among the last thousand of all callers, so its novelty
 * is 0.
 */
const known = [...Array.from({ length: 30 }, (_, index) => words(index, 1 + ((index * 7) % 60))), ...long];
/** Texts of megabytes that begin like the long ones. */
const huge = MEGABYTES.map((size, index) => {
  const filler = Buffer.alloc(size * 2 ** 20, ' and so on').toString('latin1');
  // Through bytes, so that it is one buffer, as a string from a socket is, and not a tree of parts.
  return Buffer.from(long[index] + filler).toString('latin1');
});

/** So often a text is new, and so often it is of megabytes. */
const NEW_EVERY = 25;
const HUGE_EVERY = 250;

/** So often a call is aborted besides. */
const ABORTED_EVERY = 20;

/** Whether another call is made after it, and aborted. */
export function isAborted(index) {
  return index % ABORTED_EVERY === 3;
}

function words(salt, count) {
  return Array.from({ length: count }, (_, index) => WORDS[(index * (salt + 1) + salt) % WORDS.length]).join(
    ' ',
  );
}

/** A trace of every text that comes again. */
export function* primer() {
  for (const objective of known) yield makeTrace({ objective, steps: [] });
}

/** Trace number `index` of `caller`. The confidence, which is part of the score, tells it from its neighbours. */
export function traceOf(caller, index) {
  const steps = [{ type: 'observation' }, { type: 'tool_call', tool: { name: 'a' } }, { type: 'thought' }];
  return makeTrace({ objective: textOf(caller, index), steps, confidence: (index % 997) / 997 });
}

function textOf(caller, index) {
  if (isNew(index)) return `Task ${index} of caller ${caller}`;
  if (index % HUGE_EVERY === 1) return huge[(index / HUGE_EVERY) & 1];
  return known[index % known.length];
}

function isNew(index) {
  return index % NEW_EVERY === 0;
}

/** What is wrong with the `score` of that trace, or null. */
export function faultOfScore(caller, index, score) {
  const trace = traceOf(caller, index);
  // Nothing is further away than its opposite.
  const [least, most] = isNew(index) ? [0, 2] : [0, 0];
  if (score >= scoreOf(trace, least) - 1e-6 && score <= scoreOf(trace, most) + 1e-6) return null;
  return `caller ${caller}, trace ${index}: a score of ${score}, expected ${scoreOf(trace, least)} to ${scoreOf(trace, most)}`;
}
