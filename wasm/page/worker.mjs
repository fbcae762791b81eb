// The worker of the page to try it: holds the sessions, and reads, chooses, cleans and shares them, so that the page stays responsive.

import { anyOf } from '../../report/marks.mjs';
import { select } from '../browser/main.mjs';

const loader = require('../../lib/loader.js');
/** @type {typeof import('../../lib/clean.js')} */
const { readCleaning } = require('../../lib/clean.js');
/** @type {typeof import('../../lib/read-traces.js')} */
const { itemsOf, resultOf } = require('../../lib/read-traces.js');

/**
 * @import { CleanOptions, FormatName, Manifest, ReasoningTrace } from '../../index.js'
 * @import { Conversation, Decision, Desk, SessionRow } from '../../report/data.js'
 */

/** @typedef {{ file: File, path: string }} Given a file, and its path in the folder that was given */
/** @typedef {Given & { format: FormatName, trace: ReasoningTrace }} Entry */
/** @typedef {{ done: number, total: number, unit: 'bytes' | 'sessions', doing: string }} Progress */

/** What a task may do: tell of its progress, and end early. @typedef {{ report: (progress: Progress) => void, signal: AbortSignal }} Task */

/** How many sessions are proposed, and how many records that could not be read are named. */
const PROPOSED = 20;
const NAMED = 100;

/** How long a task runs before messages are taken, and how often it tells of its progress, in milliseconds. */
const TURN = 50;

/** @type {Map<string, Entry>} the sessions by their ids */
const entries = new Map();
/** @type {Array<{ place: string, reason: string }>} */
const unread = [];
/** Those of the desk, in its order. @type {Array<{ id: string, conversation: Conversation, row: SessionRow }>} */
let shown = [];
let explanation = '';
/** @type {CleanOptions} */
let cleaning = {};

/** Lets messages in now and then, and tells of the progress. @param {Task} task */
function pacer({ report, signal }) {
  let last = performance.now();
  return async (/** @type {Progress} */ progress) => {
    if (performance.now() - last > TURN) {
      report(progress);
      await new Promise((resolve) => setTimeout(resolve));
      last = performance.now();
    }
    if (signal.aborted) throw new Error('it was stopped');
  };
}

/** The bytes of a file as they are read. @param {File} file @param {(bytes: number) => Promise<void>} pace */
async function* bytesOf(file, pace) {
  const reader = file.stream().getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    yield part.value;
    await pace(part.value.length);
  }
}

/** A session as the addon takes it, and the texts of its file. @param {Entry} entry */
async function nativeOf({ file, path, format, trace }) {
  const session = { name: path, format, trace: JSON.stringify(trace), reason: 'given', standsFor: 0 };
  // The lines of its file stay as they are, but for what is replaced.
  if (!path.endsWith('.jsonl') || format === 'trace') return { session, texts: [] };
  return { session: { ...session, text: 0 }, texts: [await file.text()] };
}

/** @param {Entry} entry */
const importedOf = ({ trace }) =>
  /** @type {Record<string, unknown>} */ (Object(Object(trace.metadata).imported));

/** What the page can ask for. */
const tasks = {
  /**
   * Reads files, beside those that were read before. Files that hold no session are counted.
   *
   * @param {{ files: Given[] }} given
   * @param {Task} task
   */
  async read({ files }, task) {
    const pace = pacer(task);
    const total = files.reduce((sum, { file }) => sum + file.size, 0);
    let [done, skipped] = [0, 0];
    for (const { file, path } of files) {
      const found = [];
      const problems = [];
      const step = (/** @type {number} */ bytes) => {
        done += bytes;
        return pace({ done, total, unit: 'bytes', doing: 'Reading' });
      };
      try {
        for await (const item of itemsOf(bytesOf(file, step), { file: path }, undefined)) {
          if (item.skipped !== null) continue;
          const { trace, error } = resultOf(item);
          if (trace === undefined)
            problems.push({ place: `${path}, line ${item.line ?? 1}`, reason: error.message });
          else found.push({ file, path, format: item.format ?? 'trace', trace });
        }
      } catch (thrown) {
        if (task.signal.aborted) throw thrown;
        problems.push({ place: path, reason: messageOf(thrown) });
      }
      for (const entry of found) {
        const id = String(entry.trace?.id);
        const before = entries.get(id);
        // The longest of several copies stands for them.
        if (!before || Object(entry.trace.steps).length > Object(before.trace.steps).length)
          entries.set(id, entry);
      }
      // An agent's folder has settings and more beside its sessions.
      if (found.length === 0 && files.length > 1) skipped++;
      else unread.push(...problems);
    }
    return { count: entries.size, skipped };
  },

  /**
   * Chooses sessions, cleans all, and returns the desk.
   *
   * @param {{ cleaning: CleanOptions }} given
   * @param {Task} task
   * @returns {Promise<Desk>}
   */
  async desk(given, task) {
    cleaning = given.cleaning;
    const pace = pacer(task);
    const settings = readCleaning(cleaning, 'cleaning');
    /** @type {Array<{ id: string, entry: Entry, row: SessionRow, conversation: Conversation }>} */
    const readable = [];
    const total = entries.size;
    for (const [id, entry] of entries) {
      try {
        const { session, texts } = await nativeOf(entry);
        readable.push({
          id,
          entry,
          .../** @type {{ row: SessionRow, conversation: Conversation }} */ (
            JSON.parse(await loader.addon.showSession(session, texts, settings))
          ),
        });
      } catch (thrown) {
        unread.push({ place: entry.path, reason: messageOf(thrown) });
      }
      await pace({ done: readable.length, total, unit: 'sessions', doing: 'Cleaning' });
    }
    const { signal } = task;
    const selection = await select(
      readable.map(({ entry }) => entry.trace),
      {
        count: PROPOSED,
        signal,
        onProgress: ({ done }) => task.report({ done, total, unit: 'sessions', doing: 'Comparing' }),
      },
    );
    explanation = selection.explanation;
    const latest = (/** @type {{ index: number }} */ one, /** @type {{ index: number }} */ other) =>
      String(readable[other.index].row.began).localeCompare(String(readable[one.index].row.began));
    const order = [...selection.chosen, ...[...selection.left].sort(latest)];
    const places = new Map(order.map(({ index }, at) => [index, at]));
    // Sub-agents that have the name of their session have none of their own.
    const named = [...readable.entries()].filter(([, { entry }]) => {
      const { parent_session_id: parent, session_id: own } = importedOf(entry);
      return parent === undefined || parent !== own;
    });
    const bySession = new Map(named.map(([index, { entry }]) => [importedOf(entry).session_id, index]));
    const placeOf = (/** @type {number} */ index) => places.get(index) ?? -1;
    shown = order.map((one) => {
      const { entry, row, ...rest } = readable[one.index];
      const { parent_session_id: parent } = importedOf(entry);
      const started = parent === undefined ? undefined : bySession.get(parent);
      const near =
        'rank' in one
          ? [...one.similar, ...(one.nearestLeft ? [one.nearestLeft] : [])]
          : one.chosen
            ? [one.chosen]
            : [];
      return {
        ...rest,
        row: {
          ...row,
          rank: 'rank' in one ? one.rank : null,
          why: 'unfit' in one ? one.unfit : null,
          standsFor: 'rank' in one ? one.standsFor : 0,
          parent: started === undefined || started === one.index ? null : placeOf(started),
          alike: near.slice(0, 8).map(({ index, similarity }) => [placeOf(index), similarity]),
          copies: 0,
          isWhole: true,
        },
      };
    });
    return {
      version: '',
      raw: false,
      command: '',
      explanation,
      sessions: shown.map(({ row }) => row),
      unread: { count: unread.length, first: unread.slice(0, NAMED) },
    };
  },

  /** @param {number} position */
  async conversation(position) {
    return shown[position].conversation;
  },

  /**
   * Returns the folder that `kp-score share` writes of what was kept, as a zip, and how many places a person should look at.
   *
   * @param {{ decisions: Decision[] }} given
   * @param {Task} task
   */
  async save({ decisions }, { report }) {
    const kept = decisions.filter(({ decision }) => decision === 'keep');
    report({ done: 0, total: kept.length, unit: 'sessions', doing: 'Saving' });
    const struck = new Set(kept.flatMap(({ strike }) => strike ?? []));
    const rules = struck.size > 0 ? { struck: new RegExp(anyOf(struck)) } : {};
    /** @type {string[]} */
    const texts = [];
    const sessions = [];
    for (const { session: id, outcome } of kept) {
      const native = await nativeOf(/** @type {Entry} */ (entries.get(id)));
      const own = native.texts.length > 0 ? { text: texts.push(...native.texts) - 1 } : {};
      const told = outcome ? { success: outcome === 'succeeded' } : {};
      sessions.push({ ...native.session, ...own, ...told, reason: 'decided' });
    }
    const settings = readCleaning({ ...cleaning, rules }, 'cleaning');
    const { zip, manifest } = await loader.addon.shareAsZip(sessions, texts, 'native', explanation, settings);
    const shared = /** @type {Manifest} */ (JSON.parse(manifest));
    return {
      file: new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (zip)], { type: 'application/zip' }),
      count: shared.sessions.length,
      leftOut: shared.leftOut.length,
      places: shared.sessions.reduce((sum, { review }) => sum + review.length, 0),
    };
  },
};

/** @typedef {typeof tasks} Tasks */

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
    const value = await tasks[/** @type {keyof Tasks} */ (name)](/** @type {any} */ (given), task);
    postMessage({ number, value });
  } catch (thrown) {
    postMessage({ number, error: messageOf(thrown) });
  } finally {
    running.delete(number);
  }
});
// Messages that came before, while the addon was compiled, would have been lost.
postMessage({ ready: true });
