import { axisFx, axisX, axisY, dot, gridX, pointer, ruleX, ruleY, tip } from '@observablehq/plot';

import { DIMENSIONS, SCORE } from './dimensions.mjs';
import { element, finding, foreign, more, section, table } from './dom.mjs';
import { chart, drawn } from './figure.mjs';
import { count, cut, decimal, integer, percent } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

/** @typedef {Report['domains'][number]} Domain */

/** @typedef {typeof SCORE | typeof DIMENSIONS[number]} Measure */

const MEASURES = [SCORE, ...DIMENSIONS];

/** How many domains are drawn; the table has all of them. */
const DRAWN = 12;

/** Beyond this width all measures stand side by side. */
const WIDE = 760;

/** @param {{ name: string }} domain */
const nameOf = ({ name }) => name || '(none)';

/**
 * @param {Domain[]} domains
 * @param {Measure[]} measures
 */
function rowsOf(domains, measures) {
  return domains.flatMap((domain, i) =>
    measures.map((measure) => ({
      domain: i,
      measure: measure.title,
      colour: measure.colour,
      ...domain[measure.key],
    })),
  );
}

/**
 * The spread of some measures, one row for each domain.
 *
 * @param {Domain[]} domains
 * @param {Measure[]} measures
 * @param {import('./threshold.mjs').Threshold} threshold
 * @param {number} width
 */
function spread(domains, measures, threshold, width) {
  const rows = rowsOf(domains, measures);
  const wide = measures.length > 1;
  const longest = Math.max(...domains.map((domain) => [...cut(nameOf(domain), 20)].length));
  const marginLeft = Math.max(48, 16 + 7 * longest);
  const facet = wide ? { fx: 'measure' } : {};
  const bar = threshold.value;
  const score = measures.includes(SCORE) && threshold.isSet ? [{ measure: SCORE.title }] : [];
  const label = `Spread of ${measures.map(({ noun }) => noun).join(', ')} by domain; the table below has the figures.`;
  return chart(label, {
    width,
    height: (wide ? 56 : 32) + 30 * domains.length,
    marginLeft,
    marginRight: 12,
    marginTop: wide ? 28 : 6,
    marginBottom: 26,
    fx: { domain: measures.map(({ title }) => title), label: null, padding: 0.16, axis: null },
    x: { domain: [0, 1], clamp: true },
    y: { domain: domains.map((_, i) => i), type: 'band', label: null },
    marks: [
      wide && axisFx({ anchor: 'top', label: null, fill: 'var(--ink)', fontWeight: 600 }),
      gridX({ ticks: 2, stroke: 'var(--line)', strokeOpacity: 1 }),
      axisX({ label: null, ticks: 2, tickSize: 0, tickFormat: String }),
      axisY({
        label: null,
        tickSize: 0,
        tickFormat: (/** @type {number} */ i) => cut(nameOf(domains[i]), 20),
        fill: 'var(--ink)',
      }),
      ruleX(score, { x: bar, stroke: 'var(--soft)', strokeDasharray: '2 3', ...facet }),
      ruleY(rows, { y: 'domain', x1: 'p10', x2: 'p90', stroke: 'colour', strokeWidth: 1.5, ...facet }),
      ruleY(rows, {
        y: 'domain',
        x1: 'p25',
        x2: 'p75',
        stroke: 'colour',
        strokeWidth: 7,
        strokeOpacity: 0.45,
        ...facet,
      }),
      dot(rows, {
        y: 'domain',
        x: 'median',
        r: 4.5,
        fill: 'colour',
        stroke: 'var(--paper)',
        strokeWidth: 1.5,
        ...facet,
      }),
      tip(
        rows,
        pointer({
          y: 'domain',
          x: 'median',
          title: (/** @type {ReturnType<typeof rowsOf>[number]} */ { domain, measure, ...summary }) => {
            const { p10, p25, median, p75, p90 } = summary;
            const spread = `half within ${decimal(p25)}–${decimal(p75)}\n80% within ${decimal(p10)}–${decimal(p90)}`;
            return `${cut(nameOf(domains[domain]), 40)}: ${measure}\nmedian ${decimal(median)}\n${spread}`;
          },
          ...facet,
        }),
      ),
    ],
  });
}

/**
 * @param {Report} report
 * @param {import('./threshold.mjs').Threshold} threshold
 */
export function domainsSection(report, threshold) {
  const { domains } = report;
  if (domains.length === 0) return null;
  const shown = domains.slice(0, DRAWN);
  /** @param {number} width */
  const draw = (width) => {
    const groups = width >= WIDE ? [MEASURES] : MEASURES.map((measure) => [measure]);
    return groups.map((measures) =>
      element(
        'div',
        measures.length === 1 && element('h3', measures[0].title),
        spread(shown, measures, threshold, width),
      ),
    );
  };
  const { frame, redraw } = drawn({ class: 'measures' }, draw);
  const keptCells = new Map(domains.map((domain) => [domain, element('span')]));
  threshold.follow(() => {
    for (const [domain, cell] of keptCells) {
      const kept = threshold.kept(domain);
      cell.textContent = `${integer(kept)} (${percent(kept, domain.count)})`;
    }
    redraw();
  });
  /**
   * @param {Measure} measure
   * @returns {import('./dom.mjs').Column<Domain>}
   */
  const mean = ({ key, title }) => ({ title, number: true, cell: (domain) => decimal(domain[key].mean) });
  /** @type {import('./dom.mjs').Column<Domain>} */
  const kept = { title: 'Kept', number: true, cell: (domain) => keptCells.get(domain) };
  const hidden = domains.length - shown.length;
  return section(
    'Domains',
    finding(...findingOf(domains)),
    element(
      'figure',
      frame,
      element(
        'figcaption',
        'The dot is the median, the thick bar holds the middle half, and the thin line the middle 80%. ',
        report.threshold !== null && 'The dashed line is the threshold.',
        hidden > 0 && ` ${count(hidden, 'smaller domain')} only in the table.`,
      ),
    ),
    more(
      'The domains as a table',
      table(
        'Mean of each measure by domain',
        [
          { title: 'Domain', cell: (domain) => foreign(nameOf(domain)) },
          { title: 'Traces', number: true, cell: (domain) => integer(domain.count) },
          ...(report.threshold === null ? [] : [kept]),
          ...MEASURES.map(mean),
        ],
        domains,
      ),
    ),
  );
}

/** @param {Domain[]} domains */
function findingOf(domains) {
  const [first] = domains;
  if (domains.length === 1) {
    return [
      'All traces are of one domain, ',
      foreign(nameOf(first)),
      `, with a mean score of ${decimal(first.score.mean)}.`,
    ];
  }
  // The mean of very few says little.
  const many = domains.filter(({ count: number }) => number >= 5);
  const ranked = [...(many.length > 1 ? many : domains)].sort((a, b) => b.score.mean - a.score.mean);
  const [highest, lowest] = [ranked[0], ranked[ranked.length - 1]];
  const mean = decimal(highest.score.mean);
  if (mean === decimal(lowest.score.mean)) return [`The mean score is about the same everywhere, ${mean}.`];
  /** @param {Domain} domain */
  const tell = (domain) => [
    foreign(nameOf(domain)),
    ` (${decimal(domain.score.mean)} over ${count(domain.count, 'trace')})`,
  ];
  return ['Highest mean score: ', ...tell(highest), '. Lowest: ', ...tell(lowest), '.'];
}
