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
 * @import { Item } from '../lib/formats/reader.js'
 * @import { Command, ItemBatch, Report, Settings } from '../lib/formats/reading-worker.js'
 */

/** The same place from `cli/` as from `dist/`, where this module is bundled. */
const WORKER = path.join(__dirname, '..', 'lib', 'formats', 'reading-worker.js');

/** How traces begin, which are read where they are scored: they need no conversion, and handing them over costs more than it saves. */
const BEGINS_AS_TRACE = /"@type"\s*:\s*"ReasoningTrace"/;
const BEGINNING = 4096;

/** Inputs of less bytes together are read before a thread has started. */
const WORTH_A_THREAD = 4 * 1024 * 1024;

/** How many chunks a worker is given before it has taken the first of them. */
const MAX_CHUNKS = 4;

/**
 * Reads the inputs of a run, one after the other.
 */
class Reading {
  #settings;
  /** Whether another thread may and need be used, until the first input that it is for has begun. */
  #isWorthThread;
  /** @type {Thread | undefined} */
  #thread;

  /**
   * @param {Omit<Settings, 'files'>} settings
   * @param {{ mayShare: boolean, totalSize: number | null }} options `mayShare` is whether the least of a trace is enough, as where
   * nothing is compared; `totalSize` of all inputs, null if it is not known
   */
  constructor(settings, { mayShare, totalSize }) {
    /** @type {Settings} */
    this.#settings = { ...settings, files: new Map() };
    const { format } = settings;
    this.#isWorthThread =
      mayShare &&
      format !== NATIVE &&
      (totalSize ?? WORTH_A_THREAD) >= WORTH_A_THREAD &&
      (os.availableParallelism?.() ?? os.cpus().length) > 1 &&
      process.versions.bun === undefined;
  }

  /**
   * The items of an input, in batches. A value that no thread has kept is as `TraceReader` gives it; otherwise it is the least of
   * a trace, with the text of all of it if that is written.
   *
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {string | undefined} file the path of the input
   * @returns {AsyncGenerator<Iterable<Item>, void>}
   */
  async *read(chunks, file) {
    const first = await chunks.next();
    if (first.done) return;
    const input = joined(first.value, chunks);
    // From the first input on that is of another format all are read there, because it knows which files were read.
    if (this.#isWorthThread && !BEGINS_AS_TRACE.test(first.value.toString('latin1', 0, BEGINNING))) {
      this.#isWorthThread = false;
      this.#thread = await Thread.start(this.#settings);
    }
    yield* this.#thread ? this.#readBeside(this.#thread, input, file) : this.#readHere(input, file);
  }

  /**
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {string | undefined} file
   */
  async *#readHere(chunks, file) {
    const { quotes, isWritten, excerptLength, ...given } = this.#settings;
    const reader = new TraceReader({ ...given, file });
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
      thread.begin(chunks, file);
      for (let batch = await thread.next(); batch !== undefined; batch = await thread.next()) {
        yield received(batch);
        thread.tell({ taken: batch.size });
      }
      isOver = true;
    } finally {
      // In the middle of an input it is of no use any more.
      if (!isOver) await this.close();
    }
  }

  /** Ends the thread, if there is one. */
  async close() {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.end();
  }
}

/** A thread that reads one input at a time. */
class Thread {
  #worker;
  /** @type {Array<ItemBatch | undefined>} */
  #batches = [];
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
        this.#given--;
        this.#onRoom();
      } else {
        this.#batches.push('over' in report ? undefined : report);
        this.#onReport();
      }
    });
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', () => this.#fail(new Error('the thread that reads has ended')));
  }

  /**
   * Starts one; undefined where there can be none, as where the process may not start threads.
   *
   * @param {Settings} settings
   */
  static async start(settings) {
    try {
      const worker = new Worker(WORKER, { workerData: settings });
      await once(worker, 'online');
      return new Thread(worker);
    } catch {
      return undefined;
    }
  }

  /**
   * Gives it an input, chunk by chunk as there is room.
   *
   * @param {AsyncGenerator<Buffer>} chunks
   * @param {string | undefined} file
   */
  begin(chunks, file) {
    this.tell({ begin: { file } });
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
    this.tell({ chunk: null });
  }

  /** What it has read next; undefined at the end of the input. */
  async next() {
    while (this.#batches.length === 0 && !this.#failure) {
      await new Promise((resolve) => {
        this.#onReport = () => resolve(undefined);
      });
    }
    if (this.#failure) throw this.#failure.error;
    return this.#batches.shift();
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
