// `cleanPii` against the SDK's regular expressions, and its time with `strict`. `secrets.mjs` measures recall and false alarms.

import { isDeepStrictEqual } from 'node:util';

import { atMost, below, bounded, comparison, summarize } from '../measure.mjs';
import { interleave, Side, withSides } from '../side.mjs';

const AGAINST = 'regular expressions';

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {string} kind
 * @property {number} length of the text, or for steps how many traces they are of
 * @property {'µs' | 'ms'} unit
 * @property {import('../measure.mjs').Target} target
 * @property {boolean} [isAlone] the expressions would take minutes
 */

/** @type {Case[]} */
const cases = [
  {
    name: 'clean the steps of real traces, each',
    kind: 'steps',
    length: 20,
    unit: 'µs',
    target: atMost(1, 'x'),
  },
  {
    name: 'clean 80,000 letters without an @',
    kind: 'letters',
    length: 80_000,
    unit: 'ms',
    target: atMost(0.01, 'x'),
  },
  {
    name: 'clean 1 MB of Base64',
    kind: 'base64',
    length: 1_000_000,
    unit: 'ms',
    target: below(20, ' ms'),
    isAlone: true,
  },
  {
    name: 'clean 1 MB of digits',
    kind: 'digits',
    length: 1_000_000,
    unit: 'ms',
    target: below(20, ' ms'),
    isAlone: true,
  },
];

const PER_MS = { µs: 1000, ms: 1 };

const STRICT = 'strict: ';

/**
 * Texts of a megabyte that are cleaned with `strict`, by the names of their rows.
 *
 * @type {Record<string, string>}
 */
const STRICT_KINDS = {
  [`${STRICT}clean 1 MB of prose`]: 'prose',
  [`${STRICT}clean 1 MB of JSON`]: 'json',
  [`${STRICT}clean 1 MB of an environment`]: 'environment',
  [`${STRICT}clean 1 MB of headers in a line`]: 'headers',
  [`${STRICT}clean 1 MB of first lines of keys`]: 'first lines of keys',
  [`${STRICT}clean 1 MB of Base64`]: 'base64',
  [`${STRICT}clean 1 MB of digits`]: 'digits',
};

/** @param {import('../run.mjs').Bench} bench */
export async function clean(bench) {
  return [...(await compared(bench)), ...(await strict(bench))];
}

/** @param {import('../run.mjs').Bench} bench */
async function strict(bench) {
  const names = Object.keys(STRICT_KINDS).filter(bench.wants);
  if (names.length === 0) return [];
  bench.say('cleaning with strict');
  const side = new Side('cleanPii, strict', 'clean-strict.mjs');
  return withSides([side], async () => {
    const rows = [];
    for (const name of names) rows.push(await measureStrict(side, name, bench));
    return rows;
  });
}

/**
 * @param {Side} side
 * @param {string} name
 * @param {import('../run.mjs').Bench} bench
 */
async function measureStrict(side, name, bench) {
  const work = { kind: STRICT_KINDS[name], length: 1_000_000, milliseconds: 1, batches: 1 };
  const samples = await interleave([side], bench.rounds(20, 3), () => side.ask('time', work));
  return bounded({ name, unit: 'ms', ours: summarize(samples[side.name]), target: below(50, ' ms') });
}

/** @param {import('../run.mjs').Bench} bench */
async function compared(bench) {
  const wanted = cases.filter(({ name }) => bench.wants(`${name} ${AGAINST}`));
  if (wanted.length === 0) return [];
  bench.say('cleaning');
  const ours = new Side('cleanPii', 'clean-ours.mjs');
  const theirs = new Side(AGAINST, 'clean-expressions.mjs');
  return withSides([ours, theirs], async () => {
    const rows = [];
    for (const each of wanted) rows.push(await measure(ours, theirs, each, bench));
    return rows;
  });
}

/**
 * @param {Side} ours
 * @param {Side} theirs
 * @param {Case} case
 * @param {import('../run.mjs').Bench} bench
 */
async function measure(ours, theirs, { name, kind, length, unit, target, isAlone = false }, bench) {
  const texts = { kind, length };
  const sides = isAlone ? [ours] : [ours, theirs];
  const [answer, other] = await Promise.all(sides.map((side) => side.ask('answers', texts)));
  if (!isAlone && !isDeepStrictEqual(answer, other)) throw new Error(`the sides do not agree: ${name}`);
  // One call of the expressions takes seconds for some.
  const work = kind === 'steps' ? { milliseconds: 50 } : { milliseconds: 1, batches: 1 };
  const samples = await interleave(
    sides,
    kind === 'letters' ? bench.rounds(3, 1) : bench.rounds(20, 3),
    async (side) => {
      const milliseconds = await side.ask('time', { ...texts, ...work });
      return milliseconds.map((/** @type {number} */ each) => each * PER_MS[unit]);
    },
  );
  const own = samples[ours.name];
  if (isAlone) return bounded({ name, unit, ours: summarize(own), target });
  return comparison({ name, unit, ours: own, against: AGAINST, theirs: samples[theirs.name], target });
}
