import { dot, lineY, link, pointer, pointerX, ruleX, text, tip } from '@observablehq/plot';

import { element, finding, more, section, table } from './dom.mjs';
import { chart, drawn, figureWithSlider, sequenceChart, slider } from './figure.mjs';
import { count, cut, decimal, integer, percent } from './format.mjs';
import { groupLine, groupList } from './groups.mjs';

/** @import { ChosenSet, ChosenTrace, Report } from './data.js' */

/** How many rows the table of the curve has. */
const ROWS = 20;

/** How many groups are named on the map, how long the names are, and about how large their letters. */
const NAMED = 12;
const NAME_LENGTH = 24;
const LETTER = { width: 6.2, height: 15 };

/**
 * The coverage by the first traces, as a part of the coverage by all traces.
 *
 * @param {ChosenSet} set
 * @param {number} size
 */
const coveredBy = ({ coveredBefore, curve }, size) => (size === 0 ? coveredBefore : curve[size - 1]);

/** @type {Array<'start' | 'middle' | 'end'>} */
const ANCHORS = ['start', 'middle', 'end'];

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
  return sequenceChart(label, curve.length, width, {
    unit: 'traces',
    marginTop: 24,
    y: { domain: [0, 1] },
    tickFormat: shareOf,
    marks: [
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

/**
 * The chosen traces and the traces that they stand for, similar ones near each other.
 *
 * @param {ChosenSet} set
 * @param {number} size
 * @param {number} width
 */
function map({ traces }, size, width) {
  const height = Math.round(Math.min(width * 0.75, 520));
  const margin = 14;
  const similar = traces.flatMap((trace) => trace.similar.map((near) => ({ ...near, by: trace })));
  const colour = (/** @type {ChosenTrace} */ { rank }) => (rank <= size ? 'var(--kept)' : 'var(--dropped)');
  const names = namesOf(
    traces,
    (x, y) => [margin + ((x + 1) / 2) * (width - 2 * margin), margin + ((1 - y) / 2) * (height - 2 * margin)],
    width,
  );
  const titleOf = (/** @type {ChosenTrace} */ trace) =>
    `${integer(trace.rank)}. ${cut(leadOf(trace), 60)}\nstands for ${integer(trace.standsFor)}`;
  const label = `Map of ${count(traces.length, 'chosen trace')} and ${integer(similar.length)} that they stand for; the list below has them.`;
  return chart(label, {
    width,
    height,
    margin,
    axis: null,
    x: { domain: [-1, 1] },
    y: { domain: [-1, 1] },
    marks: [
      link(similar, {
        x1: 'x',
        y1: 'y',
        x2: ({ by }) => by.x,
        y2: ({ by }) => by.y,
        stroke: ({ by }) => colour(by),
        strokeOpacity: 0.35,
      }),
      dot(similar, { x: 'x', y: 'y', r: 2, fill: ({ by }) => colour(by), fillOpacity: 0.6 }),
      dot(traces, { x: 'x', y: 'y', r: 5, fill: colour, stroke: 'var(--paper)', strokeWidth: 1.5 }),
      ...ANCHORS.map((textAnchor) =>
        text(
          names.filter(({ anchor }) => anchor === textAnchor),
          {
            x: 'x',
            y: 'y',
            dy: -12,
            textAnchor,
            text: 'name',
            fill: 'var(--ink)',
            stroke: 'var(--paper)',
            strokeWidth: 4,
          },
        ),
      ),
      tip(traces, pointer({ x: 'x', y: 'y', title: titleOf })),
    ],
  });
}

/**
 * The names of the largest groups that do not cover each other.
 *
 * @param {ChosenTrace[]} traces
 * @param {(x: number, y: number) => [number, number]} toPixels
 * @param {number} width
 */
function namesOf(traces, toPixels, width) {
  /** @type {Array<{ left: number, top: number, right: number }>} */
  const taken = [];
  const names = [];
  for (const { x, y, rank, excerpt } of [...traces].sort((a, b) => b.standsFor - a.standsFor)) {
    const name = `${integer(rank)} ${cut(excerpt, NAME_LENGTH)}`;
    const [middle, top] = toPixels(x, y);
    const long = [...name].length * LETTER.width;
    const anchor = middle < long / 2 ? 'start' : middle > width - long / 2 ? 'end' : 'middle';
    const left = middle - { start: 0, middle: long / 2, end: long }[anchor];
    const isFree = taken.every(
      (other) => left > other.right || left + long < other.left || Math.abs(top - other.top) > LETTER.height,
    );
    if (!isFree || names.length === NAMED) continue;
    taken.push({ left, top, right: left + long });
    names.push({ x, y, name, anchor });
  }
  return names;
}

const leadOf = (/** @type {ChosenTrace} */ { excerpt, id }) =>
  excerpt || id || 'A trace without an objective';

/**
 * @param {ChosenTrace} trace
 * @param {Report} report
 */
function lineOf(trace, { sourceCount }) {
  const { rank, standsFor, similar, reason } = trace;
  const note = reason === 'failure' ? 'failure of an unsolved task' : '';
  const caption =
    standsFor > similar.length
      ? `The trace, and the ${similar.length} most similar of ${integer(standsFor)}`
      : 'The trace, and those that it stands for';
  const members = [{ ...trace, similarity: 1 }, ...similar];
  return groupLine(
    [integer(rank), leadOf(trace), note, `for ${integer(standsFor)}`],
    caption,
    members,
    sourceCount,
  );
}

/** @param {Report} report */
export function chosenSection(report) {
  const set = report.selection;
  if (set === null || set.curve.length === 0) return null;
  const { chosen, curve, traces } = set;
  let size = chosen;
  const figures = [
    drawn({}, (width) => coverage(set, size, width)),
    drawn({}, (width) => map(set, size, width)),
  ];
  const verdict = element('p.verdict');
  const input = slider('set-size', [1, curve.length, 1], chosen, (value) => choose(value));
  /** @param {number} next */
  const choose = (next) => {
    size = next;
    const words = `${count(size, 'trace')} cover${size === 1 ? 's' : ''} ${shareOf(coveredBy(set, size))}`;
    verdict.replaceChildren(element('b', words), element('span.mono', `--select ${size}`));
    input.setAttribute('aria-valuetext', words);
    for (const { redraw } of figures) redraw();
  };
  choose(chosen);
  const step = Math.ceil(curve.length / ROWS);
  const sizes = Array.from({ length: Math.floor(curve.length / step) }, (_, i) => (i + 1) * step);
  const unlisted = chosen - traces.length;
  return section(
    'The chosen set',
    finding(findingOf(report.count, set)),
    figureWithSlider(figures[0].frame, input, 'Move to see what another number covers', verdict),
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
    traces.length > 0 &&
      element(
        'figure',
        figures[1].frame,
        element(
          'figcaption',
          'Large dots are chosen traces, small ones the traces that they stand for. Similar traces are near each other; ',
          'how far groups are apart says little. ',
          element('span.swatch', { style: '--colour: var(--kept)' }),
          'in the set of this size ',
          element('span.swatch', { style: '--colour: var(--dropped)' }),
          'beyond it.',
        ),
      ),
    traces.length > 0 && element('h3', 'Who stands for whom'),
    groupList('trace', traces, (trace) => lineOf(trace, report)),
    unlisted > 0 && element('p.soft.about', `${count(unlisted, 'chosen trace')} not listed.`),
  );
}

/**
 * @param {number} scored
 * @param {ChosenSet} set
 */
function findingOf(scored, set) {
  const { chosen, explanation, knee } = set;
  const verb = chosen === 1 ? 'was' : 'were';
  const covers = `${integer(chosen)} of ${count(scored, 'trace')} ${verb} ${explanation}. They cover ${shareOf(coveredBy(set, chosen))} of what all traces show. `;
  if (knee === null) return `${covers}The curve has no knee: each trace adds about as much.`;
  return `${covers}The curve bends at ${integer(knee)} (${shareOf(coveredBy(set, knee))}): beyond that a trace adds less.`;
}
