'use strict';

// Traces in PostgreSQL, for novelty by words: how they are compared and added by the functions of traces-sql.js.
//
// A call takes two statements. The first finds candidates by an index on the words that add most to the length of each trace, and reads
// them. The addon compares them exactly, away from the event loop. The second adds, unless others have added since: then it returns
// what they have added, which is compared too, and is made again.

const { throwIfAborted } = require('../../calls/abort.js');
const { codedError, localError } = require('../../calls/errors.js');
const { DIMENSIONS } = require('../../embedding.js');
const native = require('../../loader.js').addon;
const { bytesOf: vectorBytes, packed } = require('../packed.js');

/**
 * @import { AbortSignalLike, NoveltyEntry, StoredNeighbour } from '../../../index.js'
 * @import { NativeSimilarTrace, NativeTraceStatistics } from '../../binding.js'
 * @import { CalledNames } from './schema.js'
 */

/** By how many words candidates are looked for at most. */
const MOST_WORDS = 128;

/** How many traces these words find, about: reading one from the index takes a microsecond. */
const BUDGET = 12_000;

/** How many candidates are compared. */
const CANDIDATES = 48;

/** Of how many traces the statistics are made, and of how many embeddings. */
const SAMPLE = [4096, 256];

/** The statistics are made anew when the number of traces has changed by this part. */
const STALENESS = 1 / 32;

/**
 * Asks the database within the time of a call. `valuesAt` is told how many milliseconds remain.
 *
 * @callback Ask
 * @param {string} text
 * @param {(remaining: number) => unknown[]} valuesAt
 * @param {AbortSignalLike | undefined} signal
 * @param {number} deadline
 * @returns {Promise<any[][]>} rows of texts and nulls
 */

/**
 * A trace of the database.
 *
 * @typedef {{ position: number, label: string | null, bytes: Buffer, isWhole: boolean }} Stored `isWhole`: with its embedding
 */

/** @typedef {{ position: number, statistics: NativeTraceStatistics }} Known statistics, and the next position when they were made */

/**
 * What a call knows of the database.
 *
 * @typedef {object} View
 * @property {number} seen the next position
 * @property {number} lowest the position of the oldest trace that counts
 * @property {number} limit how many traces count at most
 * @property {Stored[]} known the traces that were read, in the order of their positions
 * @property {number[][]} candidates for each entry, the positions of those that it is compared with; all of the known ones without statistics
 * @property {NativeTraceStatistics | undefined} statistics undefined if all traces are known
 */

/** The traces of a store: how they are compared and added. */
class TraceTable {
  #names;
  #method;
  #dimensions;
  /** @type {Ask} */
  #ask;
  /** @type {() => unknown[]} */
  #expected;
  /**
   * The statistics that were read or made last.
   *
   * @type {Known | undefined}
   */
  #known;
  /** How many traces counted when they were looked at last. */
  #size = 0;

  /**
   * @param {CalledNames} names
   * @param {'lexical' | 'full'} method
   * @param {() => unknown[]} expected the first parameters of every function
   * @param {Ask} ask
   */
  constructor(names, method, expected, ask) {
    this.#names = names;
    this.#method = method;
    this.#dimensions = method === 'full' ? DIMENSIONS : 0;
    this.#expected = expected;
    this.#ask = ask;
  }

  /**
   * Compares entries with all before them and adds them.
   *
   * @param {readonly NoveltyEntry[]} entries whose ids can be stored
   * @param {{ call: string, signal: AbortSignalLike | undefined, deadline: number, patience: (remaining: number) => number }} options
   * @returns {Promise<Array<StoredNeighbour | null>>}
   */
  async compareAndAdd(entries, { call, signal, deadline, patience }) {
    const traces = entries.map(packed);
    for (;;) {
      const looked = await this.#look(entries, traces, { call, count: 1, signal, deadline });
      if (!('seen' in looked)) return answersOf(looked.stored, entries);
      const found = await this.#findingWords(looked, traces);
      for (let view = looked; ; ) {
        const compared = await this.#compare(view, traces, 1);
        // A copy, so that the array is of the caller's realm.
        const nearest = Array.from(compared, ([best]) =>
          best === undefined ? null : neighbourOf(best, view, entries),
        );
        throwIfAborted(signal);
        const rows = await this.#ask(
          `SELECT * FROM ${this.#names.add}(${parameters(16)})`,
          (remaining) => [
            ...[...this.#expected(), ...this.#origin(entries), call, view.seen],
            ...[byteas(entries.map(({ words }) => words)), byteas(entries.map(embeddingOf))],
            ...[entries.map(({ id }) => id), nearest.map((each) => JSON.stringify(each)), ...found],
            patience(remaining),
          ],
          signal,
          deadline,
        );
        const [[kind]] = rows;
        if (kind === 'added') return nearest;
        if (kind === 'stored') return answersOf(rows, entries);
        const more = viewOf(rows, entries.length);
        // Too many to be returned.
        if (more.known.length === 0) break;
        view = extended(view, more);
      }
    }
  }

  /**
   * The stored traces that are most similar to an entry.
   *
   * @param {NoveltyEntry} entry
   * @param {number} count
   * @param {{ signal: AbortSignalLike | undefined, deadline: number }} options
   * @returns {Promise<StoredNeighbour[]>}
   */
  async nearest(entry, count, { signal, deadline }) {
    const traces = [packed(entry)];
    const view = await this.#look([entry], traces, { call: null, count, signal, deadline });
    if (!('seen' in view)) return [];
    const [found] = await this.#compare(view, traces, count);
    return Array.from(found, (similar) => neighbourOf(similar, view, [entry]));
  }

  /** @param {readonly NoveltyEntry[]} entries */
  #origin([{ model }]) {
    return [model?.model ?? null, model?.dtype ?? null, this.#method];
  }

  /**
   * Reads what entries are compared with, with statistics that are recent enough.
   *
   * @param {readonly NoveltyEntry[]} entries
   * @param {readonly Uint8Array[]} traces
   * @param {{ call: string | null, count: number, signal: AbortSignalLike | undefined, deadline: number }} options
   * @returns {Promise<View | { stored: any[][] }>}
   */
  async #look(entries, traces, { call, count, signal, deadline }) {
    for (;;) {
      const known = this.#known;
      /** @type {[number[], bigint[], number[]]} */
      const asked = [[], [], []];
      for (const [index, trace] of known === undefined ? [] : traces.entries()) {
        const { statistics } = /** @type {Known} */ (known);
        collect(asked, index, statistics.lookedForBy(trace, MOST_WORDS, BUDGET, this.#size));
      }
      const rows = await this.#ask(
        `SELECT * FROM ${this.#names.look}(${parameters(13)})`,
        () => [
          ...[...this.#expected(), ...this.#origin(entries), call, entries.length, known?.position ?? -1],
          ...[...asked.map(literal), Math.max(CANDIDATES, count)],
        ],
        signal,
        deadline,
      );
      if (rows[0][0] === 'stored') return { stored: rows };
      const view = viewOf(rows, entries.length);
      this.#size = view.seen - view.lowest;
      const summary = rows.find(([kind]) => kind === 'summary');
      // All traces are known.
      if (summary === undefined) return view;
      await this.#follow(view, summary, { signal, deadline });
      if (known === undefined) continue;
      view.statistics = this.#known?.statistics;
      return view;
    }
  }

  /**
   * Takes the statistics of the database, or makes them anew if these are too old and nobody else does.
   *
   * @param {View} view
   * @param {any[]} summary the row that tells of them
   * @param {{ signal: AbortSignalLike | undefined, deadline: number }} options
   */
  async #follow({ seen, lowest }, [, position, , , data], { signal, deadline }) {
    if (data !== null) {
      const statistics = await fromTable(async () =>
        native.NativeTraceStatistics.fromBytes(bytesOf(data), this.#dimensions),
      );
      this.#known = { position: Number(position), statistics };
    }
    const hasAny = this.#known !== undefined;
    if (hasAny && seen - Number(position) < (seen - lowest) * STALENESS) return;
    const rows = await this.#ask(
      `SELECT * FROM ${this.#names.sample}(${parameters(6)})`,
      () => [...this.#expected(), hasAny ? position : null, ...SAMPLE],
      signal,
      deadline,
    );
    // Somebody else makes them.
    if (rows.length === 0) return;
    const sample = viewOf(rows, 0);
    const isWhole = (/** @type {Stored} */ { isWhole }) => isWhole;
    const isOther = (/** @type {Stored} */ { isWhole }) => !isWhole;
    const bytesOfAll = (/** @type {Stored[]} */ traces) => traces.map(({ bytes }) => bytes);
    const statistics = await this.#statisticsOf(
      bytesOfAll(sample.known.filter(isWhole)),
      bytesOfAll(sample.known.filter(isOther)),
      sample.seen - sample.lowest,
    );
    await this.#ask(
      `UPDATE ${this.#names.summary} SET position = $1, data = $2, making = NULL WHERE id = 1 AND position < $1`,
      () => [sample.seen, `\\x${Buffer.from(statistics.toBytes()).toString('hex')}`],
      signal,
      deadline,
    );
    this.#known = { position: sample.seen, statistics };
  }

  /**
   * @param {Uint8Array[]} traces
   * @param {Uint8Array[]} [others] without their embeddings
   * @param {number} [memory] of how many traces these are a sample
   */
  #statisticsOf(traces, others = [], memory = traces.length) {
    const { NativeTraceStatistics } = native;
    return fromTable(async () => NativeTraceStatistics.of(traces, others, memory, this.#dimensions));
  }

  /**
   * By which words traces are found, as the last parameters of an addition.
   *
   * @param {View} view
   * @param {readonly Uint8Array[]} traces
   */
  async #findingWords(view, traces) {
    const statistics =
      view.statistics ?? (await this.#statisticsOf([...view.known.map(({ bytes }) => bytes), ...traces]));
    /** @type {[number[], bigint[], number[]]} */
    const found = [[], [], []];
    for (const [index, trace] of traces.entries()) collect(found, index, statistics.foundBy(trace));
    return found.map(literal);
  }

  /**
   * The most similar of what each entry is compared with.
   *
   * @param {View} view
   * @param {readonly Uint8Array[]} traces
   * @param {number} count
   */
  #compare({ seen, lowest, limit, known, candidates, statistics }, traces, count) {
    /** @type {Map<number, number>} */
    const indexes = new Map();
    for (const [index, { position }] of known.entries()) indexes.set(position, index);
    const named = traces.map((_, entry) => {
      const counts = (/** @type {number} */ position) => position >= Math.max(lowest, seen + entry - limit);
      const positions = candidates[entry].filter(counts);
      // Where no words are shared, the newest one stands for all.
      if (positions.length === 0)
        positions.push(
          ...known
            .slice(-1)
            .map(({ position }) => position)
            .filter(counts),
        );
      return Uint32Array.from(positions, (position) => /** @type {number} */ (indexes.get(position)));
    });
    const bytes = known.map((each) => each.bytes);
    return fromTable(async () =>
      native.comparePacked(
        bytes,
        [...traces],
        this.#dimensions,
        limit,
        count,
        statistics,
        statistics && named,
      ),
    );
  }
}

/**
 * What the rows of an answer say.
 *
 * @param {any[][]} rows
 * @param {number} entries how many are compared
 * @returns {View}
 */
function viewOf(rows, entries) {
  /** @type {View} */
  const view = { seen: 0, lowest: 0, limit: 0, known: [], candidates: [], statistics: undefined };
  view.candidates = Array.from({ length: entries }, () => []);
  for (const [kind, number, query, label, words, embedding] of rows) {
    const position = Number(number);
    if (kind === 'seen') Object.assign(view, { seen: position, limit: Number(label) });
    else if (kind === 'lowest') view.lowest = position;
    else if (kind === 'candidate') view.candidates[query].push(position);
    else if (kind === 'trace') {
      view.known.push({ position, label, bytes: bytesOf(words, embedding), isWhole: embedding !== null });
    }
  }
  return view;
}

/**
 * A view with the traces that others have added since, with which every entry is compared.
 *
 * @param {View} view
 * @param {View} more
 * @returns {View}
 */
function extended(view, more) {
  const positions = more.known.map(({ position }) => position);
  return {
    ...{ seen: more.seen, lowest: more.lowest, limit: more.limit, statistics: view.statistics },
    known: [...view.known.filter(({ position }) => position >= more.lowest), ...more.known],
    candidates: view.candidates.map((candidates) => [...candidates, ...positions]),
  };
}

/**
 * @param {NativeSimilarTrace} similar
 * @param {View} view
 * @param {readonly NoveltyEntry[]} entries
 * @returns {StoredNeighbour}
 */
function neighbourOf({ index, similarity, lexical, contained, embedded }, { known }, entries) {
  const label = index < known.length ? known[index].label : entries[index - known.length].id;
  return { label, similarity, lexical, contained, embedded: embedded ?? null };
}

/**
 * The answers to a call that is stored already.
 *
 * @param {any[][]} rows
 * @param {readonly NoveltyEntry[]} entries
 * @returns {Array<StoredNeighbour | null>}
 */
function answersOf(rows, entries) {
  if (rows.length !== entries.length) {
    throw codedError(
      Error,
      'ERR_STORE',
      'the call is stored already, and a part of its traces is deleted by now',
    );
  }
  return rows.map(([, , , nearest]) => JSON.parse(nearest));
}

/**
 * The bytes that PostgreSQL writes in hexadecimal digits after `\x`.
 *
 * @param {...(string | null)} texts one after another
 */
function bytesOf(...texts) {
  return Buffer.from(texts.map((text) => text?.slice(2) ?? '').join(''), 'hex');
}

/**
 * An array of bytes as PostgreSQL reads one.
 *
 * @param {Array<Uint8Array | undefined>} all
 */
function byteas(all) {
  const texts = all.map((bytes) =>
    bytes === undefined
      ? 'NULL'
      : `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}"`,
  );
  return `{${texts.join()}}`;
}

/** @param {readonly (number | bigint)[]} numbers */
function literal(numbers) {
  return `{${numbers.join()}}`;
}

/**
 * The parameters `$1` to this number.
 *
 * @param {number} count
 */
function parameters(count) {
  return Array.from({ length: count }, (_, index) => `$${index + 1}`).join(', ');
}

/** @param {NoveltyEntry} entry */
function embeddingOf({ vectors: [vector] }) {
  return vector && vectorBytes(vector);
}

/**
 * The reply of the addon. Entries were checked before, so what is damaged is in the table.
 *
 * @template T
 * @param {() => Promise<T>} ask
 * @returns {Promise<T>}
 */
async function fromTable(ask) {
  try {
    return await ask();
  } catch (thrown) {
    const error = /** @type {import('../../calls/errors.js').CodedError} */ (localError(thrown));
    if (error.code !== 'ERR_INVALID_ENTRY') throw error;
    throw codedError(Error, 'ERR_STORE', `the table of the store is damaged: ${error.message}`, error);
  }
}

/**
 * @param {[number[], bigint[], number[]]} columns
 * @param {number} index of the entry
 * @param {import('../../binding.js').NativeFindingWords} words
 */
function collect([entries, hashes, weights], index, words) {
  for (const [nth, hash] of words.hashes.entries()) {
    entries.push(index);
    hashes.push(hash);
    weights.push(words.weights[nth]);
  }
}

module.exports = { TraceTable };
