// The page to try the package: an agent's folder in, the desk, and what was kept as a zip. A worker holds the sessions and does the work.

import { drawDesk } from '../../report/desk.mjs';
import { action, download, element } from '../../report/dom.mjs';
import { count, integer } from '../../report/format.mjs';

/** @import { Given, Progress, Tasks } from './worker.mjs' */

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
// Behind what it stops, which waits until the worker has started.
const stop = action('Stop', () => started.then(() => worker.postMessage({ name: 'stop' })), { hidden: true });
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
      : `${doing}: ${integer(done)} of ${count(total, 'session')}`,
  );
}

/**
 * Runs one piece of work at a time, and says how it went.
 *
 * @param {() => Promise<string>} work returns what is said in the end
 */
async function run(work) {
  if (isBusy) return;
  isBusy = true;
  stop.hidden = false;
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

/**
 * A button that opens files, or a folder.
 *
 * @param {string} label
 * @param {boolean} isFolder
 */
function picker(label, isFolder) {
  const input = element('input', {
    ...{ type: 'file', multiple: true, webkitdirectory: isFolder, 'aria-label': label },
    change: () => {
      const files = [...(input.files ?? [])].map((file) => ({
        file,
        path: file.webkitRelativePath || file.name,
      }));
      // Otherwise the same files could not be opened again.
      input.value = '';
      read(files);
    },
  });
  return element('label.button', `${label} `, input);
}

const level = element(
  'select',
  [
    ['aggregated', 'secrets and personal data'],
    ['private', 'secrets alone'],
  ].map(([value, title]) => element('option', { value }, title)),
);
const begin = element(
  'main.begin',
  element('h1', 'Try it'),
  element(
    'p.soft',
    'From what your agents have left on your disk to a set that you may share. Everything is computed in this page; nothing leaves the browser.',
  ),
  element(
    'div.drop',
    element(
      'p',
      element('b', 'Drop a folder here'),
      ': ',
      element('code', '~/.claude'),
      ', ',
      element('code', '~/.codex'),
      ', or sessions in any of ',
      element('a', { href: '../docs/formats.html' }, 'these formats'),
      '.',
    ),
    element(
      'p.choices',
      picker('Open files', false),
      picker('Open a folder', true),
      action('Read examples', readExamples),
    ),
    element(
      'p',
      element('label', 'Replace ', level),
      ' ',
      element('a', { href: '../docs/cleaning.html' }, 'What is found'),
    ),
  ),
);
/** @type {ReturnType<typeof drawDesk> | undefined} */
let desk;
const again = action('Start over', () => location.reload(), { hidden: true });
const place = /** @type {HTMLElement} */ (document.getElementById('try'));
place.append(begin);
/** @type {HTMLElement} */ (document.querySelector('.top')).append(
  element('div.state', state, bar, stop, again),
);

/** @type {Record<string, boolean>} whether files are over the page after an event */
const OVER = { dragover: true, dragleave: false, drop: false };
for (const [name, isOver] of Object.entries(OVER))
  addEventListener(name, (event) => {
    event.preventDefault();
    begin.classList.toggle('over', isOver);
  });
addEventListener('drop', async ({ dataTransfer }) => {
  // What was dropped is gone after the first wait.
  const dropped = [...(dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry());
  /** @type {Given[]} */
  const files = [];
  for (const entry of dropped) if (entry) await collect(entry, files);
  read(files);
});

/**
 * Finds the files in what was dropped.
 *
 * @param {FileSystemEntry} entry
 * @param {Given[]} files
 */
async function collect(entry, files) {
  const path = entry.fullPath.replace(/^\//, '');
  if (entry.isFile) {
    const file = /** @type {FileSystemFileEntry} */ (entry);
    files.push({ file: await new Promise((resolve, reject) => file.file(resolve, reject)), path });
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    /** A part of the folder: browsers give a hundred at a time. @type {FileSystemEntry[]} */
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (entries.length === 0) return;
    for (const each of entries) await collect(each, files);
  }
}

/** @param {Given[]} files */
function read(files) {
  if (files.length > 0) run(() => readAll(files));
}

function readExamples() {
  run(async () => {
    const response = await fetch('examples.jsonl');
    if (!response.ok) throw new Error(`the examples cannot be fetched: ${response.status}`);
    return readAll([{ file: new File([await response.blob()], 'examples.jsonl'), path: 'examples.jsonl' }]);
  });
}

/** @param {Given[]} files */
async function readAll(files) {
  say('Reading…');
  const { count: total, skipped } = await ask('read', { files });
  if (total === 0) return 'There is no session in these files.';
  const cleaning = /** @type {Parameters<Tasks['desk']>[0]['cleaning']} */ ({
    level: level.value,
    strict: true,
  });
  const drawn = await ask('desk', { cleaning });
  desk?.close();
  location.hash = '';
  desk = drawDesk(drawn, {
    conversationOf: (position) => ask('conversation', position),
    save: { label: 'Save the set', run: (decisions) => run(() => save(decisions)) },
  });
  begin.hidden = true;
  again.hidden = false;
  place.append(desk.root);
  const beside = skipped > 0 ? `; ${count(skipped, 'file')} beside the sessions not read` : '';
  const sessions = drawn.sessions.filter(({ parent }) => parent === null);
  return `${count(sessions.length, 'session')} read${beside}.`;
}

/** @param {import('../../report/decisions.mjs').Decisions} decisions */
async function save(decisions) {
  const lines = decisions.toJsonLines().trim().split('\n').filter(Boolean);
  const {
    file,
    count: number,
    leftOut,
    places,
  } = await ask('save', { decisions: lines.map((line) => JSON.parse(line)) });
  download('shared.zip', file);
  const left = leftOut === 0 ? '' : `, ${integer(leftOut)} left out`;
  const found = places === 0 ? '' : `; manifest.jsonl names ${count(places, 'place')} to look at`;
  return `${count(number, 'session')} saved${left}${found}.`;
}
say('Nothing is read yet.');
