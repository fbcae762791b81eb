import { axisY, pointerX, rectY, ruleX, ruleY, text, tip } from '@observablehq/plot';

import { element, finding, more, section, table } from './dom.mjs';
import { BOTTOM, chart, drawn, figureWithSlider, heightOf, LEFT, RIGHT, slider } from './figure.mjs';
import { count, decimal, integer, percent, plain, short } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

/** @typedef {{ from: number, to: number, count: number }} Bar */

/**
 * Returns the bins, several as one; the last bar includes the value 1.
 *
 * @param {Report['scoreBins']} scoreBins
 * @param {number} hundredths
 */
function barsOf({ bins, filled }, hundredths) {
  const perBar = (bins * hundredths) / 100;
  const bars = new Map();
  for (const [bin, number] of filled) {
    const bar = Math.floor(Math.min(bin, bins - 1) / perBar);
    bars.set(bar, (bars.get(bar) ?? 0) + number);
  }
  return [...bars]
    .sort(([a], [b]) => a - b)
    .map(([bar, number]) => {
      return { from: (bar * hundredths) / 100, to: ((bar + 1) * hundredths) / 100, count: number };
    });
}

/**
 * @param {Report} report
 * @param {import('./threshold.mjs').Threshold} threshold
 * @param {number} width
 */
function histogram(report, threshold, width) {
  const bar = threshold.value;
  // In hundredths: the fewer the traces, the wider the bars.
  const step = report.count < 2000 ? 5 : width < 600 || report.count < 20_000 ? 2 : 1;
  const bars = barsOf(report.scoreBins, step);
  const dropped = bars.filter(({ from }) => from < bar).map((b) => ({ ...b, to: Math.min(b.to, bar) }));
  const kept = bars.filter(({ to }) => to > bar).map((b) => ({ ...b, from: Math.max(b.from, bar) }));
  const sides = { x1: 'from', x2: 'to', y1: 0, y2: 'count', insetLeft: 0.5, insetRight: 0.5 };
  const highest = Math.max(1, ...bars.map((b) => b.count));
  const ticks = wholeTicks(highest);
  const label = `Histogram of ${count(report.count, 'score')}; ${integer(threshold.kept)} of them are ${plain(bar)} or more.`;
  return chart(label, {
    width,
    height: heightOf(width),
    marginLeft: LEFT,
    marginRight: RIGHT,
    marginTop: 32,
    marginBottom: BOTTOM,
    x: { domain: [0, 1], label: null, ticks: width < 500 ? 5 : 10 },
    y: { domain: [0, Math.max(highest, ticks[ticks.length - 1])] },
    marks: [
      ruleY(ticks, { stroke: 'var(--line)' }),
      axisY(ticks, {
        label: '↑ traces',
        labelAnchor: 'top',
        labelOffset: LEFT - 4,
        tickFormat: short,
        tickSize: 0,
      }),
      rectY(dropped, { ...sides, fill: 'var(--dropped)' }),
      rectY(kept, { ...sides, fill: 'var(--kept)' }),
      ruleY([0], { stroke: 'var(--faint)' }),
      ruleX([bar], { stroke: 'var(--ink)', strokeWidth: 1.5 }),
      text(threshold.isSet ? [bar] : [], {
        x: Number,
        frameAnchor: 'top',
        dy: -20,
        textAnchor: bar < 0.12 ? 'start' : bar > 0.88 ? 'end' : 'middle',
        text: (/** @type {number} */ value) => `dropped ← ${plain(value)} → kept`,
        fill: 'var(--ink)',
      }),
      tip(
        bars,
        pointerX({
          x1: 'from',
          x2: 'to',
          y: 'count',
          title: (/** @type {Bar} */ b) =>
            `${rangeOf(b)}\n${count(b.count, 'trace')}, ${percent(b.count, report.count)}`,
        }),
      ),
    ],
  });
}

/**
 * About four whole numbers up to the highest count.
 *
 * @param {number} highest
 */
function wholeTicks(highest) {
  const power = 10 ** Math.floor(Math.log10(highest / 4));
  // A factor of 10 always suffices: the highest count is less than 40 times the power.
  const factor = [1, 2, 5].find((few) => highest / (power * few) <= 5) ?? 10;
  const step = Math.max(1, power * factor);
  return Array.from({ length: Math.ceil(highest / step) }, (_, i) => (i + 1) * step);
}

/** @param {Bar} bar */
const rangeOf = ({ from, to }) => `${decimal(from)}–${decimal(to)}`;

/**
 * @param {Report} report
 * @param {import('./threshold.mjs').Threshold} threshold
 */
export function scoresSection(report, threshold) {
  if (report.scores === null) return null;
  const { frame, redraw } = drawn((width) => histogram(report, threshold, width));
  const input = slider('threshold', [0, 1, 0.01], threshold.initial, threshold.set);
  const verdict = element('p.verdict');
  const back = element('button', {
    type: 'button',
    click: () => {
      input.value = String(threshold.initial);
      threshold.set(threshold.initial);
      input.focus();
    },
  });
  back.textContent = `Back to ${plain(threshold.initial)}`;
  /** @param {string} name */
  const swatch = (name) => element('span.swatch', { style: `--colour: var(--${name})` });
  threshold.follow(() => {
    const kept = threshold.kept;
    const dropped = report.count - kept;
    /**
     * @param {string} name
     * @param {number} number
     */
    const part = (name, number) =>
      element(
        'span',
        swatch(name),
        element('b', integer(number)),
        ` ${name}, ${percent(number, report.count)}`,
      );
    verdict.replaceChildren(part('kept', kept), part('dropped', dropped), back);
    verdict.hidden = !threshold.isSet;
    back.hidden = threshold.value === threshold.initial;
    input.setAttribute(
      'aria-valuetext',
      `${plain(threshold.value)}: ${integer(kept)} kept, ${integer(dropped)} dropped`,
    );
    redraw();
  });
  return section(
    'Scores',
    finding(findingOf(report.count, report.scores)),
    figureWithSlider(frame, input, 'Drag the line to see what a threshold keeps', verdict),
    more(
      'The scores as a table',
      table(
        'Traces by score',
        [
          { title: 'Score', cell: rangeOf },
          { title: 'Traces', number: true, cell: (bar) => integer(bar.count) },
          { title: 'Share', number: true, cell: (bar) => percent(bar.count, report.count) },
        ],
        barsOf(report.scoreBins, 5),
      ),
    ),
  );
}

/**
 * @param {number} scored
 * @param {import('./data.js').Summary} scores
 */
function findingOf(scored, { p25, median, p75, min, max }) {
  if (scored === 1) return `One trace was scored, with ${decimal(median)}.`;
  if (min === max) return `All ${integer(scored)} traces score ${decimal(median)}.`;
  const middle = `Half of the traces score between ${decimal(p25)} and ${decimal(p75)}`;
  return `${middle}; the lowest score is ${decimal(min)}, the highest ${decimal(max)}.`;
}
