import { element, foreign } from './dom.mjs';
import { count, decimal, duration, integer, percent, plain, short } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

const THEMES = { auto: 'Auto', light: 'Light', dark: 'Dark' };

function themeSwitch() {
  /** @param {Event} event */
  const choose = ({ target }) => {
    const { value } = /** @type {HTMLInputElement} */ (target);
    if (value === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  };
  const chosen = document.documentElement.dataset.theme ?? 'auto';
  const options = Object.entries(THEMES).map(([value, title]) =>
    element(
      'label',
      element('input', { type: 'radio', name: 'theme', value, checked: value === chosen, change: choose }),
      title,
    ),
  );
  return element('fieldset.theme', { 'aria-label': 'Colours' }, options);
}

/** @param {Report} report */
function embedderOf({ dtype, bases, count: scored, noveltyMode }) {
  const without = bases['no-embedder'] ?? 0;
  if (noveltyMode === 'lexical') return { value: 'None', note: 'words alone are compared' };
  if (dtype === null || (scored > 0 && without === scored))
    return { value: 'None', note: 'novelty is 0.5 throughout' };
  const precision = { fp32: 'full precision', q8: '8-bit weights' }[dtype] ?? '';
  return { value: dtype, note: without > 0 ? `failed for ${count(without, 'trace')}` : precision };
}

/**
 * @param {Report} report
 * @param {import('./threshold.mjs').Threshold} threshold
 */
export function header(report, threshold) {
  const { count: scored, duplicates, errors, scores, seconds } = report;
  const headline = element('h1');
  const kept = element('span.value');
  const keptNote = element('span.note');
  const keptTitle = element('dt');
  threshold.follow(() => {
    const number = threshold.kept(report);
    const bar = plain(threshold.value);
    headline.textContent = headlineOf(scored, number, bar);
    keptTitle.textContent = `Kept at ${bar}`;
    kept.textContent = scored === 0 ? '–' : percent(number, scored);
    keptNote.textContent = `${integer(number)} kept, ${integer(scored - number)} dropped`;
  });
  const embedder = embedderOf(report);
  const compared = (report.bases['no-embedder'] ?? 0) < scored;
  /**
   * @param {string} title
   * @param {string} value
   * @param {string} note
   */
  const figure = (title, value, note) => [
    element('dt', title),
    element('dd', element('span.value', value)),
    element('dd.note', note),
  ];
  const figures = [
    figure('Scored', short(scored), scored > 0 && seconds > 0 ? paceOf(scored, seconds) : ''),
    [keptTitle, element('dd', kept), element('dd.note', keptNote)],
    figure(
      'Median score',
      scores === null ? '–' : decimal(scores.median),
      scores !== null && scored > 1 ? spreadOf(scores) : '',
    ),
    figure(
      'Near-duplicates',
      compared ? percent(duplicates.count, scored) : '–',
      compared ? duplicatesOf(duplicates) : 'not looked for',
    ),
    figure('Bad lines', short(errors.count), errors.count === 0 ? 'all were read' : 'listed below'),
    figure('Embedder', embedder.value, embedder.note),
  ];
  return [
    element('div.top', element('p.brand', 'KnowledgePulse trace report'), themeSwitch()),
    element(
      'header',
      headline,
      element('p.about', ...aboutOf(report)),
      report.cleaned && element('p.about', cleanedOf(report.cleaned)),
      report.interrupted &&
        element('p.notice', 'Scoring was interrupted: this shows what had been scored until then.'),
      element(
        'dl.essentials',
        figures.map((parts) => element('div', parts)),
      ),
    ),
  ];
}

/**
 * @param {number} scored
 * @param {number} kept
 * @param {string} bar
 */
function headlineOf(scored, kept, bar) {
  if (scored === 0) return 'No trace was scored';
  if (scored === 1)
    return kept === 1 ? `The trace scores ${bar} or more` : `The trace scores less than ${bar}`;
  if (kept === 0) return `None of ${integer(scored)} traces scores ${bar} or more`;
  if (kept === scored) return `All ${integer(scored)} traces score ${bar} or more`;
  return `${integer(kept)} of ${integer(scored)} traces ${kept === 1 ? 'scores' : 'score'} ${bar} or more`;
}

/**
 * @param {number} scored
 * @param {number} seconds
 */
function paceOf(scored, seconds) {
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

/** @param {NonNullable<Report['cleaned']>} cleaned */
function cleanedOf({ level, strict, redactions }) {
  const counts = Object.entries(redactions).map(([type, number]) => `${integer(number)} ${type}`);
  const how = `Cleaned at level ${level}${strict ? ', strictly' : ''}`;
  return counts.length === 0 ? `${how}: nothing was found.` : `${how}: replaced ${counts.join(', ')}.`;
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
