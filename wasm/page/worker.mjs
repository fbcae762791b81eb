// The worker of the page to try it: holds the traces, and reads, cleans, scores and selects them, so that the page stays responsive.

import { clean, configureEmbedder, embedderStatus, Scorer, select, TraceMemory } from '../browser/main.mjs';
import { changesOf } from './changes.mjs';
import { fetchModel } from './model.mjs';

const loader = require('../../lib/loader.js');
const { version } = require('../../package.json');
/** @type {typeof import('../../lib/read-traces.js')} */
const { readPlaced } = require('../../lib/read-traces.js');
/** @type {typeof import('../../lib/scorer.js')} */
const { explain } = require('../../lib/scorer.js');

/**
 * @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace
 * @typedef {import('../../index.js').PrivacyLevel} PrivacyLevel
 * @typedef {{ success: boolean, confidence: boolean }} Known
 * @typedef {import('../../index.js').FormatName} FormatName
 */

/** @typedef {{ file: string, line: number, index: number | null }} Place */
/** @typedef {Place & { format: FormatName, known: Known, trace: ReasoningTrace, clean?: ReasoningTrace }} Entry */
/** @typedef {{ done: number, total: number, unit: 'bytes' | 'traces', doing: string }} Progress */

/** What a task may do: tell of its progress, and end early. @typedef {{ report: (progress: Progress) => void, signal: AbortSignal }} Task */

/** What is shown of a text, and of a trace. */
const EXCERPT = 160;
const TEXT = 2000;
const STEPS = 200;
const CHANGES = 50;

/** How long a task runs before messages are taken, and how often it tells of its progress, in milliseconds. */
const TURN = 50;

/** @type {Entry[]} */
let entries = [];
/** @type {Array<Place & { message: string }>} */
let errors = [];
/** @type {{ level: PrivacyLevel, strict: boolean, redactions: Record<string, number> } | null} */
let cleaned = null;
/** The indices of the chosen traces, the most valuable first. @type {number[]} */
let chosen = [];

/** @param {Entry} entry */
const current = ({ trace, clean }) => clean ?? trace;

/** What a trace is called. @param {number} index */
function nameOf(index) {
  const { task, id } = /** @type {any} */ (current(entries[index]) ?? {});
  return String(task?.objective || id || '(no objective)').slice(0, EXCERPT);
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
          else entries.push({ ...place, format, known, trace });
        }
      } catch (thrown) {
        errors.push({ file: file.name, line: 1, index: null, message: messageOf(thrown) });
      }
    }
    // Neither is of the traces that came now.
    chosen = [];
    cleaned = null;
    for (const entry of entries) entry.clean = undefined;
    return {
      count: entries.length,
      errors: errors.slice(0, CHANGES),
      errorCount: errors.length,
    };
  },

  async clear() {
    [entries, errors, chosen, cleaned] = [[], [], [], null];
  },

  /** Some of the traces. @param {{ from: number, count: number }} given */
  async list({ from, count }) {
    return entries.slice(from, from + count).map(({ file, line, index, format, trace }, at) => ({
      index: from + at,
      name: nameOf(from + at),
      place: `${file}, line ${line}${index === null ? '' : `[${index}]`}`,
      format,
      steps: Array.isArray(trace?.steps) ? trace.steps.length : 0,
    }));
  },

  /** What a trace has become: its steps, and what was left out. @param {{ index: number }} given */
  async open({ index }) {
    const { known } = entries[index];
    const trace = /** @type {any} */ (current(entries[index]) ?? {});
    /** @type {any[]} */
    const steps = Array.isArray(trace.steps) ? trace.steps : [];
    return {
      known,
      success: Boolean(trace.metadata?.success),
      confidence: Number(trace.outcome?.confidence),
      leftOut: trace.metadata?.imported?.left_out ?? {},
      count: steps.length,
      steps: steps.slice(0, STEPS).map((step) => ({
        type: String(step?.type),
        tool: step?.tool?.name === undefined ? '' : String(step.tool.name),
        text: textOf(step).slice(0, TEXT),
      })),
    };
  },

  /**
   * Cleans the traces, or takes the originals again.
   *
   * @param {{ level: PrivacyLevel | 'none', strict: boolean }} given
   * @param {Task} task
   */
  async clean({ level, strict }, task) {
    cleaned = null;
    for (const entry of entries) entry.clean = undefined;
    if (level === 'none') return { redactions: {}, changed: [], stopped: false };
    /** @type {Map<string, number>} */
    const redactions = new Map();
    /** @type {number[]} */
    const changed = [];
    const stopped = await through(entries, 'Cleaning', task, async (entry, index) => {
      const result = await clean(entry.trace, { level, strict });
      entry.clean = result.cleaned;
      if (result.redactions.length > 0) changed.push(index);
      for (const { type, count } of result.redactions)
        redactions.set(type, (redactions.get(type) ?? 0) + count);
    });
    // Half of a set would be taken for clean.
    if (stopped) for (const entry of entries) entry.clean = undefined;
    else cleaned = { level, strict, redactions: Object.fromEntries(redactions) };
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

  /** Scores the traces; returns the figures of the report. @param {{ method: 'lexical' | 'prefix' }} given @param {Task} task */
  async score({ method }, task) {
    const status = method === 'prefix' ? await takeModel(task) : undefined;
    const begun = performance.now();
    const scorer =
      method === 'prefix'
        ? new Scorer()
        : new Scorer({ embedder: null, memory: new TraceMemory({ method: 'lexical' }) });
    const sources = [...new Set([...entries, ...errors].map(({ file }) => file))];
    const dtype = status?.dtype ?? null;
    const described = [JSON.stringify({ threshold: 0.5, sources, novelty: method, dtype, cleaned, version })];
    const wrong = (/** @type {Place} */ { file, line, index }, /** @type {string} */ message) =>
      described.push(JSON.stringify({ error: { source: file, line, index, message } }));
    for (const error of errors) wrong(error, error.message);
    let scored = 0;
    const interrupted = await through(entries, 'Scoring', task, async (entry) => {
      const { file: source, line, index, format, known } = entry;
      const trace = current(entry);
      try {
        const breakdown = await explain(scorer, trace, true);
        scored++;
        const add = {
          source,
          line,
          index,
          format,
          known,
          id: trace.id,
          objective: trace.task.objective,
          domain: trace.metadata.task_domain ?? 'default',
          ...{ success: trace.metadata.success, breakdown, kept: true },
        };
        described.push(JSON.stringify({ add }));
      } catch (thrown) {
        wrong(entry, messageOf(thrown));
      }
    });
    const seconds = (performance.now() - begun) / 1000;
    described.push(JSON.stringify({ run: { finishedAt: new Date().toISOString(), seconds, interrupted } }));
    /** @type {import('../../report/data.js').Report} */
    const report = JSON.parse(loader.addon.reportFigures(described.join('\n')));
    return { report, scored, seconds, computed: status ? `${status.dtype}, ${status.kernel}` : 'by words' };
  },

  /** Chooses traces. @param {{ count: number | `${number}%` }} given @param {Task} task */
  async select({ count }, task) {
    // It rejects all traces for one that is invalid, so the scorer looks at each one first, which takes microseconds.
    const judge = new Scorer({ embedder: null });
    /** @type {number[]} */
    const usable = [];
    const stopped = await through(entries, 'Reading traces', task, async (entry, index) => {
      if (await judge.score(current(entry)).catch(() => undefined)) usable.push(index);
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
    chosen = selection.chosen.map(({ index }) => usable[index]);
    return {
      explanation: selection.explanation,
      total,
      chosen: selection.chosen.map(({ index, rank, reason, covered, standsFor, similar }) => ({
        ...{ index: usable[index], rank, reason, covered, standsFor },
        name: nameOf(usable[index]),
        similar: similar.slice(0, 3).map((other) => nameOf(usable[other.index])),
      })),
    };
  },

  /** The traces as JSON Lines. @param {{ which: 'all' | 'chosen' }} given */
  async save({ which }) {
    const indices = which === 'chosen' ? chosen : entries.map((_, index) => index);
    const lines = indices.map((index) => `${JSON.stringify(current(entries[index]))}\n`);
    return {
      file: new Blob(lines, { type: 'application/jsonl' }),
      count: lines.length,
      cleaned: cleaned !== null,
    };
  },
};

/** @typedef {typeof tasks} Tasks */

/** The text of a step, which is that of a call's input where it has no other. @param {any} step */
function textOf(step) {
  if (typeof step?.content === 'string' && step.content !== '') return step.content;
  if (typeof step?.output_summary === 'string') return step.output_summary;
  return step?.input === undefined ? '' : JSON.stringify(step.input);
}

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
