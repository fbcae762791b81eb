// The list of the traces: searched, filtered, sorted, and a page at a time.

import { DIMENSIONS } from './dimensions.mjs';
import { element, foreign, legend, marked, section } from './dom.mjs';
import { count, decimal, integer } from './format.mjs';
import { nameOf, OUTCOMES, outcomeOf } from './index.mjs';

/** @import { ListedTrace, Report } from './data.js' */
/** @import { Index } from './index.mjs' */

/** How many traces a page has. */
const PAGE = 25;

/**
 * A column: what it is sorted by, and what is shown.
 *
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {string} [hint] says more than the title
 * @property {(trace: ListedTrace) => string | number | null | undefined} value
 * @property {(trace: ListedTrace) => import('./dom.mjs').Children} cell
 * @property {boolean} [rises] whether the lowest comes first
 * @property {boolean} [wide] left out on a phone, where the objective has it below
 */

/** @param {ListedTrace} trace */
const dayOf = ({ createdAt }) => createdAt?.slice(0, 10) ?? '';

/**
 * The contributions end to end, and a line at the score.
 *
 * @param {ListedTrace} trace
 */
export function bar({ contributions, score }) {
  const percent = (/** @type {number} */ part) => `${Math.max(0, part * 100).toFixed(2)}%`;
  return element(
    'span.bar',
    { 'aria-hidden': 'true' },
    DIMENSIONS.map(({ colour }, i) =>
      element('i', { style: `width: ${percent(contributions[i])}; background: ${colour}` }),
    ),
    element('b', { style: `left: ${percent(score)}` }),
  );
}

/**
 * @param {Report} report
 * @param {Index} index
 * @param {(trace: ListedTrace, among: ListedTrace[]) => void} open
 */
function columnsOf({ traces, selection }, index, open) {
  /** Whether traces differ in it. @param {(trace: ListedTrace) => unknown} value */
  const differ = (value) => traces.some((trace) => value(trace) !== value(traces[0]));
  /** @type {Array<Column | false>} */
  const columns = [
    selection !== null && {
      key: 'rank',
      rises: true,
      title: 'Rank',
      value: (trace) => index.chosen(trace)?.rank,
      cell: (trace) => index.chosen(trace)?.rank.toString() ?? '',
    },
    {
      key: 'score',
      title: 'Score',
      value: ({ score }) => score,
      cell: (trace) => element('span.score', decimal(trace.score), bar(trace)),
    },
    {
      key: 'objective',
      rises: true,
      title: 'Objective',
      value: nameOf,
      cell: (trace) => [
        element(
          'button.open',
          { type: 'button', 'aria-haspopup': 'dialog', click: () => open(trace, traces) },
          marked(nameOf(trace)),
        ),
        element('span.below', foreign([trace.agent, trace.domain, dayOf(trace)].filter(Boolean).join(' · '))),
      ],
    },
    differ(({ agent }) => agent) && {
      key: 'agent',
      rises: true,
      title: 'Agent',
      wide: true,
      value: ({ agent }) => agent,
      cell: ({ agent }) => foreign(agent),
    },
    differ(({ domain }) => domain) && {
      key: 'domain',
      rises: true,
      title: 'Domain',
      wide: true,
      value: ({ domain }) => domain,
      cell: ({ domain }) => foreign(domain ?? ''),
    },
    differ(dayOf) && {
      key: 'when',
      title: 'When',
      wide: true,
      value: ({ createdAt }) => createdAt,
      cell: (trace) => foreign(dayOf(trace)),
    },
    differ(({ stepCount }) => stepCount) && {
      key: 'steps',
      title: 'Steps',
      wide: true,
      value: ({ stepCount }) => stepCount,
      cell: ({ stepCount }) => integer(stepCount),
    },
    differ(({ nearest }) => nearest?.similarity) && {
      key: 'like',
      title: 'Like',
      hint: 'How similar its nearest trace is',
      wide: true,
      value: ({ nearest }) => nearest?.similarity,
      cell: ({ nearest }) => (nearest === null ? '' : decimal(nearest.similarity)),
    },
    selection !== null && {
      key: 'stands-for',
      title: 'For',
      hint: 'How many traces it stands for',
      wide: true,
      value: (trace) => index.chosen(trace)?.standsFor,
      cell: (trace) => index.chosen(trace)?.standsFor.toString() ?? '',
    },
    traces.some(({ toReview }) => toReview) && {
      key: 'review',
      title: 'Review',
      hint: 'Places that a person should look at',
      wide: true,
      value: ({ toReview }) => toReview,
      cell: ({ toReview }) => toReview?.toString() ?? '',
    },
    {
      key: 'outcome',
      title: 'End',
      hint: 'How it ended',
      value: ({ success }) => (success === null ? null : Number(success)),
      cell: (trace) => {
        const outcome = outcomeOf(trace);
        const [sign, word] = OUTCOMES[outcome].split(' ');
        return element(`span.${outcome}`, { title: word, role: 'img', 'aria-label': word }, sign);
      },
    },
  ];
  return columns.filter((column) => column !== false);
}

const texts = new Intl.Collator('en', { numeric: true });

/** What is missing comes last. @param {Column} column @param {boolean} rises */
const comparing =
  ({ value }, rises) =>
  (/** @type {ListedTrace} */ a, /** @type {ListedTrace} */ b) => {
    const [one, other] = [value(a) ?? null, value(b) ?? null];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const order = typeof one === 'string' ? texts.compare(one, String(other)) : one - Number(other);
    return rises ? order : -order;
  };

/** What can be searched of a trace. @param {ListedTrace} trace */
const wordsOf = ({ excerpt, id, agent, domain, source }) =>
  [excerpt, id, agent, domain, source].join('\n').toLowerCase();

/**
 * The filters that traces differ in: values with their titles.
 *
 * @param {Report} report
 * @param {Index} index
 */
function filtersOf({ traces, selection }, index) {
  const namesOf = (/** @type {(trace: ListedTrace) => string | null} */ value) =>
    [...new Set(traces.map((trace) => value(trace) ?? ''))]
      .sort()
      .map((name) => /** @type {[string, string]} */ ([name, name || '(none)']));
  /** @type {Array<{ title: string, value: (trace: ListedTrace) => string, options: Array<[value: string, title: string]> }>} */
  const filters = [
    { title: 'Agent', value: ({ agent }) => agent, options: namesOf(({ agent }) => agent) },
    { title: 'Domain', value: ({ domain }) => domain ?? '', options: namesOf(({ domain }) => domain) },
    {
      title: 'Outcome',
      value: outcomeOf,
      options: Object.entries(OUTCOMES).filter(([name]) => traces.some((trace) => outcomeOf(trace) === name)),
    },
    {
      title: 'Set',
      value: (trace) => (index.chosen(trace) ? 'chosen' : 'others'),
      options:
        selection === null
          ? []
          : [
              ['chosen', 'chosen'],
              ['others', 'not chosen'],
            ],
    },
    {
      title: 'Review',
      value: ({ toReview }) => (toReview ? 'some' : 'none'),
      options: traces.some(({ toReview }) => toReview)
        ? [
            ['some', 'to look at'],
            ['none', 'nothing found'],
          ]
        : [],
    },
  ];
  return filters.filter(({ options }) => options.length > 1);
}

/**
 * @param {Report} report
 * @param {Index} index
 * @param {(trace: ListedTrace, among: ListedTrace[]) => void} open
 */
export function listSection(report, index, open) {
  const { traces, count: scored } = report;
  if (traces.length === 0) return null;
  /** @type {ListedTrace[]} */
  let found = traces;
  let page = 0;
  const columns = columnsOf(report, index, (trace) => open(trace, found));
  let sorted = columns[0];
  let isTurned = false;
  const words = new Map(traces.map((trace) => [trace, wordsOf(trace)]));

  const search = element('input', { type: 'search', placeholder: 'words, id, file', input: () => find() });
  const filters = filtersOf(report, index).map(({ title, value, options }) => {
    const select = element(
      'select',
      { change: () => find() },
      element('option', { value: '*' }, 'all'),
      options.map(([name, shown]) => element('option', { value: `=${name}` }, shown)),
    );
    const takes = (/** @type {ListedTrace} */ trace) =>
      select.value === '*' || select.value === `=${value(trace)}`;
    return { field: element('label', `${title} `, select), takes };
  });
  const heads = columns.map((column) => {
    const button = element(
      'button',
      {
        type: 'button',
        title: column.hint,
        click: () => {
          isTurned = sorted === column && !isTurned;
          sorted = column;
          find();
        },
      },
      column.title,
    );
    return element('th', { scope: 'col', class: classOf(column) }, button);
  });
  const body = element('tbody');
  const status = element('span', { role: 'status' });
  const turn = (/** @type {number} */ by) => () => {
    page += by;
    show();
    table.scrollIntoView({ block: 'nearest' });
  };
  const before = element('button', { type: 'button', click: turn(-1) }, 'Previous');
  const after = element('button', { type: 'button', click: turn(1) }, 'Next');
  const table = element(
    'table.traces',
    element('caption', 'Traces'),
    element('thead', element('tr', heads)),
    body,
  );

  function find() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = traces.filter(
      (trace) =>
        wanted.every((word) => words.get(trace)?.includes(word)) &&
        filters.every(({ takes }) => takes(trace)),
    );
    found.sort(comparing(sorted, (sorted.rises ?? false) !== isTurned));
    page = 0;
    show();
  }

  function show() {
    const shown = found.slice(page * PAGE, (page + 1) * PAGE);
    body.replaceChildren(
      ...shown.map((trace) =>
        element(
          'tr',
          { class: index.chosen(trace) ? 'chosen' : null },
          columns.map((column) =>
            element(
              column.key === 'objective' ? 'th' : 'td',
              { class: classOf(column), scope: column.key === 'objective' && 'row' },
              column.cell(trace),
            ),
          ),
        ),
      ),
    );
    for (const [i, head] of heads.entries()) {
      const direction = (sorted.rises ?? false) !== isTurned ? 'ascending' : 'descending';
      if (columns[i] === sorted) head.setAttribute('aria-sort', direction);
      else head.removeAttribute('aria-sort');
    }
    const first = page * PAGE;
    status.textContent =
      found.length === 0
        ? 'No trace is like that'
        : `${integer(first + 1)}–${integer(first + shown.length)} of ${integer(found.length)}`;
    before.disabled = page === 0;
    after.disabled = first + PAGE >= found.length;
  }

  find();
  return section(
    'Traces',
    element(
      'p.filters',
      element('label.search', 'Search ', search),
      filters.map(({ field }) => field),
    ),
    legend('the line is the score'),
    table,
    element(
      'p.pager',
      before,
      status,
      after,
      scored > traces.length &&
        element(
          'span.soft',
          `The first ${count(traces.length, 'trace')} of ${integer(scored)}, by score, are listed.`,
        ),
    ),
  );
}

/** @param {Column} column */
const classOf = ({ key, wide }) => (wide ? `${key} aside` : key);
