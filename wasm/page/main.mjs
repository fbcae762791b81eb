// The page to try the package: traces in, scores out. Everything is computed here.

import { element, foreign, section, table } from '../../report/dom.mjs';
import { drawReport } from '../../report/draw.mjs';
import { decimal } from '../../report/format.mjs';
import { configureEmbedder, embedderStatus, Scorer, TraceMemory } from '../browser/main.mjs';

const loader = require('../../lib/loader.js');
const { version } = require('../../package.json');

/** @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace */
/** @typedef {{ line: number, value?: ReasoningTrace, error?: string }} Entry */
/** @typedef {import('../../index.js').ScoreBreakdown} ScoreBreakdown */
/** @typedef {import('../../index.js').EmbedderStatus} EmbedderStatus */

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

/**
 * The status of the embedder; undefined while no model has been found or opened.
 *
 * @type {Promise<EmbedderStatus | undefined>}
 */
let embedder = Promise.resolve(undefined);

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
    change: () => {
      const files = [...(field.files ?? [])];
      // Otherwise the same files could not be opened again.
      field.value = '';
      open(files);
    },
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
  if (await embedder) {
    say('A model was opened already. To take another one, load the page again.');
    return;
  }
  say('Opening the model…');
  try {
    const status = await takeModel(() => Promise.all([weights.arrayBuffer(), tokenizer.arrayBuffer()]));
    say(
      status.available
        ? `The model is open (${status.dtype}, ${status.kernel}). Choose Score to use it.`
        : `The model cannot be used: ${status.reason}. To take another one, load the page again.`,
    );
  } catch (error) {
    say(`The model cannot be opened: ${/** @type {Error} */ (error).message}`);
  }
}

/** The model beside the page. Rejects if there is none. */
function modelBeside() {
  return takeModel(() => Promise.all([fetchBytes(WEIGHTS), fetchBytes(TOKENIZER)]));
}

/** @param {string} name */
async function fetchBytes(name) {
  const response = await fetch(MODEL + name);
  if (!response.ok) throw new Error(`${MODEL}${name}: ${response.status}`);
  return response.arrayBuffer();
}

/**
 * Configures the embedder with a model, unless it has one: that can be done once. Resolves with its status. Rejects if the model cannot
 * be read, and another one can be taken then.
 *
 * @param {() => Promise<ArrayBuffer[]>} read
 * @returns {Promise<EmbedderStatus>}
 */
function takeModel(read) {
  const taken = embedder.then(async (status) => {
    if (status !== undefined) return status;
    const [weights, tokenizer] = (await read()).map((bytes) => new Uint8Array(bytes));
    configureEmbedder({ model: { weights, tokenizer } });
    return embedderStatus();
  });
  embedder = taken.catch(() => undefined);
  return taken;
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
    const status = await modelBeside().catch((error) => console.info(`no model: ${error.message}`));
    const begun = performance.now();
    const { entries, described } = await scoreAll(tracesIn(text), status?.available ? status : undefined);
    const seconds = (performance.now() - begun) / 1000;
    partOf('report').replaceChildren(...drawReport(figuresOf(described, seconds)), await neighbours(entries));
    say(`${entries.length} scored in ${seconds.toFixed(2)} s (${computedBy(status)}).`);
  } catch (error) {
    say(`Something went wrong: ${/** @type {Error} */ (error).message}`);
    throw error;
  } finally {
    button.disabled = false;
  }
}

/** What the scores rest on, in words. @param {EmbedderStatus | void} status */
function computedBy(status) {
  if (!status) return 'without a model, so novelty is 0.5';
  if (!status.available) return `without a model, so novelty is 0.5: ${status.reason}`;
  return `${status.dtype}, ${status.kernel}`;
}

/**
 * @param {Entry[]} entries
 * @param {EmbedderStatus | undefined} embedder undefined scores without one
 */
async function scoreAll(entries, embedder) {
  const source = 'the page';
  /** @type {object[]} */
  const described = [
    { threshold: 0.5, sources: [source], novelty: 'prefix', dtype: embedder?.dtype ?? null, version },
  ];
  // Without a model the embedder is left alone, so that a model can still be opened.
  const scorer = new Scorer({ embedder: embedder ? 'default' : null });
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
      described.push({ error: { source, line, message: message ?? 'it could not be scored' } });
      continue;
    }
    described.push({
      add: {
        source,
        line,
        index: null,
        format: 'trace',
        known: { success: true, confidence: true },
        id: value.id,
        objective: value.task.objective,
        domain: value.metadata.task_domain ?? 'default',
        success: value.metadata.success,
        breakdown,
        kept: true,
      },
    });
    scored.push(value);
  }
  return { entries: scored, described };
}

/**
 * The figures that the report draws.
 *
 * @param {object[]} described a run, but for its end, as the addon reads it
 * @param {number} seconds
 * @returns {import('../../report/data.js').Report}
 */
function figuresOf(described, seconds) {
  const run = { finishedAt: new Date().toISOString(), seconds, interrupted: false };
  const records = [...described, { run }];
  return JSON.parse(loader.addon.reportFigures(records.map((record) => JSON.stringify(record)).join('\n')));
}

/** The most similar traces of the first ones, by their words. @param {ReasoningTrace[]} traces */
async function neighbours(traces) {
  // It must not forget any: the index of a neighbour is its place in the memory.
  const memory = new TraceMemory({ maxElements: traces.length });
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
