import { coveredBy } from './chosen.mjs';
import { element, foreign } from './dom.mjs';
import { count, decimal, duration, integer, percent, plain, short } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

/**
 * @param {Report} report
 * @param {import('./threshold.mjs').Threshold} threshold
 */
export function header(report, threshold) {
  const figures = figuresOf(report, threshold);
  return [
    element('div.top', element('p.brand', 'KnowledgePulse trace report')),
    element(
      'header',
      element('h1', headlineOf(report)),
      element('p.about', ...aboutOf(report)),
      report.interrupted &&
        element('p.notice', 'Scoring was interrupted: this shows what had been scored until then.'),
      element(
        'dl.essentials',
        figures.map(([title, value, note]) =>
          element(
            'div',
            element('dt', title),
            element('dd', element('span.value', value)),
            element('dd.note', note),
          ),
        ),
      ),
    ),
  ];
}

/** What the command has found. @param {Report} report */
function headlineOf({ count: scored, known, selection, traces }) {
  if (selection !== null) return `${integer(selection.chosen)} chosen of ${count(scored, 'trace')}`;
  if (scored === 0) return 'No trace was scored';
  const agents = count(new Set(traces.map(({ agent }) => agent)).size, 'agent');
  const outcomes = known === scored ? 'all' : known === 0 ? 'none' : integer(known);
  return `${count(scored, 'trace')}, ${agents}, ${outcomes} with a known outcome`;
}

/**
 * @typedef {[title: import('./dom.mjs').Children, value: import('./dom.mjs').Children, note: import('./dom.mjs').Children]} Figure
 */

/**
 * @param {Report} report
 * @param {import('./threshold.mjs').Threshold} threshold
 * @returns {Figure[]}
 */
function figuresOf(report, threshold) {
  const { count: scored, duplicates, errors, known, notCompared, scores, selection, succeeded } = report;
  const isCompared = notCompared < scored;
  /** @type {Array<Figure | false | null>} */
  const figures = [
    selection && ['Chosen', short(selection.chosen), `of ${count(scored, 'trace')}`],
    selection && ['Covered', percent(coveredBy(selection, selection.chosen), 1), kneeOf(selection)],
    reviewOf(report),
    !selection && ['Traces', short(scored), paceOf(report)],
    report.threshold !== null && keptOf(report, threshold),
    [
      'Known outcome',
      short(known),
      known === 0
        ? 'no log tells how it ended'
        : `${integer(succeeded)} succeeded, ${integer(known - succeeded)} failed`,
    ],
    !selection && [
      'Median score',
      scores === null ? '–' : decimal(scores.median),
      scores !== null && scored > 1 ? spreadOf(scores) : '',
    ],
    [
      'Near-duplicates',
      isCompared ? percent(duplicates.count, scored) : '–',
      isCompared ? duplicatesOf(duplicates) : 'not looked for',
    ],
    ['Bad lines', short(errors.count), errors.count === 0 ? 'all were read' : 'listed below'],
  ];
  return figures.filter((figure) => figure !== false && figure !== null);
}

/** @param {Report} report @param {import('./threshold.mjs').Threshold} threshold @returns {Figure} */
function keptOf(report, threshold) {
  const [title, value, note] = [element('span'), element('span'), element('span')];
  threshold.follow(() => {
    const kept = threshold.kept;
    title.textContent = `Kept at ${plain(threshold.value)}`;
    value.textContent = report.count === 0 ? '–' : percent(kept, report.count);
    note.textContent = `${integer(kept)} kept, ${integer(report.count - kept)} dropped`;
  });
  return [title, value, note];
}

/** The places in what leaves the house: the chosen traces, or all of them. @param {Report} report @returns {Figure} */
function reviewOf({ selection, traces }) {
  const chosen = new Set(selection?.traces.map(({ position }) => position));
  const shared = traces.filter(({ position }) => selection === null || chosen.has(position));
  const found = shared.filter(({ toReview }) => toReview);
  const places = found.reduce((sum, { toReview }) => sum + (toReview ?? 0), 0);
  return [
    'To review',
    short(places),
    places === 0 ? 'names of people are not looked for' : `places in ${count(found.length, 'trace')}`,
  ];
}

/** @param {import('./data.js').ChosenSet} set */
function kneeOf({ knee }) {
  return knee === null ? 'of what all show' : `of what all show; bends at ${integer(knee)}`;
}

/** @param {Report} report */
function paceOf({ count: scored, seconds }) {
  if (scored === 0 || seconds <= 0) return '';
  const perSecond = scored / seconds;
  const pace = perSecond < 9.95 ? perSecond.toFixed(1) : short(Math.round(perSecond));
  return scored < 10 ? `in ${duration(seconds)}` : `${pace} a second in ${duration(seconds)}`;
}

/** @param {import('./data.js').Summary} scores */
function spreadOf({ p10, p90 }) {
  const [low, high] = [decimal(p10), decimal(p90)];
  return low === high ? 'most score the same' : `80% within ${low}–${high}`;
}

/** @param {Report['duplicates']} duplicates */
function duplicatesOf({ count: number, groupCount }) {
  return number === 0 ? 'none found' : `${count(number, 'trace')} in ${count(groupCount, 'group')}`;
}

/** @param {Report} report */
function aboutOf({ sources, sourceCount, finishedAt }) {
  const shown = sources.slice(0, 3);
  const names = shown.flatMap((name, i) => [i > 0 ? ', ' : '', foreign(name)]);
  const others = sourceCount - shown.length;
  const date = new Date(finishedAt);
  const when = element(
    'time',
    { datetime: finishedAt },
    date.toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'short' }),
  );
  const from =
    names.length > 0
      ? ['From ', ...names, others > 0 ? ` and ${count(others, 'other file')}` : '', '; ']
      : [];
  return [...from, 'finished ', when, '.'];
}
