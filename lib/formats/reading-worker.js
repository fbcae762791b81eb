'use strict';

// Reads inputs on a thread of its own, for `cli/reading.js`: while the event loop scores and writes what was read, the rest is
// parsed and converted here.
//
// Traces stay here, because copying one to another thread costs as much as parsing it. What crosses is what a scorer reads that
// compares nothing, and the trace as text if it is to be written.

const { parentPort, workerData } = require('node:worker_threads');

const { TraceReader } = require('./reader.js');
const { readRecords } = require('./records.js');

/**
 * @import { MessagePort } from 'node:worker_threads'
 * @import { ImportedTrace, Known, FormatName } from '../../formats.js'
 * @import { Context, Item } from './reader.js'
 */

/**
 * How the worker reads every input.
 *
 * @typedef {object} Settings
 * @property {FormatName} [format] as the options of a `TraceReader`
 * @property {boolean} [success]
 * @property {number} [confidence]
 * @property {string} [domain]
 * @property {boolean} quotes as the option of `readRecords`
 * @property {boolean} isWritten whether the text of traces is wanted
 * @property {number} maxChunks how many it is given before it has said that it took some
 * @property {number} excerptLength how much is wanted of an objective, in UTF-16 code units
 */

/**
 * What the worker must know of an input: its path, and the files that were read elsewhere since the last one began.
 *
 * @typedef {{ file: string | undefined, files: Array<[string, 'named' | 'followed']> }} Begin
 */

/**
 * What the worker is told: to begin an input; a part of it, and that it is over; and how many bytes of items were taken.
 *
 * @typedef {{ begin: Begin } | { chunk: Uint8Array | null } | { taken: number }} Command
 */

/**
 * What was read: the JSON of `Item`s without their texts, the texts, and the bytes of the input that they stand for. An item has
 * a text, but no value, if it was read as it is.
 *
 * @typedef {{ items: string, texts: Array<string | undefined>, size: number }} ItemBatch
 */

/**
 * What the worker says: what it has read, how many chunks it has taken, or that the input is over, and the files that were read for it.
 *
 * @typedef {ItemBatch | { took: number } | { over: Begin['files'] }} Report
 */

/**
 * How many bytes of the input the items may stand for that were not taken yet, and how many are handed over together: waking the other
 * thread costs as much as parsing some traces.
 */
const WINDOW = 4 * 1024 * 1024;
const BATCH = 512 * 1024;

/** What an item costs besides the bytes of its record: many may come of a small one, and of none at the end of the input. */
const ITEM_COST = 2 * 1024;

const port = /** @type {MessagePort} */ (parentPort);
const { excerptLength, isWritten, maxChunks, quotes, ...given } = /** @type {Settings} */ (workerData);

/** Files that were read. @type {Context['files']} */
const files = new Map();

/** Chunks that wait to be read; null ends the input. @type {Array<Uint8Array | null>} */
const chunks = [];
/** How many were taken, which is not said yet. */
let taken = 0;
/** The bytes of items that wait to be taken. */
let waiting = 0;
/** Goes on when a message has come. */
let onMessage = () => {};

/** @type {(report: Report) => void} */
const report = (what) => port.postMessage(what);

const message = () =>
  new Promise((/** @type {(value?: undefined) => void} */ resolve) => {
    onMessage = resolve;
  });

/** Makes room for as many chunks as were taken. */
function sayTaken() {
  if (taken > 0) report({ took: taken });
  taken = 0;
}

/** Items that are handed over together. */
class Batch {
  /** @type {Array<Omit<Item, 'text'>>} */
  #items = [];
  /** @type {Array<string | undefined>} */
  #texts = [];
  #size = 0;

  /** @param {Item} item */
  add(item) {
    const { text, ...rest } = isolated(item);
    this.#items.push(rest);
    this.#texts.push(text);
    this.#size += item.size + ITEM_COST;
  }

  get isFull() {
    return this.#size >= BATCH;
  }

  /** Hands them over; settles when there is room for more. */
  async flush() {
    if (this.#items.length === 0) return;
    waiting += this.#size;
    report({ items: JSON.stringify(this.#items), texts: this.#texts, size: this.#size });
    this.#items = [];
    this.#texts = [];
    this.#size = 0;
    while (waiting > WINDOW) await message();
  }
}

/**
 * An item without what stays on this thread: its value, unless it is a trace, of which the least is left that scores the same.
 *
 * @param {Item} item
 * @returns {Item}
 */
function isolated(item) {
  // What is read as it is has its text.
  if (item.known === undefined) return { ...item, value: undefined };
  const trace = /** @type {ImportedTrace} */ (item.value);
  try {
    const text = isWritten ? JSON.stringify(trace) : undefined;
    return { ...item, value: scoredOf(trace), text };
  } catch {
    return { ...item, value: undefined, error: 'it is nested too deeply' };
  }
}

/**
 * What is read of a trace to score it where nothing is compared, and to name it. Most of its steps look alike then: `steps` are their
 * places in the list of `different` ones.
 *
 * @param {ImportedTrace} trace
 */
function scoredOf({ id, metadata: { success, task_domain }, task, steps, outcome }) {
  /** @type {Map<string, number>} */
  const places = new Map();
  /** @type {Array<{ type: string, tool?: { name: string } }>} */
  const different = [];
  const order = steps.map(({ type, tool }) => {
    const key = tool === undefined ? type : `${type} ${tool.name}`;
    let place = places.get(key);
    if (place === undefined) {
      place = different.push(tool === undefined ? { type } : { type, tool: { name: tool.name } }) - 1;
      places.set(key, place);
    }
    return place;
  });
  return {
    id,
    metadata: { success, task_domain },
    task: { objective: task.objective.slice(0, excerptLength) },
    steps: order,
    different,
    outcome: { confidence: outcome.confidence },
  };
}

/**
 * Reads one input.
 *
 * @param {Begin} begin
 */
async function read({ file, files: others }) {
  for (const [name, how] of others) files.set(name, how);
  const known = files.size;
  const reader = new TraceReader({ ...given, file, files, isOutline: !isWritten });
  const batch = new Batch();
  for await (const records of readRecords(input(batch), { quotes })) {
    for (const record of records) {
      for (const item of reader.read(record)) {
        batch.add(item);
        if (batch.isFull) await batch.flush();
      }
    }
  }
  for (const item of reader.end()) {
    batch.add(item);
    if (batch.isFull) await batch.flush();
  }
  await batch.flush();
  report({ over: [...files].slice(known) });
}

/**
 * The chunks of an input as they come. What was read is handed over before another is waited for.
 *
 * @param {Batch} batch
 */
async function* input(batch) {
  for (;;) {
    if (chunks.length === 0) {
      await batch.flush();
      sayTaken();
    }
    while (chunks.length === 0) await message();
    const chunk = chunks.shift();
    taken++;
    if (taken >= maxChunks / 2) sayTaken();
    if (chunk === null || chunk === undefined) return;
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  }
}

port.on('message', (/** @type {Command} */ command) => {
  if ('begin' in command) read(command.begin);
  else if ('chunk' in command) chunks.push(command.chunk);
  else waiting -= command.taken;
  onMessage();
});
