// A trace that was opened: how its score is made, what it is like, and its steps.

import { DIMENSIONS } from './dimensions.mjs';
import { element, foreign, legend, marked, more, table } from './dom.mjs';
import { count, decimal, integer, percent, place, roundTogether } from './format.mjs';
import { nameOf, OUTCOMES, outcomeOf } from './index.mjs';
import { bar } from './list.mjs';

/** @import { ListedTrace, Report } from './data.js' */
/** @import { Index } from './index.mjs' */

/** What names a trace of the list. @typedef {{ position: number | null, id?: string | null }} Other */

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
 * @param {Pick<ListedTrace, 'contributions' | 'overrides' | 'score'>} trace
 */
export function sumInWords({ contributions, overrides, score }) {
  /** @type {Array<{ value: number, words: string }>} */
  const terms = DIMENSIONS.map(({ noun }, i) => ({ value: contributions[i], words: noun }));
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
  const { dimensions, contributions, profile } = trace;
  const weights = report.profiles.find(({ name }) => name === profile)?.weights;
  return [
    element('h3', 'How its score is made'),
    element('p.worth', element('b', decimal(trace.score)), element('span.soft', rankInWords(trace, report))),
    bar(trace),
    legend(),
    element('p.sum', sumInWords(trace)),
    more(
      'Values and weights',
      table(
        `Weights of the profile ${profile ?? '(none)'}`,
        [
          { title: 'Dimension', cell: ({ title }) => title },
          { title: 'Value', number: true, cell: (_, i) => decimal(dimensions[i], 4) },
          { title: 'Weight', number: true, cell: ({ key }) => (weights ? decimal(weights[key]) : '') },
          { title: 'Contribution', number: true, cell: (_, i) => decimal(contributions[i], 4) },
        ],
        DIMENSIONS,
      ),
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
  const title = element('h3', stepCount === null ? 'Steps' : count(stepCount, 'step'));
  if (steps === undefined) {
    const why = 'This report has the steps of the traces that come first in it, up to 8 MB.';
    return [title, element('p.soft', stepCount === null ? 'Its steps were not given.' : why)];
  }
  const left = (stepCount ?? 0) - steps.length;
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
