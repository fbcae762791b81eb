import { axisX, barX, tickX } from '@observablehq/plot';

import { DIMENSIONS } from './dimensions.mjs';
import { element, foreign, more, section, table } from './dom.mjs';
import { chart, drawn } from './figure.mjs';
import { decimal, integer, percent, place, roundTogether } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

/** @typedef {Report['best'][number]} Trace */

/** @typedef {Trace['breakdown']} Breakdown */

/**
 * The amount that the rules after the sum add or take, in words; the amount goes before them.
 *
 * @type {Record<string, string>}
 */
const EFFECTS = {
  'recovery-bonus': 'for recovering from more than two errors',
  'single-tool-penalty': 'for using only one tool',
};

/**
 * The effect of the other rules, which replace the sum; the result goes after them.
 *
 * @type {Record<string, string>}
 */
const REPLACEMENTS = { 'single-thought': ', but a single thought scores', clamp: ', brought back to' };

/**
 * The amount that is added or taken; an amount that is rounded to 0 is left out.
 *
 * @param {number} value
 */
function signed(value) {
  const text = decimal(value);
  return text.startsWith('−') ? `−\u00a0${text.slice(1)}` : `+\u00a0${text}`;
}

/**
 * Returns how a score comes about, as one line of arithmetic, in rounded numbers that add up.
 *
 * @param {Pick<Breakdown, 'contributions' | 'overrides' | 'score'>} breakdown
 */
export function sumInWords({ contributions, overrides, score }) {
  /** @type {Array<{ value: number, words: string }>} */
  const terms = DIMENSIONS.map(({ key, noun }) => ({ value: contributions[key], words: noun }));
  const replaced = overrides.findIndex(({ rule }) => !Object.hasOwn(EFFECTS, rule));
  const effects = replaced < 0 ? overrides : overrides.slice(0, replaced);
  for (const { rule, before, after } of effects) terms.push({ value: after - before, words: EFFECTS[rule] });
  const rounded = roundTogether(
    terms.map(({ value }) => value),
    2,
  );
  const sum = terms.map(({ words }, i) => {
    return `${i === 0 ? decimal(rounded[i]) : ` ${signed(rounded[i])}`} ${words}`;
  });
  const total = decimal(rounded.reduce((a, b) => a + b, 0));
  if (replaced < 0) return `${sum.join('')} =\u00a0${decimal(score)}`;
  // Rules after one that replaces the sum are shown as steps.
  const steps = overrides.slice(replaced).map(({ rule, before, after }) => {
    if (Object.hasOwn(EFFECTS, rule)) {
      return `, ${signed(after - before)} ${EFFECTS[rule]} = ${decimal(after)}`;
    }
    return `${REPLACEMENTS[rule] ?? `, after the rule ${rule}`} ${decimal(after)}`;
  });
  return `${sum.join('')} =\u00a0${total}${steps.join('')}`;
}

/**
 * The contributions end to end, the effect of the overrides, and the score.
 *
 * @param {Breakdown} breakdown
 * @param {number} width
 */
function contributionBar(breakdown, width) {
  const { contributions, composite, overrides, score } = breakdown;
  let end = 0;
  const parts = DIMENSIONS.map(({ key, colour }) => {
    const start = end;
    end += contributions[key];
    return { start, end, colour };
  });
  const effects = overrides.map(({ before, after }) => ({
    start: Math.min(before, after),
    end: Math.max(before, after),
  }));
  return chart(`Contributions to the score: ${sumInWords(breakdown)}.`, {
    width,
    height: 34,
    margin: 0,
    marginLeft: 1,
    marginRight: 1,
    marginBottom: 14,
    x: { domain: [0, Math.max(1, composite)] },
    marks: [
      axisX([0, 0.25, 0.5, 0.75, 1], {
        label: null,
        tickSize: 0,
        tickPadding: 2,
        fontSize: 10,
        tickFormat: String,
        textAnchor: 'middle',
      }),
      barX([1], { x1: 0, x2: 1, fill: 'var(--line)', fillOpacity: 0.6, insetTop: 4, insetBottom: 4 }),
      barX(parts, { x1: 'start', x2: 'end', fill: 'colour', insetTop: 4, insetBottom: 4, insetRight: 0.75 }),
      barX(effects, {
        x1: 'start',
        x2: 'end',
        fill: 'var(--paper)',
        fillOpacity: 0.45,
        stroke: 'var(--ink)',
        strokeDasharray: '3 2',
        insetTop: 4,
        insetBottom: 4,
      }),
      tickX([score], { x: Number, stroke: 'var(--ink)', strokeWidth: 2.5 }),
    ],
  });
}

/** @param {Breakdown} breakdown */
function nearestInWords({ noveltyBasis, dimensions, nearest, truncated }) {
  const rest = truncated ? ' Only the beginning of its text was compared.' : '';
  if (noveltyBasis === 'no-embedder')
    return ['Not compared with others: novelty is 0.5 without an embedder.'];
  if (noveltyBasis === 'given')
    return [`Scored before: its novelty is that of then, ${decimal(dimensions.novelty)}.`];
  if (nearest === null) return [`Compared with nothing: the memory was empty, where novelty is 0.5.${rest}`];
  return [
    'Nearest remembered: ',
    nearest.label === null ? 'a trace without an id' : foreign(nearest.label, { class: 'mono' }),
    `, similarity ${decimal(nearest.similarity)}${partsInWords(nearest)}.${rest}`,
  ];
}

/** @param {NonNullable<Breakdown['nearest']>} nearest */
function partsInWords({ lexical, contained, embedded }) {
  if (typeof lexical !== 'number' || typeof contained !== 'number') return '';
  const digest = typeof embedded !== 'number' ? '' : `, digest ${decimal(embedded)}`;
  return ` (words ${decimal(lexical)}${digest}; ${percent(contained, 1)} of the words, by weight, are in it)`;
}

/**
 * Returns the words that weigh most in the similarity; empty if no words are compared.
 *
 * @param {Breakdown['nearest']} nearest
 */
function wordsOf(nearest) {
  /** @type {Array<[title: string, words: import('../index.js').ExplainedWord[] | null | undefined]>} */
  const lists = [
    ['Shared: ', nearest?.sharedWords],
    ['New: ', nearest?.newWords],
  ];
  return lists.map(([title, words]) =>
    !words?.length
      ? null
      : element(
          'p.meta',
          title,
          ...words.flatMap(({ word }, index) => [index === 0 ? '' : ', ', foreign(word, { class: 'mono' })]),
        ),
  );
}

/** @param {Breakdown} breakdown */
function figuresTable({ dimensions, weights, contributions, profile }) {
  return table(
    `Weights of the profile ${profile ?? '(none)'}`,
    [
      { title: 'Dimension', cell: ({ title }) => title },
      { title: 'Value', number: true, cell: ({ key }) => decimal(dimensions[key], 4) },
      { title: 'Weight', number: true, cell: ({ key }) => decimal(weights[key], 2) },
      { title: 'Contribution', number: true, cell: ({ key }) => decimal(contributions[key], 4) },
    ],
    DIMENSIONS,
  );
}

/**
 * @param {Trace} trace
 * @param {Report} report
 */
function traceItem(trace, report) {
  const { breakdown, domain, excerpt, id, success } = trace;
  return element(
    'li.trace',
    element(
      'div.head',
      element('span.score', decimal(breakdown.score)),
      foreign(excerpt || id || 'A trace without an objective', { class: 'excerpt' }),
    ),
    drawn({}, (width) => contributionBar(breakdown, width)).frame,
    element('p.sum', sumInWords(breakdown)),
    element(
      'p.meta',
      ...(domain === null ? [] : [foreign(domain), ' · ']),
      success ? 'succeeded · ' : 'failed · ',
      foreign(place(trace, report.sourceCount)),
      ...(id === null ? [] : [' · ', foreign(id, { class: 'mono' })]),
    ),
    element('p.meta', ...nearestInWords(breakdown)),
    ...wordsOf(breakdown.nearest),
    more('Values and weights', figuresTable(breakdown)),
  );
}

/** @param {Report} report */
export function tracesSection(report) {
  const { best, worst, count: scored } = report;
  if (scored === 0) return null;
  /**
   * @param {string} title
   * @param {Trace[]} traces
   */
  const list = (title, traces) =>
    element(
      'div',
      element('h3', title),
      element(
        'ol',
        traces.map((trace) => traceItem(trace, report)),
      ),
    );
  const legend = element(
    'p.legend',
    DIMENSIONS.map(({ title, colour }) =>
      element('span', element('span.swatch', { style: `--colour: ${colour}` }), title),
    ),
    element('span.soft', 'Dashed: what a rule adds or takes. Upright line: the score.'),
  );
  const [title, firstTitle] = titlesOf(scored, best, worst);
  return section(
    title,
    legend,
    element(
      'div.columns',
      list(firstTitle, best),
      worst.length > 0 && list(`Worst ${worst.length}, lowest first`, worst),
    ),
  );
}

/**
 * @param {number} scored
 * @param {Trace[]} best
 * @param {Trace[]} worst
 */
function titlesOf(scored, best, worst) {
  if (worst.length > 0) return ['Best and worst, explained', `Best ${best.length}`];
  if (scored === 1) return ['The trace, explained', 'One trace'];
  if (scored === best.length) return ['The traces, explained', `All ${scored}, best first`];
  // Where the worst are the best.
  return [
    'A score, explained',
    `The first ${best.length} of ${integer(scored)} traces, which all score the same`,
  ];
}
