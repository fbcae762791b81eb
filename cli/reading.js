'use strict';

// Reads inputs: on the event loop, or on a thread beside it, so that what is read is scored and written while the rest is parsed
// and converted.

const { once } = require('node:events');
const os = require('node:os');
const path = require('node:path');
const { Worker } = require('node:worker_threads');

const { NATIVE, TraceReader } = require('../lib/formats/reader.js');
const { readRecords } = require('../lib/formats/records.js');

/**
 * @import { Context, Item } from '../lib/formats/reader.js'
 * @import { Begin, Command, ItemBatch, Report, Settings as WorkerSettings } from '../lib/formats/reading-worker.js'
 */

/** @typedef {Omit<WorkerSettings, 'maxChunks'>} Settings */

/** The same place from `cli/` as from `dist/`, where this module is bundled. */
const WORKER = path.join(__dirname, '..', 'lib', 'formats', 'reading-worker.js');

/** How traces begin, which are read where they are scored: they need no conversion, and handing them over costs more than it saves. */
const BEGINS_AS_TRACE = /"@type"\s*:\s*"ReasoningTrace"/;
const BEGINNING = 4096;

/** How many chunks the thread is given before it has said that it took some. */
const MAX_CHUNKS = 16;

/** An input of less bytes is read before a thread has started. */
const WORTH_A_THREAD = 4 * 1024 * 1024;

/** Reads the inputs of a run, one after the other. */
class Reading {
  #settings;
  #isLeast;
  #mayShare;
  /** Files that were read, so that a trajectory in a file of its own counts once. @type {Context['files']} */
  #files = new Map();
  /** How many of these the thread knows. */
  #known = 0;
  /** Null if there can be none. @type {Thread | null | undefined} */
  #thread;

  /**
   * @param {Settings} settings
   * @param {{ isLeast: boolean }} options `isLeast` is whether the least of a trace is enough, as where nothing is compared
   */
  constructor(settings, { isLeast }) {
    this.#settings = settings;
    this.#isLeast = isLeast;
    this.#mayShare =
      isLeast &&
      settings.format !== NATIVE &&
      (os.availableParallelism?.() ?? os.cpus().length) > 1 &&
      process.versions.bun === undefined;
  }

  /**
   * The items of an input, in batches. The value of one that has come from another thread is the least of a trace, and its text is
   * that of all of it if it is to be written; otherwise an item is as `TraceReader` gives it, an outline if that is enough.
   *
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {{ file?: string, size: number | null }} input the path, and how many bytes it has, null if that is not known
   * @returns {AsyncGenerator<Iterable<Item>, void>}
   */
  async *read(chunks, { file, size }) {
    const first = await chunks.next();
    if (first.done) return;
    const input = joined(first.value, chunks);
    const isWorthThread =
      this.#mayShare &&
      (size ?? WORTH_A_THREAD) >= WORTH_A_THREAD &&
      !BEGINS_AS_TRACE.test(first.value.toString('latin1', 0, BEGINNING));
    if (isWorthThread && this.#thread === undefined) this.#thread = await Thread.start(this.#settings);
    yield* isWorthThread && this.#thread
      ? this.#readBeside(this.#thread, input, file)
      : this.#readHere(input, file);
  }

  /**
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {string | undefined} file
   */
  async *#readHere(chunks, file) {
    const { quotes, isWritten, excerptLength, ...given } = this.#settings;
    const isOutline = this.#isLeast && !isWritten;
    const reader = new TraceReader({ ...given, file, files: this.#files, isOutline });
    for await (const records of readRecords(chunks, { quotes })) yield itemsOf(reader, records);
    yield reader.end();
  }

  /**
   * @param {Thread} thread
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {string | undefined} file
   */
  async *#readBeside(thread, chunks, file) {
    let isOver = false;
    try {
      thread.begin(chunks, { file, files: [...this.#files].slice(this.#known) });
      while (!isOver) {
        const report = await thread.next();
        if ('items' in report) {
          yield received(report);
          thread.tell({ taken: report.size });
        } else {
          for (const [name, how] of report.over) this.#files.set(name, how);
          this.#known = this.#files.size;
          isOver = true;
        }
      }
    } finally {
      // In the middle of an input it is of no use any more.
      if (!isOver) await this.close();
    }
  }

  /** Ends the thread, if there is one. */
  async close() {
    const thread = this.#thread;
    this.#thread = null;
    await thread?.end();
  }
}

/** A thread that reads one input at a time. */
class Thread {
  #worker;
  /** @type {Array<Exclude<Report, { took: number }>>} */
  #reports = [];
  /** How many chunks it has not taken yet. */
  #given = 0;
  /** @type {{ error: unknown } | undefined} */
  #failure;
  #onReport = () => {};
  #onRoom = () => {};

  /** @param {Worker} worker */
  constructor(worker) {
    this.#worker = worker;
    worker.on('message', (/** @type {Report} */ report) => {
      if ('took' in report) {
        this.#given -= report.took;
        this.#onRoom();
      } else {
        this.#reports.push(report);
        this.#onReport();
      }
    });
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', () => this.#fail(new Error('the thread that reads has ended')));
  }

  /**
   * Starts one; null where there can be none, as where the process may not start threads.
   *
   * @param {Settings} settings
   */
  static async start(settings) {
    try {
      const worker = new Worker(WORKER, { workerData: { ...settings, maxChunks: MAX_CHUNKS } });
      await once(worker, 'online');
      return new Thread(worker);
    } catch {
      return null;
    }
  }

  /**
   * Gives it an input, chunk by chunk as there is room.
   *
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {Begin} begin
   */
  begin(chunks, begin) {
    this.tell({ begin });
    this.#feed(chunks).catch((error) => this.#fail(error));
  }

  /** @param {AsyncGenerator<Buffer>} chunks */
  async #feed(chunks) {
    for await (const chunk of chunks) {
      // A copy can go to another thread; the chunk itself may be looked at here once more.
      const bytes = new Uint8Array(chunk);
      this.#given++;
      this.tell({ chunk: bytes }, [bytes.buffer]);
      while (this.#given >= MAX_CHUNKS && !this.#failure) {
        await new Promise((resolve) => {
          this.#onRoom = () => resolve(undefined);
        });
      }
      if (this.#failure) return;
    }
    this.#given++;
    this.tell({ chunk: null });
  }

  /** What it says next of the input. */
  async next() {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      const report = this.#reports.shift();
      if (report !== undefined) return report;
      await new Promise((resolve) => {
        this.#onReport = () => resolve(undefined);
      });
    }
  }

  /**
   * @param {Command} command
   * @param {ArrayBuffer[]} [transfer]
   */
  tell(command, transfer) {
    this.#worker.postMessage(command, transfer);
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#failure ??= { error };
    this.#onReport();
    this.#onRoom();
  }

  async end() {
    await this.#worker.terminate();
  }
}

/**
 * @param {InstanceType<typeof TraceReader>} reader
 * @param {readonly import('../lib/formats/records.js').JsonRecord[]} records
 */
function* itemsOf(reader, records) {
  for (const record of records) yield* reader.read(record);
}

/**
 * The items that have come from another thread.
 *
 * @param {ItemBatch} batch
 * @returns {Generator<Item, void>}
 */
function* received({ items, texts }) {
  for (const [at, item] of JSON.parse(items).entries()) {
    const text = texts[at];
    if (item.error === undefined) item.value = itsValue(item, text);
    yield { ...item, text };
  }
}

/**
 * @param {{ value?: any }} item
 * @param {string | undefined} text
 */
function itsValue({ value }, text) {
  if (value === undefined) return JSON.parse(text ?? 'null');
  const { different, ...trace } = value;
  return { ...trace, steps: trace.steps.map((/** @type {number} */ place) => different[place]) };
}

/**
 * @param {Buffer} first
 * @param {AsyncGenerator<Buffer>} rest
 */
async function* joined(first, rest) {
  try {
    yield first;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

module.exports = { Reading };
