import { axisX, axisY, dot, lineY, pointerX, ruleX, ruleY, text, tip } from '@observablehq/plot';

import { element, finding, more, section, table } from './dom.mjs';
import { BOTTOM, chart, drawn, figureWithSlider, heightOf, LEFT, RIGHT, slider } from './figure.mjs';
import { count, decimal, integer, percent, short } from './format.mjs';

/** @import { ChosenSet, Report } from './data.js' */

/** How many rows the table of the curve has. */
const ROWS = 20;

/**
 * The coverage by the first traces, as a part of the coverage by all traces.
 *
 * @param {ChosenSet} set
 * @param {number} size
 */
export const coveredBy = ({ coveredBefore, curve }, size) => (size === 0 ? coveredBefore : curve[size - 1]);

/** @param {number} part */
const shareOf = (part) => percent(part, 1);

/**
 * @param {ChosenSet} set
 * @param {number} size
 * @param {number} width
 */
function coverage(set, size, width) {
  const { curve, knee } = set;
  const points = curve.map((covered, i) => ({ size: i + 1, covered }));
  const knees = knee === null ? [] : [points[knee - 1]];
  const label = `The part of what all traces show that sets of up to ${count(curve.length, 'trace')} cover; ${shareOf(coveredBy(set, size))} by ${integer(size)}.`;
  const most = curve.length;
  return chart(label, {
    width,
    height: heightOf(width),
    marginLeft: LEFT,
    marginRight: RIGHT,
    marginTop: 24,
    marginBottom: BOTTOM,
    x: { domain: most === 1 ? [0, 2] : [1, most] },
    y: { domain: [0, 1] },
    marks: [
      ruleY([0.25, 0.5, 0.75, 1], { stroke: 'var(--line)' }),
      axisY([0, 0.25, 0.5, 0.75, 1], { label: null, tickSize: 0, tickFormat: shareOf }),
      axisX({
        label: 'traces',
        labelAnchor: 'right',
        labelArrow: 'right',
        ticks: most === 1 ? [1] : Math.min(most - 1, width / 90),
        tickFormat: (/** @type {number} */ value) => (Number.isInteger(value) ? short(value) : ''),
      }),
      ruleY([0], { stroke: 'var(--faint)' }),
      ruleX([size], { stroke: 'var(--ink)', strokeWidth: 1.5 }),
      lineY(points, { x: 'size', y: 'covered', stroke: 'var(--kept)', strokeWidth: 2 }),
      dot(knees, {
        x: 'size',
        y: 'covered',
        r: 5,
        fill: 'var(--paper)',
        stroke: 'var(--kept)',
        strokeWidth: 2,
      }),
      text(knees, {
        x: 'size',
        y: 'covered',
        dx: 10,
        dy: 14,
        textAnchor: 'start',
        text: ({ size: at }) => `knee: ${integer(at)}`,
        fill: 'var(--ink)',
      }),
      tip(
        points,
        pointerX({
          x: 'size',
          y: 'covered',
          title: (/** @type {typeof points[number]} */ point) =>
            `${count(point.size, 'trace')}\ncover ${shareOf(point.covered)}`,
        }),
      ),
    ],
  });
}

/** @param {Report} report */
export function chosenSection(report) {
  const set = report.selection;
  if (set === null || set.curve.length === 0) return null;
  const { chosen, curve } = set;
  let size = chosen;
  const figure = drawn((width) => coverage(set, size, width));
  const verdict = element('p.verdict');
  const input = slider('set-size', [1, curve.length, 1], chosen, (value) => choose(value));
  /** @param {number} next */
  const choose = (next) => {
    size = next;
    const words = `${count(size, 'trace')} cover${size === 1 ? 's' : ''} ${shareOf(coveredBy(set, size))}`;
    verdict.replaceChildren(element('b', words), element('span.mono', `select ${size}`));
    input.setAttribute('aria-valuetext', words);
    figure.redraw();
  };
  choose(chosen);
  const step = Math.ceil(curve.length / ROWS);
  const sizes = Array.from({ length: Math.floor(curve.length / step) }, (_, i) => (i + 1) * step);
  return section(
    'Coverage',
    finding(findingOf(report.count, set)),
    figureWithSlider(figure.frame, input, 'Drag the line to see what another number covers', verdict),
    more(
      'The curve as a table',
      table(
        'What sets of each size cover',
        [
          { title: 'Traces', cell: (row) => integer(row) },
          { title: 'Covered', number: true, cell: (row) => shareOf(coveredBy(set, row)) },
          {
            title: 'Gain of the last trace',
            number: true,
            cell: (row) => decimal(coveredBy(set, row) - coveredBy(set, row - 1), 4),
          },
        ],
        [...new Set([...sizes, ...(set.knee === null ? [] : [set.knee]), chosen, curve.length])].sort(
          (a, b) => a - b,
        ),
      ),
    ),
  );
}

/**
 * @param {number} scored
 * @param {ChosenSet} set
 */
function findingOf(scored, set) {
  const { chosen, curve, explanation, knee } = set;
  const verb = chosen === 1 ? 'was' : 'were';
  const covers = `${integer(chosen)} of ${count(scored, 'trace')} ${verb} chosen: ${explanation}. They cover ${shareOf(coveredBy(set, chosen))} of what all traces show. `;
  // The curve may end with the set.
  if (curve.length <= chosen) return covers;
  if (knee === null) return `${covers}The curve has no knee: each trace adds about as much.`;
  return `${covers}The curve bends at ${integer(knee)} (${shareOf(coveredBy(set, knee))}): beyond that a trace adds less.`;
}
