// The page to try the package: files of agents in, a set that may be shared out. A worker holds the traces and does the work.

import { element, foreign, more, table } from '../../report/dom.mjs';
import { drawReport } from '../../report/draw.mjs';
import { count, integer } from '../../report/format.mjs';

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
 * Runs one piece of work at a time, and says how it went: in a line of its step too.
 *
 * @param {HTMLElement} step
 * @param {() => Promise<string>} work returns what is said in the end
 */
async function run(step, work) {
  if (isBusy) return;
  isBusy = true;
  stop.hidden = false;
  document.body.setAttribute('aria-busy', 'true');
  try {
    const said = await work();
    say(said);
    didOf(step).textContent = said;
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

/** The line of what a step did. @param {HTMLElement} step */
const didOf = (step) => /** @type {HTMLElement} */ (step.querySelector('.did'));

/**
 * A step of the flow: its name, what it is for, its controls, what it did, and what came of it.
 *
 * @param {string} title
 * @param {import('../../report/dom.mjs').Children} purpose
 * @param {import('../../report/dom.mjs').Children[]} parts
 */
function stepOf(title, purpose, ...parts) {
  const id = title.toLowerCase();
  return element(
    'li.part',
    { 'aria-labelledby': id },
    element('h2', { id }, title),
    element('p.soft', ...[purpose].flat()),
    element('div.body', ...parts),
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
const zone = element('label.drop', element('b', 'Drop files here, or open them'), picker);
const pasted = element('textarea', { rows: '5', spellcheck: 'false', 'aria-label': 'Traces as text' });
const level = choice([
  ['aggregated', 'secrets and personal data'],
  ['private', 'secrets alone'],
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
const saveChosen = action('Save the chosen traces', () => save('chosen'));
const didLine = () => element('p.did');
const readStep = stepOf(
  'Read',
  [
    'The logs of your agents, in any of ',
    element('a', { href: '../docs/formats.html' }, 'these formats'),
    '.',
  ],
  zone,
  element('p.actions', action('Read examples', readExamples), action('Start over', startOver)),
  more(
    'Paste text',
    pasted,
    element(
      'p.actions',
      action('Read the text', () => read([new File([pasted.value], 'pasted')])),
    ),
  ),
  didLine(),
  listOfTraces,
);
const cleanStep = stepOf(
  'Clean',
  [
    'Patterns cannot know every secret, and know no names: read what you share. ',
    element('a', { href: '../docs/cleaning.html' }, 'What is found'),
  ],
  element(
    'p.actions',
    labelled('Replace', level),
    element('label', strict, ' strictly'),
    action('Clean', clean),
  ),
  didLine(),
  listOfChanges,
);
const chooseStep = stepOf(
  'Choose',
  [
    'A set that stands for all traces, and how all of them score. ',
    element('a', { href: '../docs/select.html' }, 'How it is chosen'),
  ],
  element(
    'p.actions',
    labelled('Number or percentage', wanted),
    labelled('Compare scores by', method),
    action('Choose', choose),
  ),
  didLine(),
);
const saveStep = stepOf(
  'Save',
  [
    'A folder in a zip: sessions in their own format, cleaned as above, and a list of what is still to be looked at. ',
    element('a', { href: '../docs/where-to-share.html' }, 'Where to share it'),
  ],
  element(
    'p.actions',
    saveChosen,
    action('Save all traces', () => save('all')),
  ),
  didLine(),
);
const later = [cleanStep, chooseStep, saveStep];

/** @type {HTMLElement} */ (document.getElementById('try')).append(
  element('h1', 'Try it'),
  element(
    'p.about',
    'From what your agents have left on your disk to a set that you may share. Everything is computed in this page; nothing leaves the browser.',
  ),
  element('ol.flow', readStep, ...later),
  report,
  element('div.state', state, bar, stop),
);
/** @type {Record<string, boolean>} whether files are over the page after an event */
const OVER = { dragover: true, dragleave: false, drop: false };
for (const [name, isOver] of Object.entries(OVER))
  addEventListener(name, (event) => {
    event.preventDefault();
    zone.classList.toggle('over', isOver);
  });
addEventListener('drop', ({ dataTransfer }) => read([...(dataTransfer?.files ?? [])]));
say('There are no traces yet.');
show(0);

/** Shows the steps that there are traces for. @param {number} total */
function show(total) {
  for (const step of later) step.classList.toggle('later', total === 0);
  saveChosen.hidden = true;
}

/** @param {File[]} files */
function read(files) {
  if (files.length > 0) run(readStep, () => readAll(files));
}

function readExamples() {
  run(readStep, async () => {
    const response = await fetch('examples.jsonl');
    if (!response.ok) throw new Error(`the examples cannot be fetched: ${response.status}`);
    return readAll([new File([await response.blob()], 'examples.jsonl')]);
  });
}

/** @param {File[]} files */
async function readAll(files) {
  say('Reading…');
  const { count: total, agents, files: fileCount, errors, errorCount } = await ask('read', { files });
  forget(cleanStep, chooseStep, saveStep);
  show(total);
  const traces = await listing(total, async (from) =>
    (await ask('list', { from, count: LISTED })).map(({ name, place, format, steps }) =>
      element(
        'p',
        foreign(name),
        element('span.where', `${format}, ${count(steps, 'step')} · `, foreign(place)),
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
  const title = `The ${count(total, 'trace')}`;
  listOfTraces.replaceChildren(
    ...(total === 0 ? [] : [more(title, traces)]),
    ...(errorCount === 0 ? [] : [unread]),
  );
  const bad = errorCount === 0 ? '' : `; ${count(errorCount, 'record')} could not be read`;
  const from = total === 0 ? '' : `, in ${count(agents, 'format')}, from ${count(fileCount, 'file')}`;
  return `${count(total, 'trace')} read${from}${bad}.`;
}

function startOver() {
  run(readStep, async () => {
    await ask('clear', undefined);
    forget(readStep, cleanStep, chooseStep, saveStep);
    listOfTraces.replaceChildren();
    show(0);
    picker.focus();
    return 'There are no traces yet.';
  });
}

/** Removes what was computed of other traces. @param {HTMLElement[]} steps those that have to be done again */
function forget(...steps) {
  for (const step of steps) didOf(step).textContent = '';
  if (steps.includes(cleanStep)) listOfChanges.replaceChildren();
  report.replaceChildren();
  saveChosen.hidden = true;
}

/** How the reader wants traces to be cleaned. */
const cleaning = () =>
  /** @type {Parameters<Tasks['clean']>[0]} */ ({ level: level.value, strict: strict.checked });

function clean() {
  run(cleanStep, async () => {
    const { redactions, changed, stopped } = await ask('clean', cleaning());
    forget(cleanStep, chooseStep, saveStep);
    if (stopped) return 'Cleaning was stopped: the traces are as they were.';
    const kinds = Object.entries(redactions).map(([type, number]) => `${integer(number)} ${type}`);
    if (kinds.length === 0) return 'Cleaned: nothing was found.';
    const changes = await listing(changed.length, async (from) => {
      const indices = changed.slice(from, from + LISTED);
      return (await ask('changes', { indices })).map((change) =>
        foldable([foreign(change.name)], count(change.count, 'text'), async () => changesIn(change)),
      );
    });
    listOfChanges.replaceChildren(more('What was replaced', changes));
    return `Cleaned: ${count(changed.length, 'trace')} changed, ${kinds.join(', ')} replaced.`;
  });
}

function choose() {
  run(chooseStep, async () => {
    const text = wanted.value.trim();
    const given = /** @type {Parameters<Tasks['choose']>[0]} */ ({
      count: /^\d+$/.test(text) ? Number(text) : text,
      method: method.value,
    });
    const { figures, computed } = await ask('choose', given);
    forget(saveStep);
    const chosen = figures.selection?.chosen ?? 0;
    saveChosen.hidden = chosen === 0;
    report.replaceChildren(...drawReport(figures, 'div'));
    const { seconds } = figures;
    return `${integer(chosen)} of ${count(figures.count, 'trace')} chosen; all scored in ${seconds.toFixed(2)} s (${computed}).`;
  });
}

/** @param {'all' | 'chosen'} which */
function save(which) {
  run(saveStep, async () => {
    const {
      file,
      count: number,
      leftOut,
      places,
      first,
    } = await ask('save', {
      which,
      cleaning: cleaning(),
    });
    const href = URL.createObjectURL(file);
    const link = element('a', { href, download: 'shared.zip' });
    link.click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    const left = leftOut === 0 ? '' : `, ${integer(leftOut)} left out`;
    const found = first
      ? ` ${count(places, 'place')} look like addresses or signatures, first line ${first.line} of ${first.file}: manifest.jsonl names them.`
      : '';
    return `${count(number, 'session')} saved${left}. Look for names of people and streets before you share: they are not found.${found}`;
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
