// The worker of the page to try it: holds the traces, and reads, cleans, scores and selects them, so that the page stays responsive.

import { cut } from '../../report/format.mjs';
import { clean, configureEmbedder, embedderStatus, select } from '../browser/main.mjs';
import { changesOf } from './changes.mjs';
import { fetchModel } from './model.mjs';

const loader = require('../../lib/loader.js');
/** @type {typeof import('../../lib/clean.js')} */
const { readCleaning } = require('../../lib/clean.js');
/** @type {typeof import('../../lib/read-traces.js')} */
const { readPlaced } = require('../../lib/read-traces.js');

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
    const report = new loader.addon.NativeReport(method, new Date(performance.timeOrigin).toISOString());
    for (const { file, line, index, message } of errors) report.addError({ file, line, index }, message);
    // One invalid trace would have `select` reject all.
    /** @type {number[]} */
    const usable = [];
    const stopped = await through(entries, 'Scoring', task, async (entry, at) => {
      const { file, line, index, format, known } = entry;
      const trace = JSON.stringify(current(entry));
      if (report.add({ file, line, index }, format, known, trace)) usable.push(at);
    });
    if (stopped) throw new Error('it was stopped');
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
    const sources = [...new Set([...entries, ...errors].map(({ file }) => file))];
    const seconds = (performance.now() - begun) / 1000;
    const positions = selection.chosen.map(({ index }) => index);
    /** @type {import('../../report/data.js').Report} */
    const figures = JSON.parse(report.figures(sources, status?.dtype, seconds, positions));
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
