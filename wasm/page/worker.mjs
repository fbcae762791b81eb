// The worker of the page to try it: holds the traces, and reads, cleans, scores and selects them, so that the page stays responsive.

import { cut } from '../../report/format.mjs';
import { clean, configureEmbedder, embedderStatus, Scorer, select, TraceMemory } from '../browser/main.mjs';
import { changesOf } from './changes.mjs';
import { fetchModel } from './model.mjs';

const loader = require('../../lib/loader.js');
const { version } = require('../../package.json');
/** @type {typeof import('../../lib/clean.js')} */
const { readCleaning } = require('../../lib/clean.js');
/** @type {typeof import('../../lib/read-traces.js')} */
const { readPlaced } = require('../../lib/read-traces.js');
/** @type {typeof import('../../lib/scorer.js')} */
const { explain } = require('../../lib/scorer.js');

/**
 * @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace
 * @typedef {import('../../index.js').CleanOptions} CleanOptions
 * @typedef {import('../../index.js').Manifest} Manifest
 * @typedef {import('../../lib/read-traces.js').PlacedResult} PlacedResult
 * @typedef {import('../../index.js').FormatName} FormatName
 */

/** @typedef {{ file: string, line: number, index: number | null }} Place */
/** @typedef {Place & { content: File, format: FormatName, known: NonNullable<PlacedResult['known']>, trace: ReasoningTrace, clean?: ReasoningTrace }} Entry */
/** @typedef {{ index: number, reason: string, standsFor: number }} Chosen */
/** @typedef {{ done: number, total: number, unit: 'bytes' | 'traces', doing: string }} Progress */

/** What a task may do: tell of its progress, and end early. @typedef {{ report: (progress: Progress) => void, signal: AbortSignal }} Task */

/** The most characters of a description of a run. */
const MOST_DESCRIBED = 100e6;

/** What is shown of a text, and how many of changed texts and of bad records. */
const EXCERPT = 160;
const CHANGES = 50;

/** How long a task runs before messages are taken, and how often it tells of its progress, in milliseconds. */
const TURN = 50;

/** @type {Entry[]} */
let entries = [];
/** @type {Array<Place & { message: string }>} */
let errors = [];
/** The chosen traces by their indices, the most valuable first. @type {Chosen[]} */
let chosen = [];
/** How they were chosen. */
let explanation = '';

/** @param {Entry} entry */
const current = ({ trace, clean }) => clean ?? trace;

/** What a trace is called. @param {number} index */
function nameOf(index) {
  const { task, id } = /** @type {any} */ (current(entries[index]) ?? {});
  // Texts may be megabytes long.
  const text = String(task?.objective || id || '(no objective)').slice(0, 2 * EXCERPT);
  return cut(text, EXCERPT);
}

/**
 * Calls `each` for every element, and lets messages in now and then.
 *
 * @template Element
 * @param {readonly Element[]} elements
 * @param {string} doing
 * @param {Task} task
 * @param {(element: Element, index: number) => Promise<void>} each
 * @returns {Promise<boolean>} whether it was stopped
 */
async function through(elements, doing, { report, signal }, each) {
  let last = performance.now();
  report({ done: 0, total: elements.length, unit: 'traces', doing });
  for (const [index, element] of elements.entries()) {
    await each(element, index);
    if (performance.now() - last > TURN) {
      report({ done: index + 1, total: elements.length, unit: 'traces', doing });
      await new Promise((resolve) => setTimeout(resolve));
      last = performance.now();
    }
    if (signal.aborted) return true;
  }
  return false;
}

/** The bytes of a file as they are read. @param {File} file @param {Task} task */
async function* bytesOf(file, { report, signal }) {
  let [done, last] = [0, 0];
  const reader = file.stream().getReader();
  for (let part = await reader.read(); !part.done && !signal.aborted; part = await reader.read()) {
    yield part.value;
    done += part.value.length;
    if (performance.now() - last > TURN) {
      report({ done, total: file.size, unit: 'bytes', doing: `Reading ${file.name}` });
      last = performance.now();
    }
  }
}

/** What the page can ask for. */
const tasks = {
  /** Reads files, beside those that were read before. @param {{ files: File[] }} given @param {Task} task */
  async read({ files }, task) {
    for (const file of files) {
      try {
        for await (const { trace, error, line, index, format, known } of readPlaced(bytesOf(file, task))) {
          const place = { file: file.name, line: line ?? 1, index };
          if (trace === undefined) errors.push({ ...place, message: error.message });
          else entries.push({ ...place, content: file, format: format ?? 'trace', known, trace });
        }
      } catch (thrown) {
        errors.push({ file: file.name, line: 1, index: null, message: messageOf(thrown) });
      }
    }
    // Neither is of the traces that came now.
    chosen = [];
    for (const entry of entries) entry.clean = undefined;
    return {
      count: entries.length,
      agents: new Set(entries.map(({ format }) => format)).size,
      files: new Set(entries.map(({ file }) => file)).size,
      errors: errors.slice(0, CHANGES),
      errorCount: errors.length,
    };
  },

  async clear() {
    [entries, errors, chosen] = [[], [], []];
  },

  /** Some of the traces. @param {{ from: number, count: number }} given */
  async list({ from, count }) {
    return entries.slice(from, from + count).map(({ file, line, index, format, trace }, at) => ({
      name: nameOf(from + at),
      place: `${file}, line ${line}${index === null ? '' : `[${index}]`}`,
      format,
      steps: Array.isArray(trace?.steps) ? trace.steps.length : 0,
    }));
  },

  /** Cleans the traces. @param {CleanOptions} given @param {Task} task */
  async clean(given, task) {
    for (const entry of entries) entry.clean = undefined;
    /** @type {Map<string, number>} */
    const redactions = new Map();
    /** @type {number[]} */
    const changed = [];
    const stopped = await through(entries, 'Cleaning', task, async (entry, index) => {
      const result = await clean(entry.trace, given);
      entry.clean = result.cleaned;
      if (result.redactions.length > 0) changed.push(index);
      for (const { type, count } of result.redactions)
        redactions.set(type, (redactions.get(type) ?? 0) + count);
    });
    // Half of a set would be taken for clean.
    if (stopped) for (const entry of entries) entry.clean = undefined;
    return { redactions: Object.fromEntries(redactions), changed, stopped };
  },

  /** What cleaning has replaced in some traces. @param {{ indices: number[] }} given */
  async changes({ indices }) {
    return indices.map((index) => {
      const { trace, clean } = entries[index];
      const changes = changesOf(trace, clean ?? trace);
      return { index, name: nameOf(index), count: changes.length, changes: changes.slice(0, CHANGES) };
    });
  },

  /**
   * Chooses traces, and scores all; returns the figures of the report.
   *
   * @param {{ count: number | `${number}%`, method: 'lexical' | 'prefix' }} given
   * @param {Task} task
   */
  async choose({ count, method }, task) {
    const status = method === 'prefix' ? await takeModel(task) : undefined;
    const begun = performance.now();
    const scorer =
      method === 'prefix'
        ? new Scorer()
        : new Scorer({ embedder: null, memory: new TraceMemory({ method: 'lexical' }) });
    const scored = await scoreAll(entries, /** @type {any} */ (scorer), task);
    if (scored.stopped) throw new Error('it was stopped');
    // One invalid trace would have it reject all; their scores tell which are valid.
    const { usable } = scored;
    const total = usable.length;
    const selection = await select(
      usable.map((index) => current(entries[index])),
      {
        count,
        onProgress: ({ done }) => task.report({ done, total, unit: 'traces', doing: 'Comparing' }),
      },
    );
    chosen = selection.chosen.map(({ index, reason, standsFor }) => ({
      index: usable[index],
      reason,
      standsFor,
    }));
    explanation = selection.explanation;
    const figures = figuresOf(scored, new Set(selection.chosen.map(({ index }) => index)), {
      ...{ novelty: method, dtype: status?.dtype ?? null },
      seconds: (performance.now() - begun) / 1000,
    });
    /** @type {import('../../report/data.js').ChosenSet} */
    figures.selection = {
      explanation: selection.explanation,
      chosen: chosen.length,
      coveredBefore: 0,
      curve: selection.chosen.map(({ covered }) => covered),
      knee: null,
      traces: selection.chosen.map(({ index, rank, reason, standsFor, similar }) => {
        const near = similar.map((other) => ({ position: other.index, similarity: other.similarity }));
        return { position: index, rank, reason, standsFor, similar: near.slice(0, 4) };
      }),
    };
    return { figures, computed: status ? `${status.dtype}, ${status.kernel}` : 'by words' };
  },

  /**
   * The folder that `kp-score share` writes, as a zip, and how much of it a person should look at.
   *
   * @param {{ which: 'all' | 'chosen', cleaning: CleanOptions }} given
   * @param {Task} task
   */
  async save({ which, cleaning }, { report }) {
    const all = () => entries.map((_, index) => ({ index, reason: 'given', standsFor: 0 }));
    const saved = which === 'chosen' ? chosen : all();
    report({ done: 0, total: saved.length, unit: 'traces', doing: 'Saving' });
    /** The files whose lines stay as they are, but for what is replaced. @type {File[]} */
    const files = [];
    const sessions = saved.map(({ index, reason, standsFor }) => {
      const { content, format, line, trace } = entries[index];
      const session = { name: content.name, format, line, trace: JSON.stringify(trace), reason, standsFor };
      if (!content.name.endsWith('.jsonl') || format === 'trace') return session;
      if (!files.includes(content)) files.push(content);
      return { ...session, text: files.indexOf(content) };
    });
    const texts = await Promise.all(files.map((file) => file.text()));
    const how = which === 'chosen' ? explanation : 'All that were read';
    const settings = readCleaning(cleaning, 'cleaning');
    const { zip, manifest } = await loader.addon.shareAsZip(sessions, texts, 'native', how, settings);
    const shared = /** @type {Manifest} */ (JSON.parse(manifest));
    const toReview = shared.sessions.filter(({ review }) => review.length > 0);
    return {
      file: new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (zip)], { type: 'application/zip' }),
      count: shared.sessions.length,
      leftOut: shared.leftOut.length,
      places: toReview.reduce((sum, { review }) => sum + review.length, 0),
      first: toReview[0]?.review[0],
    };
  },
};

/** @typedef {Awaited<ReturnType<typeof scoreAll>>} ScoredAll */

/** When a trace began; null if nobody knows, where readers put the time of reading. @param {string} created */
function whenOf(created) {
  const time = Date.parse(created);
  return time < performance.timeOrigin ? new Date(time).toISOString() : null;
}

/**
 * Scores traces, in their order.
 *
 * @param {Entry[]} those
 * @param {Parameters<typeof explain>[0]} scorer
 * @param {Task} task
 */
async function scoreAll(those, scorer, task) {
  const [added, wrong] = [/** @type {object[]} */ ([]), [...errors]];
  /** The indices of those that are valid. @type {number[]} */
  const usable = [];
  const stopped = await through(those, 'Scoring', task, async (entry, at) => {
    const { file: source, line, index, format, known } = entry;
    const trace = current(entry);
    try {
      const breakdown = await explain(scorer, trace, true);
      const { id, task: given, metadata, steps } = trace;
      // A trace that was converted tells in which format it was recorded.
      const { imported } = /** @type {{ imported?: { format?: string } }} */ (metadata);
      added.push({
        ...{ source, line, index, format, agent: imported?.format ?? format, breakdown, trace },
        ...{ id, objective: given.objective, domain: metadata.task_domain ?? 'default' },
        when: whenOf(metadata.created_at),
        steps: steps.length,
        success: known.success ? metadata.success : null,
        hasConfidence: known.confidence,
      });
      usable.push(at);
    } catch (thrown) {
      wrong.push({ file: source, line, index, message: messageOf(thrown) });
    }
  });
  return { added, wrong, usable, stopped };
}

/**
 * Returns the figures of a report.
 *
 * @param {ScoredAll} scored
 * @param {Set<number>} kept the positions of chosen traces, which come first
 * @param {{ novelty: 'lexical' | 'prefix', dtype: string | null, seconds: number }} how
 * @returns {import('../../report/data.js').Report}
 */
function figuresOf({ added, wrong }, kept, { novelty, dtype, seconds }) {
  const sources = [...new Set([...entries, ...errors].map(({ file }) => file))];
  const described = [JSON.stringify({ threshold: null, sources, novelty, dtype, version })];
  for (const { file: source, line, index, message } of wrong)
    described.push(JSON.stringify({ error: { source, line, index, message } }));
  let room = MOST_DESCRIBED;
  for (const [position, add] of added.entries()) {
    // Of very many traces, the last ones are shown without their steps.
    const without = room > 0 ? {} : { trace: undefined };
    const line = JSON.stringify({ add: { ...add, kept: kept.has(position), ...without } });
    room -= line.length;
    described.push(line);
  }
  const finishedAt = new Date().toISOString();
  described.push(JSON.stringify({ run: { finishedAt, seconds, interrupted: false } }));
  return JSON.parse(loader.addon.reportFigures(described.join('\n')));
}

/** @typedef {typeof tasks} Tasks */

/** Configures the embedder with the model of the site, once. @param {Task} task */
async function takeModel({ report }) {
  if (!configured) {
    const doing = 'Fetching the model';
    const [weights, tokenizer] = await fetchModel(MODEL, (done, total) =>
      report({ done, total, unit: 'bytes', doing }),
    );
    configureEmbedder({ model: { weights, tokenizer } });
    configured = true;
  }
  const status = await embedderStatus();
  if (!status.available) throw new Error(`the model cannot be used: ${status.reason}`);
  return status;
}
let configured = false;

/** @param {unknown} thrown */
function messageOf(thrown) {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The running tasks, which can be stopped. @type {Map<number, AbortController>} */
const running = new Map();

addEventListener('message', async ({ data: { number, name, given } }) => {
  if (name === 'stop') {
    for (const controller of running.values()) controller.abort();
    return;
  }
  const controller = new AbortController();
  running.set(number, controller);
  try {
    const report = (/** @type {Progress} */ progress) => postMessage({ number, progress });
    const task = { report, signal: controller.signal };
    const value = await tasks[/** @type {keyof Tasks} */ (name)](given, task);
    postMessage({ number, value });
  } catch (thrown) {
    postMessage({ number, error: messageOf(thrown) });
  } finally {
    running.delete(number);
  }
});
// Messages that came before, while the addon was compiled, would have been lost.
postMessage({ ready: true });
