// The page to try the package: traces in, scores out. Everything is computed here.

import { element, foreign, section, table } from '../../report/dom.mjs';
import { drawReport } from '../../report/draw.mjs';
import { decimal } from '../../report/format.mjs';
import { configureEmbedder, embedderStatus, Scorer, TraceMemory } from '../browser/main.mjs';

const { ReportCollector } = require('../../cli/report/collector.js');
const { version } = require('../../package.json');

/** @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace */
/** @typedef {{ line: number, value?: ReasoningTrace, error?: string }} Entry */
/** @typedef {import('../../index.js').ScoreBreakdown} ScoreBreakdown */

/** Where the files of a model may lie beside the page, and how they are called. */
const MODEL = 'model/';
const WEIGHTS = 'model.safetensors';
const TOKENIZER = 'tokenizer.json';

/** How similar traces are looked for: these many, for these many traces. */
const NEIGHBOURS = 3;
const LISTED = 20;
/** What is shown of a trace. */
const EXCERPT = 120;

const partOf = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

const input = element('textarea', {
  rows: '8',
  spellcheck: 'false',
  'aria-label': 'Traces',
  placeholder: 'Traces as JSON: one, an array of them, or one a line. Files can be dropped here.',
});
const state = element('p', { id: 'state', role: 'status' }, '');
const button = element('button', { type: 'button', click: () => score() }, 'Score');
const traceFiles = picker('Open traces…', '.json,.jsonl,.ndjson', readTraces);
const modelFiles = picker('Open a model…', '.safetensors,.json', readModel);

/** @type {Promise<boolean> | undefined} */
let model;

partOf('try').append(
  element('h1', {}, 'Score traces'),
  element(
    'p',
    {},
    'Scores, and what they are made of, computed in this page by @knowledgepulse/native in WebAssembly. Nothing leaves the browser.',
  ),
  input,
  element('p', { class: 'actions' }, button, traceFiles, modelFiles),
  state,
);
for (const name of ['dragover', 'drop']) addEventListener(name, (event) => event.preventDefault());
addEventListener('drop', ({ dataTransfer }) => readFiles([...(dataTransfer?.files ?? [])]));
say('Drop traces, or paste them, and choose Score.');

/**
 * A button that opens files.
 *
 * @param {string} label
 * @param {string} accept
 * @param {(files: File[]) => void} open
 */
function picker(label, accept, open) {
  const field = element('input', {
    type: 'file',
    multiple: true,
    accept,
    'aria-label': label,
    change: () => open([...(field.files ?? [])]),
  });
  return element('label', { class: 'picker' }, `${label} `, field);
}

/** @param {string} text */
function say(text) {
  state.textContent = text;
}

/** @param {File[]} files */
function readFiles(files) {
  return files.some(({ name }) => name.endsWith('.safetensors')) ? readModel(files) : readTraces(files);
}

/** @param {File[]} files */
async function readTraces(files) {
  const texts = await Promise.all(files.map((file) => file.text()));
  input.value = texts.map((text) => text.trimEnd()).join('\n');
  await score();
}

/** @param {File[]} files */
async function readModel(files) {
  const weights = files.find(({ name }) => name.endsWith('.safetensors'));
  const tokenizer = files.find(({ name }) => name === TOKENIZER);
  if (weights === undefined || tokenizer === undefined) {
    say(`A model is two files, which are opened together: ${WEIGHTS} and ${TOKENIZER}.`);
    return;
  }
  if (model !== undefined && (await model)) {
    say('There is a model already. To take another one, load the page again.');
    return;
  }
  model = configure(() => Promise.all([weights.arrayBuffer(), tokenizer.arrayBuffer()]));
  say((await model) ? 'The model is open.' : '');
}

/** The model beside the page, if there is one; without any, novelty is 0.5. */
function modelBeside() {
  return configure(() => Promise.all([fetchBytes(WEIGHTS), fetchBytes(TOKENIZER)]));
}

/** @param {string} name */
async function fetchBytes(name) {
  const response = await fetch(MODEL + name);
  if (!response.ok) throw new Error(`${MODEL}${name}: ${response.status}`);
  return response.arrayBuffer();
}

/**
 * Whether there is a model now.
 *
 * @param {() => Promise<ArrayBuffer[]>} read
 */
async function configure(read) {
  try {
    const [weights, tokenizer] = (await read()).map((bytes) => new Uint8Array(bytes));
    configureEmbedder({ model: { weights, tokenizer } });
    return true;
  } catch (error) {
    console.info(`no model: ${/** @type {Error} */ (error).message}`);
    return false;
  }
}

/**
 * The traces in a text: one JSON value, or one a line. An array is as many as it has elements.
 *
 * @param {string} text
 * @returns {Entry[]}
 */
function tracesIn(text) {
  const whole = parsed(text, 1);
  if (!whole.some(({ error }) => error)) return whole;
  return text.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : parsed(line, index + 1)));
}

/**
 * @param {string} text
 * @param {number} line
 * @returns {Entry[]}
 */
function parsed(text, line) {
  try {
    const value = JSON.parse(text);
    return (Array.isArray(value) ? value : [value]).map((value) => ({ line, value }));
  } catch (error) {
    return [{ line, error: /** @type {Error} */ (error).message }];
  }
}

async function score() {
  const text = input.value.trim();
  if (text === '') return say('There are no traces yet.');
  button.disabled = true;
  try {
    say('Looking for a model…');
    model ??= modelBeside();
    if (!(await model)) model = undefined;
    say('Loading…');
    const status = await embedderStatus();
    const begun = performance.now();
    const { entries, collector } = await scoreAll(tracesIn(text), status.dtype);
    const seconds = (performance.now() - begun) / 1000;
    partOf('report').replaceChildren(
      ...drawReport(collector.summary({ finishedAt: new Date(), seconds })),
      await neighbours(entries),
    );
    const computed = status.available
      ? `${status.dtype}, ${status.kernel}`
      : `without a model, so with a novelty of 0.5: ${status.reason}`;
    say(`${entries.length} scored in ${seconds.toFixed(2)} s (${computed}).`);
  } catch (error) {
    say(`Something went wrong: ${/** @type {Error} */ (error).message}`);
    throw error;
  } finally {
    button.disabled = false;
  }
}

/**
 * @param {Entry[]} entries
 * @param {'fp32' | 'q8' | null} dtype
 */
async function scoreAll(entries, dtype) {
  const source = 'the page';
  const collector = new ReportCollector({
    threshold: 0.5,
    sources: [source],
    novelty: 'prefix',
    dtype,
    version,
  });
  const scorer = new Scorer();
  /** @type {ReasoningTrace[]} */
  const scored = [];
  for (const [position, { line, value, error }] of entries.entries()) {
    say(`Scoring ${position + 1} of ${entries.length}…`);
    /** @type {ScoreBreakdown | undefined} */
    let breakdown;
    let message = error;
    if (value !== undefined) {
      try {
        breakdown = await scorer.explain(value);
      } catch (thrown) {
        message = /** @type {Error} */ (thrown).message;
      }
    }
    if (value === undefined || breakdown === undefined) {
      collector.addError({ source, line, message: message ?? 'it could not be scored' });
      continue;
    }
    collector.add({
      index: scored.length,
      id: value.id,
      source,
      line,
      domain: value.metadata.task_domain,
      success: value.metadata.success,
      excerpt: value.task.objective,
      breakdown,
    });
    scored.push(value);
  }
  return { entries: scored, collector };
}

/** The most similar traces of the first ones, by their words. @param {ReasoningTrace[]} traces */
async function neighbours(traces) {
  const memory = new TraceMemory();
  for (const trace of traces) await memory.add(trace);
  const rows = [];
  for (const [index, trace] of traces.slice(0, LISTED).entries()) {
    const found = await memory.nearest(trace, NEIGHBOURS + 1);
    rows.push({
      index,
      nearest: found.filter((neighbour) => neighbour.index !== index).slice(0, NEIGHBOURS),
    });
  }
  const nameOf = (/** @type {number} */ index) => {
    const { id, task } = traces[index];
    return foreign(`${index + 1}. ${(task.objective || id || '').slice(0, EXCERPT)}`);
  };
  return section(
    'Nearest neighbours',
    table(
      'The most similar traces, by the words they share',
      [
        { title: 'Trace', wide: true, cell: ({ index }) => nameOf(index) },
        {
          title: 'Most similar',
          wide: true,
          cell: ({ nearest }) =>
            nearest.map(({ index, similarity }) =>
              element('div', {}, `${decimal(similarity)} `, nameOf(index)),
            ),
        },
      ],
      rows,
    ),
  );
}
