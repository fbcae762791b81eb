// The page to try the package: files of agents in, a set that may be shared out. A worker holds the traces and does the work.

import { element, finding, foreign, more, section, table } from '../../report/dom.mjs';
import { drawReport } from '../../report/draw.mjs';
import { count, decimal, integer, percent } from '../../report/format.mjs';

/** @import { Progress, Tasks } from './worker.mjs' */

/** How many traces are listed before the reader asks for more. */
const LISTED = 20;

const worker = new Worker(new URL('./page-worker.js', import.meta.url), { type: 'module' });
/** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
const waiting = new Map();
let asked = 0;

/** @type {Promise<void>} */
const started = new Promise((resolve, reject) => {
  worker.onmessage = ({ data: { ready, number, progress, value, error } }) => {
    if (ready) return resolve();
    if (progress) return showProgress(progress);
    const call = waiting.get(number);
    waiting.delete(number);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  };
  worker.onerror = ({ message }) => {
    const error = new Error(`the worker has ended: ${message ?? 'its program could not be loaded'}`);
    reject(error);
    for (const call of waiting.values()) call.reject(error);
    waiting.clear();
  };
});
started.catch((error) => say(`This page does not work here: ${error.message}. Load it again.`));

/**
 * @template {keyof Tasks} Name
 * @param {Name} name
 * @param {Parameters<Tasks[Name]>[0]} given
 * @returns {Promise<Awaited<ReturnType<Tasks[Name]>>>}
 */
function ask(name, given) {
  const number = asked++;
  return started.then(
    () =>
      new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject });
        worker.postMessage({ number, name, given });
      }),
  );
}

const state = element('p', { id: 'state', role: 'status' });
const bar = element('progress', { 'aria-label': 'Progress', hidden: true });
const stop = action('Stop', () => worker.postMessage({ name: 'stop' }));
stop.hidden = true;
let isBusy = false;

/** @param {string} text */
function say(text) {
  state.textContent = text;
}

/** @param {Progress} progress */
function showProgress({ done, total, unit, doing }) {
  bar.hidden = false;
  bar.max = Math.max(total, 1);
  bar.value = done;
  const megabytes = (/** @type {number} */ bytes) => (bytes / 1e6).toFixed(1);
  say(
    unit === 'bytes'
      ? `${doing}: ${megabytes(done)} of ${megabytes(total)} MB`
      : `${doing}: ${integer(done)} of ${count(total, 'trace')}`,
  );
}

/**
 * Runs one piece of work at a time, and says how it went.
 *
 * @param {() => Promise<string>} work returns what is said in the end
 * @param {boolean} [canStop]
 */
async function run(work, canStop = false) {
  if (isBusy) return;
  isBusy = true;
  stop.hidden = !canStop;
  document.body.setAttribute('aria-busy', 'true');
  try {
    say(await work());
  } catch (error) {
    say(`That did not work: ${/** @type {Error} */ (error).message}.`);
  } finally {
    isBusy = false;
    stop.hidden = true;
    bar.hidden = true;
    document.body.setAttribute('aria-busy', 'false');
  }
}

/** @param {string} label @param {() => void} click */
function action(label, click) {
  return element('button', { type: 'button', click }, label);
}

/**
 * @param {string} name
 * @param {HTMLElement} field
 */
function labelled(name, field) {
  return element('label', `${name} `, field);
}

/** @param {Array<[value: string, title: string]>} options */
function choice(options) {
  return element(
    'select',
    options.map(([value, title]) => element('option', { value }, title)),
  );
}

/* The parts of the page */

const picker = element('input', {
  type: 'file',
  multiple: true,
  change: () => {
    const files = [...(picker.files ?? [])];
    // Otherwise the same files could not be opened again.
    picker.value = '';
    read(files);
  },
});
const pasted = element('textarea', { rows: '5', spellcheck: 'false', 'aria-label': 'Traces as text' });
const level = choice([
  ['aggregated', 'Secrets and personal data'],
  ['private', 'Secrets alone'],
  ['none', 'Nothing'],
]);
const strict = element('input', { type: 'checkbox', checked: true });
const method = choice([
  ['lexical', 'their words'],
  ['prefix', 'their meaning, with a model of 24 MB that is fetched once'],
]);
const wanted = element('input', { type: 'text', value: '10%', size: '6', spellcheck: 'false' });
const listOfTraces = element('div');
const listOfChanges = element('div');
const report = element('div', { id: 'report' });
const listOfChosen = element('div');
const saveChosen = action('Save the chosen traces', () => save('chosen'));
saveChosen.hidden = true;
const later = element(
  'div',
  { hidden: true },
  section(
    'Clean',
    finding(
      'What is replaced is shown first. Patterns cannot know every secret: read what you share. ',
      element('a', { href: '../docs/cleaning.html' }, 'What is found'),
    ),
    element(
      'p.actions',
      labelled('Replace', level),
      element('label', strict, ' strictly'),
      action('Clean', clean),
    ),
    listOfChanges,
  ),
  section('Score', element('p.actions', labelled('Compare traces by', method), action('Score', score))),
  section(
    'Select',
    finding(
      'A set that stands for all traces. ',
      element('a', { href: '../docs/select.html' }, 'How it is chosen'),
    ),
    element('p.actions', labelled('Number or percentage', wanted), action('Select', selectTraces)),
    listOfChosen,
  ),
  section(
    'Save',
    element(
      'p.actions',
      saveChosen,
      action('Save all traces', () => save('all')),
    ),
  ),
  report,
);

/** @type {HTMLElement} */ (document.getElementById('try')).append(
  element('h1', 'Try it'),
  element(
    'p.about',
    'Reads the logs of agents, cleans and scores them, and chooses what is worth sharing. Everything is computed in this page; nothing leaves the browser. ',
    element('a', { href: '../docs/formats.html' }, 'Formats'),
  ),
  section(
    'Read',
    finding('Drop files anywhere on the page, open them, or paste their text.'),
    element('p.actions', labelled('Open files', picker), action('Read examples', readExamples)),
    more(
      'Paste text',
      pasted,
      element(
        'p.actions',
        action('Read the text', () => read([new File([pasted.value], 'pasted')])),
      ),
    ),
    listOfTraces,
  ),
  later,
  element('div.state', state, bar, stop),
);
for (const name of ['dragover', 'drop']) addEventListener(name, (event) => event.preventDefault());
addEventListener('drop', ({ dataTransfer }) => read([...(dataTransfer?.files ?? [])]));
say('There are no traces yet.');

/** @param {File[]} files */
function read(files) {
  if (files.length > 0) run(() => readAll(files), true);
}

function readExamples() {
  run(async () => {
    const response = await fetch('examples.jsonl');
    if (!response.ok) throw new Error(`the examples cannot be fetched: ${response.status}`);
    return readAll([new File([await response.blob()], 'examples.jsonl')]);
  }, true);
}

/** @param {File[]} files */
async function readAll(files) {
  say('Reading…');
  const { count: total, errors, errorCount } = await ask('read', { files });
  forget();
  later.hidden = total === 0;
  const traces = await listing(total, async (from) =>
    (await ask('list', { from, count: LISTED })).map(({ index, name, place, format, steps }) =>
      foldable([foreign(name)], `${format}, ${count(steps, 'step')}`, async () =>
        stepsOf(await ask('open', { index }), place),
      ),
    ),
  );
  const unread = table(
    `${count(errorCount, 'record')} could not be read`,
    [
      { title: 'Where', cell: ({ file, line }) => [foreign(file), ` line ${line}`] },
      { title: 'Why', wide: true, cell: ({ message }) => foreign(message) },
    ],
    errors,
  );
  listOfTraces.replaceChildren(
    traces,
    ...(errorCount === 0 ? [] : [unread]),
    action('Start over', startOver),
  );
  const bad = errorCount === 0 ? '' : `, ${count(errorCount, 'record')} could not be read`;
  return `${count(total, 'trace')} read${bad}.`;
}

function startOver() {
  run(async () => {
    await ask('clear', undefined);
    forget();
    listOfTraces.replaceChildren();
    later.hidden = true;
    picker.focus();
    return 'There are no traces yet.';
  });
}

/** Removes what was computed of other traces. */
function forget() {
  for (const part of [listOfChanges, report, listOfChosen]) part.replaceChildren();
  saveChosen.hidden = true;
}

function clean() {
  run(async () => {
    const given = /** @type {Parameters<Tasks['clean']>[0]} */ ({
      level: level.value,
      strict: strict.checked,
    });
    const { redactions, changed, stopped } = await ask('clean', given);
    forget();
    if (stopped) return 'Cleaning was stopped: the traces are as they were.';
    if (given.level === 'none') return 'The traces are as they were read.';
    const kinds = Object.entries(redactions).map(([type, number]) => `${integer(number)} ${type}`);
    if (kinds.length === 0) return 'Cleaned: nothing was found.';
    listOfChanges.replaceChildren(
      finding(`Replaced: ${kinds.join(', ')}.`),
      await listing(changed.length, async (from) => {
        const indices = changed.slice(from, from + LISTED);
        return (await ask('changes', { indices })).map((change) =>
          foldable([foreign(change.name)], count(change.count, 'text'), async () => changesIn(change)),
        );
      }),
    );
    return `Cleaned: ${count(changed.length, 'trace')} changed.`;
  }, true);
}

function score() {
  run(async () => {
    const given = /** @type {Parameters<Tasks['score']>[0]} */ ({ method: method.value });
    const { report: figures, scored, seconds, computed } = await ask('score', given);
    report.replaceChildren(...drawReport(figures, 'div'));
    report.scrollIntoView();
    return `${integer(scored)} scored in ${seconds.toFixed(2)} s (${computed}).`;
  }, true);
}

function selectTraces() {
  run(async () => {
    const text = wanted.value.trim();
    const number = /** @type {number | `${number}%`} */ (/^\d+$/.test(text) ? Number(text) : text);
    const { explanation, total, chosen } = await ask('select', { count: number });
    saveChosen.hidden = chosen.length === 0;
    listOfChosen.replaceChildren(
      finding(explanation),
      table(
        'The chosen traces, the most valuable first',
        [
          { title: 'Trace', wide: true, cell: ({ rank, name }) => [`${rank}. `, foreign(name)] },
          { title: 'Stands for', number: true, cell: ({ standsFor }) => integer(standsFor) },
          { title: 'Covered so far', number: true, cell: ({ covered }) => percent(covered, 1) },
          {
            title: 'Such as',
            wide: true,
            cell: ({ similar }) => similar.map((name) => element('div', foreign(name))),
          },
        ],
        chosen,
      ),
    );
    return `${integer(chosen.length)} of ${count(total, 'trace')} chosen.`;
  }, true);
}

/** @param {'all' | 'chosen'} which */
function save(which) {
  run(async () => {
    const { file, count: number, cleaned } = await ask('save', { which });
    const href = URL.createObjectURL(file);
    const link = element('a', { href, download: `traces${cleaned ? '.clean' : ''}.jsonl` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    return `${count(number, 'trace')} saved${cleaned ? '' : ', which were not cleaned'}.`;
  });
}

/**
 * @param {number} total
 * @param {(from: number) => Promise<HTMLElement[]>} itemsFrom
 */
async function listing(total, itemsFrom) {
  const list = element('ol.folds');
  const grow = action('', async () => {
    const from = list.children.length;
    list.append(...(await itemsFrom(from)).map((item) => element('li', item)));
    const left = total - list.children.length;
    grow.hidden = left === 0;
    grow.textContent = `Show ${integer(Math.min(left, LISTED))} more of ${integer(left)}`;
    const first = /** @type {HTMLElement | null | undefined} */ (
      list.children[from]?.querySelector('summary')
    );
    if (from > 0) first?.focus();
  });
  grow.click();
  return element('div', list, grow);
}

/**
 * Something that is drawn when it is opened for the first time.
 *
 * @param {Node[]} title
 * @param {string} note
 * @param {() => Promise<Node[]>} draw
 */
function foldable(title, note, draw) {
  const details = element(
    'details',
    {
      toggle: async () => {
        if (!details.open || details.children.length > 1) return;
        const body = element('div.fold');
        details.append(body);
        body.append(...(await draw()));
      },
    },
    element('summary', ...title, element('span.where', note)),
  );
  return details;
}

/** @param {Awaited<ReturnType<Tasks['open']>>} trace @param {string} place */
function stepsOf({ known, success, confidence, leftOut, count: total, steps }, place) {
  const outcome = known.success ? (success ? 'Succeeded' : 'Failed') : 'Success is not known';
  const sure = Number.isFinite(confidence) ? `, confidence ${decimal(confidence)}` : '';
  const without = Object.entries(leftOut).map(([kind, number]) => `${integer(number)} ${kind}`);
  return [
    element('p.soft', foreign(place), `. ${outcome}${sure}.`),
    without.length > 0 && element('p.soft', `Left out: ${without.join(', ')}.`),
    element(
      'ol.steps',
      steps.map(({ type, tool, text }) =>
        element(
          'li',
          element('b', foreign(type)),
          tool !== '' && element('span', ' ', foreign(tool, { class: 'mono' })),
          element('pre', { tabindex: '0' }, foreign(text)),
        ),
      ),
    ),
    total > steps.length && element('p.soft', `and ${count(total - steps.length, 'step')} more`),
  ].filter((part) => part !== false);
}

/** @param {Awaited<ReturnType<Tasks['changes']>>[number]} change */
function changesIn({ changes, count: total }) {
  return [
    ...changes.map(({ path, pieces }) =>
      element(
        'div.change',
        element('span.where', foreign(path)),
        element(
          'pre',
          { tabindex: '0' },
          pieces.map((piece) =>
            'kept' in piece
              ? foreign(piece.kept)
              : element('span', element('del', foreign(piece.gone)), element('ins', piece.placeholder)),
          ),
        ),
      ),
    ),
    ...(total > changes.length
      ? [element('p.soft', `and ${count(total - changes.length, 'text')} more`)]
      : []),
  ];
}
