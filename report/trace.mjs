// A trace that was opened: how its score is made, what it is like, and its steps.

import { DIMENSIONS } from './dimensions.mjs';
import { element, foreign, legend, marked, table } from './dom.mjs';
import { count, decimal, integer, percent, place } from './format.mjs';
import { nameOf, OUTCOMES, outcomeOf } from './index.mjs';
import { bar } from './list.mjs';
import { RULES } from './rest.mjs';

/** @import { ListedTrace, Report } from './data.js' */
/** @import { Index } from './index.mjs' */

/** What names a trace of the list. @typedef {{ position: number | null, id?: string | null }} Other */

/** How many of all traces score less. @param {ListedTrace} trace @param {Report} report */
function rankInWords({ score }, { scoreBins: { bins, filled }, count: scored }) {
  if (scored < 2) return '';
  const below = filled.reduce(
    (sum, [bin, number]) => (bin < Math.floor(score * bins) ? sum + number : sum),
    0,
  );
  return below === 0 ? 'none scores less' : `better than ${percent(below, scored)} of these traces`;
}

/** @param {ListedTrace} trace @param {Report} report */
function scoreOf(trace, report) {
  const { dimensions, contributions, overrides, profile } = trace;
  const weights = report.profiles.find(({ name }) => name === profile)?.weights;
  /** @type {Array<{ title: string, value?: number, weight?: number, adds: number }>} */
  const parts = [
    ...DIMENSIONS.map(({ key, title }, i) => {
      return { title, value: dimensions[i], weight: weights?.[key], adds: contributions[i] };
    }),
    ...overrides.map(({ rule, before, after }) => ({ title: RULES[rule], adds: after - before })),
  ];
  return [
    element('h3', 'How its score is made'),
    element('p.worth', element('b', decimal(trace.score)), element('span.soft', rankInWords(trace, report))),
    bar(trace),
    legend(),
    table(
      `Weights of the profile ${profile ?? '(none)'}`,
      [
        { title: 'Part', cell: ({ title }) => title },
        { title: 'Value', number: true, cell: ({ value }) => (value === undefined ? '' : decimal(value, 4)) },
        {
          title: 'Weight',
          number: true,
          cell: ({ weight }) => (weight === undefined ? '' : decimal(weight)),
        },
        { title: 'Adds', number: true, cell: ({ adds }) => decimal(adds, 4) },
      ],
      parts,
    ),
  ];
}

/**
 * Why there is no nearest trace, or how much of it is shared.
 *
 * @param {ListedTrace} trace
 */
function likenessOf({ basis, dimensions, nearest, truncated }) {
  const rest = truncated ? ' Only the beginning of its text was compared.' : '';
  if (basis === 'no-embedder') return 'Not compared with others: novelty is 0.5 without an embedder.';
  if (basis === 'given') return `Scored before: its novelty is that of then, ${decimal(dimensions[1])}.`;
  if (nearest === null) return `Compared with nothing: the memory was empty, where novelty is 0.5.${rest}`;
  const { lexical, contained, embedded } = nearest;
  if (lexical === undefined || contained === undefined) return rest;
  const digest = typeof embedded === 'number' ? `, digest ${decimal(embedded)}` : '';
  return `Words ${decimal(lexical)}${digest}; ${percent(contained, 1)} of the words, by weight, are in it.${rest}`;
}

/** The words that two traces share, and do not; none where words are not compared. @param {ListedTrace} trace */
function wordsOf({ nearest }) {
  /** @type {Array<[title: string, words: string[] | undefined]>} */
  const lists = [
    ['Shared: ', nearest?.shared],
    ['New: ', nearest?.new],
  ];
  return lists.map(
    ([title, words]) =>
      words?.length &&
      element(
        'p.soft',
        title,
        words.flatMap((word, i) => [i === 0 ? '' : ', ', foreign(word, { class: 'mono' })]),
      ),
  );
}

/** @param {ListedTrace} trace */
function stepsOf({ steps, stepCount }) {
  const title = element('h3', count(stepCount, 'step'));
  if (steps === undefined) {
    const why = 'This report has the steps of the traces that come first in it, up to 8 MB.';
    return [title, element('p.soft', why)];
  }
  const left = stepCount - steps.length;
  return [
    title,
    element(
      'ol.steps',
      steps.map(({ type, tool, text, output, length }) =>
        element(
          'li',
          element(
            'p.step',
            element('b', foreign((type ?? 'step').replaceAll('_', ' '))),
            tool !== undefined && foreign(tool, { class: 'mono' }),
          ),
          text !== '' && element('pre', marked(text)),
          length !== undefined &&
            element('p.soft', `${integer(length - text.length)} more characters are not shown`),
          output !== undefined && element('p.soft', '→ ', marked(output)),
        ),
      ),
    ),
    left > 0 && element('p.soft', `${count(left, 'more step')} not shown.`),
  ];
}

/**
 * A dialog for one trace at a time. `open` takes the traces among which it is turned to the one before and the next.
 *
 * @param {Report} report
 * @param {Index} index
 */
export function traceDialog(report, index) {
  const body = element('div.opened');
  /** @type {ListedTrace[]} */
  let among = [];
  let at = 0;
  const turn = (/** @type {number} */ by) => () => show(among[at + by]);
  const before = element('button', { type: 'button', click: turn(-1) }, 'Previous');
  const after = element('button', { type: 'button', click: turn(1) }, 'Next');
  const where = element('span.soft', { role: 'status' });
  const close = element('button', { type: 'button', click: () => dialog.close() }, 'Close');
  /** @type {HTMLDialogElement} */
  const dialog = element(
    'dialog.drawer',
    {
      'aria-labelledby': 'opened-trace',
      close: () => body.replaceChildren(),
      // The backdrop is the dialog itself.
      click: (event) => event.target === dialog && dialog.close(),
    },
    element('p.turn', before, after, where, close),
    body,
  );

  /** A button that opens a trace of the list; its name alone where it is not in it. @param {Other} other */
  const linkTo = (other) => {
    const trace = index.find(other);
    if (trace !== undefined)
      return element('button.link', { type: 'button', click: () => show(trace) }, marked(nameOf(trace)));
    return foreign(other.id ?? 'a trace that is not listed', { class: 'mono' });
  };

  /** @param {Array<Other & { similarity: number }>} others @param {number} [unlisted] how many more there are */
  const linksTo = (others, unlisted = 0) =>
    element(
      'ul.similar',
      others.map((near) => element('li', element('span.soft', decimal(near.similarity)), linkTo(near))),
      unlisted > 0 && element('li.soft', `and ${integer(unlisted)} more`),
    );

  /** @param {ListedTrace} trace */
  function show(trace) {
    at = among.indexOf(trace);
    const chosen = index.chosen(trace);
    const { agent, domain, createdAt, id, nearest, toReview } = trace;
    const facts = [agent, domain, createdAt?.slice(0, 16).replace('T', ' ')].filter(Boolean);
    const unlisted = (chosen?.standsFor ?? 0) - (chosen?.similar.length ?? 0);
    body.replaceChildren(
      ...[
        element('p.soft', foreign(facts.join(' · ')), ` · ${OUTCOMES[outcomeOf(trace)]}`),
        element('h2', { id: 'opened-trace' }, marked(nameOf(trace))),
        element(
          'p.soft.mono',
          foreign(place(trace, report.sourceCount)),
          id !== null && [' · ', foreign(id)],
        ),
        toReview !== null &&
          toReview > 0 &&
          element('p.notice', `${count(toReview, 'place')} of it should be looked at before it is shared.`),
        ...scoreOf(trace, report),
        element('h3', 'What it is like'),
        nearest !== null &&
          linksTo([{ ...nearest, position: null, id: nearest.label ?? 'a trace without an id' }]),
        element('p', likenessOf(trace)),
        ...wordsOf(trace),
        chosen &&
          element(
            'p',
            `Chosen as number ${integer(chosen.rank)}${chosen.reason === 'failure' ? ', a failure of an unsolved task' : ''}; `,
            chosen.standsFor === 0 ? 'stands for itself.' : `stands for ${count(chosen.standsFor, 'trace')}:`,
          ),
        chosen && linksTo(chosen.similar, unlisted),
        ...stepsOf(trace),
      ].filter((part) => part instanceof Node),
    );
    where.textContent = at < 0 ? '' : `${integer(at + 1)} of ${integer(among.length)}`;
    before.disabled = at <= 0;
    after.disabled = at < 0 || at + 1 >= among.length;
    dialog.scrollTop = 0;
    if (!dialog.open) dialog.showModal();
  }

  return {
    dialog,
    /** @param {ListedTrace} trace @param {ListedTrace[]} [others] */
    open(trace, others = [trace]) {
      among = others;
      show(trace);
    },
  };
}
