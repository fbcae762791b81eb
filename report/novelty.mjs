import { areaY, dot, lineY, pointerX, rectY, tip, windowY } from '@observablehq/plot';

import { element, finding, more, section, table } from './dom.mjs';
import { drawn, sequenceChart } from './figure.mjs';
import { count, decimal, integer } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

/** @typedef {ReturnType<typeof rowsOf>[number]} Row */

/**
 * Returns the buckets with the numbers of their first and last trace, from 1.
 *
 * @param {Report} report
 */
function rowsOf({ novelty: { width, buckets } }) {
  return buckets.map(([mean, min, max, number], i) => {
    return { first: i * width + 1, last: i * width + number, mean, min, max, count: number };
  });
}

/** @param {Array<{ mean: number, count: number }>} rows */
const meanOf = (rows) =>
  rows.reduce((sum, row) => sum + row.mean * row.count, 0) / rows.reduce((sum, row) => sum + row.count, 0);

/**
 * @param {Report} report
 * @param {Row[]} rows
 * @param {number} width
 */
function curve(report, rows, width) {
  const { count: scored, duplicates, novelty } = report;
  const isSingle = novelty.width === 1;
  const highest = Math.max(1, ...rows.map(({ max }) => max));
  /** @param {Row} row */
  const middle = ({ first, last }) => (first + last) / 2;
  // Each value in a short sequence, the range of each stretch in a long one, and their average.
  const smooth = Math.max(5, Math.round(rows.length / 12));
  const trend = { x: middle, y: 'mean', stroke: 'var(--novelty)', strokeWidth: 2 };
  const nearDuplicate = duplicates.count > 0;
  return sequenceChart(`Novelty of ${count(scored, 'trace')} in the order of scoring.`, scored, width, {
    unit: 'trace',
    marginTop: 12,
    y: { domain: [0, highest] },
    tickFormat: String,
    marks: [
      nearDuplicate &&
        rectY([1 - duplicates.similarity], {
          y1: 0,
          y2: Number,
          fill: 'var(--novelty)',
          fillOpacity: 0.14,
        }),
      isSingle
        ? dot(rows, {
            x: 'first',
            y: 'mean',
            r: rows.length > 500 ? 1.75 : 2.75,
            fill: 'var(--novelty)',
            fillOpacity: 0.65,
          })
        : areaY(rows, { x: middle, y1: 'min', y2: 'max', fill: 'var(--novelty)', fillOpacity: 0.22 }),
      rows.length >= 20 && lineY(rows, windowY({ k: smooth, strict: false }, trend)),
      tip(
        rows,
        pointerX({
          x: middle,
          y: 'mean',
          title: (/** @type {Row} */ { first, last, mean, min, max }) =>
            first === last
              ? `trace ${integer(first)}\nnovelty ${decimal(mean)}`
              : `traces ${integer(first)}–${integer(last)}\nmean ${decimal(mean)}\n${decimal(min)} to ${decimal(max)}`,
        }),
      ),
    ],
  });
}

/** @param {Report} report */
export function noveltySection(report) {
  const title = 'Novelty';
  const { bases, count: scored } = report;
  if (scored === 0) return null;
  if (bases['no-embedder'] === scored) {
    return section(
      title,
      finding('There was no embedder, so nothing was compared: the novelty of every trace is 0.5.'),
    );
  }
  const rows = rowsOf(report);
  const isSingle = report.novelty.width === 1;
  return section(
    title,
    finding(findingOf(report, rows)),
    element(
      'figure',
      drawn({}, (width) => curve(report, rows, width)).frame,
      element('figcaption', captionOf(report, rows, isSingle)),
    ),
    more(
      'Novelty as a table',
      table(
        'Novelty by stretches of the sequence',
        [
          {
            title: 'Traces',
            cell: ({ first, last }) =>
              first === last ? integer(first) : `${integer(first)}–${integer(last)}`,
          },
          { title: 'Mean', number: true, cell: ({ mean }) => decimal(mean) },
          { title: 'Lowest', number: true, cell: ({ min }) => decimal(min) },
          { title: 'Highest', number: true, cell: ({ max }) => decimal(max) },
        ],
        stretchesOf(rows, 20),
      ),
    ),
  );
}

/**
 * Returns the rows in stretches of about the same length, `count` at most.
 *
 * @param {Row[]} rows
 * @param {number} limit
 */
function stretchesOf(rows, limit) {
  const size = Math.ceil(rows.length / limit);
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, i) => {
    const part = rows.slice(i * size, (i + 1) * size);
    return {
      first: part[0].first,
      last: part[part.length - 1].last,
      mean: meanOf(part),
      min: Math.min(...part.map(({ min }) => min)),
      max: Math.max(...part.map(({ max }) => max)),
    };
  });
}

/**
 * @param {Report} report
 * @param {Row[]} rows
 */
function findingOf({ count: scored, bases }, rows) {
  const begin = bases['empty-memory']
    ? 'The memory was empty at first, where novelty is 0.5 by definition.'
    : null;
  const tenth = Math.floor(rows.length / 10);
  if (tenth < 2) return begin ?? `The mean novelty of ${count(scored, 'trace')} is ${decimal(meanOf(rows))}.`;
  const [early, late] = [meanOf(rows.slice(0, tenth)), meanOf(rows.slice(-tenth))];
  const change = `from ${decimal(early)} in the first tenth of the sequence to ${decimal(late)} in the last`;
  const verb = late < early ? 'falls' : 'rises';
  const sentence =
    Math.abs(late - early) < 0.02
      ? `Mean novelty stays about the same: ${decimal(early)} in the first tenth of the sequence, ${decimal(late)} in the last.`
      : `Mean novelty ${verb} ${change}.`;
  return begin === null ? sentence : `${sentence} ${begin}`;
}

/**
 * @param {Report} report
 * @param {Row[]} rows
 * @param {boolean} isSingle
 */
function captionOf({ noveltyMode, duplicates, truncated, count: scored, novelty }, rows, isSingle) {
  /** @type {Array<string | false>} */
  const sentences = [
    isSingle
      ? 'Each dot is a trace.'
      : `Each point stands for ${integer(novelty.width)} traces; the band is their range.`,
    rows.length >= 20 && 'The line is the running mean.',
    duplicates.count > 0 && 'Near-duplicates lie in the shaded band at the bottom.',
  ];
  const longer = `${integer(truncated)} of ${count(scored, 'trace')}`;
  if (noveltyMode !== 'prefix') {
    sentences.push(
      'The words of the whole text of the traces were compared.',
      truncated > 0 && `${longer} had more text than is read.`,
    );
  } else {
    sentences.push(
      'The first 512 tokens of each trace were compared.',
      truncated > 0 && `${longer} had more text than that.`,
    );
  }
  return sentences.filter(Boolean).join(' ');
}
