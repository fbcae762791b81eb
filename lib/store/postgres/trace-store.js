'use strict';

// A novelty memory of traces in PostgreSQL. It compares and adds by the functions of traces-sql.js, in three statements: look up postings,
// from which the addon chooses candidates; add, and learn what others have added since; read candidates and additions, which the addon
// compares exactly. See crates/index/DESIGN.md.

const { codedError, localError } = require('../../calls/errors.js');
const { oneOf, readCallOptions, requireNumber } = require('../../calls/options.js');
const { DIMENSIONS } = require('../../embedding.js');
const { readEntry } = require('../entry.js');
const { bytesOf: vectorBytes, packed } = require('../packed.js');
const { detected } = require('./statement.js');
const { MAX_SQL_INTEGER, PostgresStore, Table, readShared, storable } = require('./store.js');
const { BLOCK, PARAMETERS, replaceSummary, selectPositions } = require('./traces-sql.js');

/**
 * @import { NoveltyComparison, NoveltyEntry, NoveltyStore, StoredNeighbour } from '../../../index.js'
 * @import { PostgresTraceStore as Public, PostgresTraceStoreOptions } from '../../../postgres.js'
 * @import { NativeSimilarTrace, NativeSought, NativeTraceStatistics } from '../../binding.js'
 * @import { Adding, CallTimes } from './store.js'
 */

/** The most words of a query that are looked up. */
const MOST_WORDS = 128;

/** The approximate number of postings of these words. Reading a row takes a microsecond, adding up a posting a nanosecond. */
const BUDGET = 64_000;

/** The approximate number of postings for a batch, whose traces often share words. */
const BATCH_BUDGET = 1_000_000;

/** The number of candidates of a trace, and of all traces of a batch. */
const CANDIDATES = 96;
const BATCH_CANDIDATES = 2048;

/** Traces that are all counted for statistics, traces that are added to them at a time, and embeddings that P is computed from. */
const SAMPLE = [4096, 16_384, 256];

/** Statistics are renewed when this share of the traces is new. */
const STALENESS = 1 / 32;

/** @typedef {{ position: number, label: string | null, bytes: Buffer }} Stored `bytes`: the words and the embedding */

/** @typedef {{ position: number, statistics: NativeTraceStatistics }} Known statistics, and the next position at their making */

/**
 * The state of the database that a call has read.
 *
 * @typedef {object} View
 * @property {boolean} isStored whether the call is stored already, and the rest is the state at its addition
 * @property {number} seen the next position
 * @property {number} lowest the position of the oldest trace within the limits
 * @property {number} limit the maximum number of traces
 * @property {Stored[]} known the traces that were read, by position
 * @property {number[][]} candidates for each entry, the positions to compare with; all known ones without statistics
 * @property {NativeTraceStatistics | undefined} statistics undefined if all traces are known
 * @property {NativeSought | undefined} sought the words to look up and to index; undefined without statistics
 */

/**
 * A novelty store of traces in a PostgreSQL table that any number of processes share.
 *
 * @implements {NoveltyStore}
 */
class PostgresTraceStore extends PostgresStore {
  #table;
  #kind;
  #dimensions;
  /** Loaded only where it is needed. */
  #native = require('../../loader.js').addon;
  /** @type {Known | undefined} the latest statistics */
  #known;
  /** The number of traces at the last lookup. */
  #size = 0;
  /** The next position at the last lookup. */
  #seen = 0;

  /** @param {PostgresTraceStoreOptions} options */
  constructor(options) {
    const { given, settings } = readShared(options, { novelty: oneOf(['lexical', 'full']) });
    const { novelty = 'lexical' } = given;
    const kind = { dimensions: DIMENSIONS, isUnit: true, method: novelty };
    const table = new Table({ ...settings, novelty, index: 'exact' }, PARAMETERS);
    super(table, kind, (entries, adding) => this.#compareAndAdd(entries, adding));
    this.#table = table;
    this.#kind = kind;
    this.#dimensions = novelty === 'full' ? DIMENSIONS : 0;
  }

  /** @returns {'lexical' | 'full'} */
  get novelty() {
    return this.#kind.method;
  }

  /** @type {Public['nearest']} */
  async nearest() {
    throw detected('ERR_STORE_OTHER_METHOD', 'it keeps traces, not vectors; ask nearestTraces');
  }

  /** @type {Public['nearestTraces']} */
  async nearestTraces(entry, count, options) {
    const { signal } = readCallOptions(options);
    const read = readEntry(entry, 'entry', this.#kind);
    const amount = Math.min(requireNumber(count, 'count', { from: 0, whole: true }), MAX_SQL_INTEGER);
    const times = { signal, deadline: this.#table.deadline };
    const traces = [packed(read)];
    const view = await this.#look([read], traces, null, amount, times);
    await this.#read(view, view.seen, times);
    const [found] = await this.#compare(view, traces, amount);
    return Array.from(found, (similar) => neighbourOf(similar, view, [read]));
  }

  /**
   * @param {NoveltyEntry[]} given
   * @param {Adding} adding
   * @returns {Promise<NoveltyComparison[]>}
   */
  async #compareAndAdd(given, { signal, call }) {
    const entries = given.map((entry) => ({ ...entry, id: storable(entry.id) }));
    const traces = entries.map(packed);
    const { deadline } = this.#table;
    const times = { signal, deadline };
    for (;;) {
      const view = await this.#look(entries, traces, call, 1, times);
      if (view.isStored) {
        await this.#read(view, view.seen, times);
        if (view.seen > 0 && view.known.length === 0) throw deleted();
        return this.#nearestOf(view, traces, entries);
      }
      const { entries: found, hashes, weights, draws } = (await this.#soughtOf(view, entries, traces)).found;
      times.signal?.throwIfAborted();
      const [[kind, first], ...rest] = await this.#table.call(
        'add',
        [
          ...this.#origin(entries),
          call,
          view.seen,
          byteas(entries.map(({ words }) => words)),
          byteas(entries.map(({ vectors: [vector] }) => vector && vectorBytes(vector))),
          entries.map(({ id }) => id),
          ...[found, hashes, weights, draws].map(literal),
        ],
        times,
      );
      // Another attempt stored the call, or others added too many traces.
      if (kind !== 'added') continue;
      const added = viewOf(rest, 0);
      view.lowest = added.lowest;
      // An addition is not cancelled any more.
      await this.#read(view, Number(first), { deadline });
      return this.#nearestOf(view, traces, entries);
    }
  }

  /**
   * @param {View} view
   * @param {readonly Uint8Array[]} traces
   * @param {readonly NoveltyEntry[]} entries
   */
  async #nearestOf(view, traces, entries) {
    const compared = await this.#compare(view, traces, 1);
    // A copy, so that the array is of the caller's realm.
    return Array.from(compared, ([best]) => [best === undefined ? null : neighbourOf(best, view, entries)]);
  }

  /**
   * Reads the candidates of a view and the later traces below position `first`. A separate read after the addition, so that a slow
   * reader does not hold the lock.
   *
   * @param {View} view
   * @param {number} first
   * @param {CallTimes} times
   */
  async #read(view, first, times) {
    const { seen, candidates, known } = view;
    // Without statistics all candidates are known.
    const positions = view.statistics === undefined ? [] : [...new Set(candidates.flat())];
    if (positions.length > 0 || first > seen) {
      const rows = await this.#table.run(
        selectPositions(this.#table.names),
        [literal(positions), Math.max(seen, view.lowest), first - 1],
        times,
      );
      const more = viewOf(rows, 0).known;
      known.push(...more);
      const since = more.map(({ position }) => position).filter((position) => position >= seen);
      for (const own of candidates) own.push(...since);
    }
    view.known = known.filter(({ position }) => position >= view.lowest);
    view.seen = first;
  }

  /** @param {readonly NoveltyEntry[]} entries */
  #origin([{ model }]) {
    return [model?.model ?? null, model?.dtype ?? null, this.novelty];
  }

  /**
   * Finds the candidates of entries by recent statistics. Reads all traces if there are few.
   *
   * @param {readonly NoveltyEntry[]} entries
   * @param {readonly Uint8Array[]} traces
   * @param {string | null} call
   * @param {number} count
   * @param {CallTimes} times
   * @returns {Promise<View>}
   */
  async #look(entries, traces, call, count, times) {
    for (;;) {
      const known = this.#known;
      const budget = Math.min(BUDGET, BATCH_BUDGET / entries.length);
      const sought = known && (await known.statistics.seek([...traces], MOST_WORDS, budget, this.#size));
      const rows = await this.#table.call(
        'look',
        [...this.#origin(entries), call, entries.length, known?.position ?? -1, literal(sought?.words ?? [])],
        times,
      );
      const view = viewOf(rows, entries.length);
      const summary = rows.find(([kind]) => kind === 'summary');
      if (!view.isStored) [this.#size, this.#seen] = [view.seen - view.lowest, view.seen];
      // All traces are known.
      if (summary === undefined) return view;
      await this.#follow(summary, times);
      view.statistics = this.#known?.statistics;
      if (sought === undefined) continue;
      view.sought = sought;
      const postings = rows.find(([kind]) => kind === 'postings')?.[3];
      const most = Math.max(count, Math.min(CANDIDATES, Math.ceil(BATCH_CANDIDATES / entries.length)));
      const found = await fromTable(() =>
        sought.candidates(bytesOf(postings ?? ''), BLOCK, view.lowest, view.seen, most),
      );
      // Without shared words, the newest trace is the candidate, because it expires last.
      view.candidates = found.map((own) => [...new Set([...own, view.seen - 1])]);
      return view;
    }
  }

  /**
   * Reads the statistics, or renews them if they are too old and no other process does.
   *
   * @param {any[]} summary the row that tells of them
   * @param {CallTimes} times
   */
  async #follow([, position, , data], times) {
    if (data !== null) {
      const statistics = await this.#statisticsFrom(data);
      this.#known = { position: Number(position), statistics };
    }
    const hasAny = this.#known !== undefined;
    if (hasAny && this.#seen - Number(position) < this.#size * STALENESS) return;
    const [amount, most, embeddings] = SAMPLE;
    const rows = await this.#table.call(
      'sample',
      [hasAny ? position : null, amount, most, this.#dimensions === 0 ? 0 : embeddings],
      times,
    );
    // Another process renews them.
    if (rows.length === 0) return;
    const sample = viewOf(rows, 0);
    const former = rows.find(([kind]) => kind === 'summary')?.[3];
    const statistics = await this.#statisticsOf(
      sample.known.map(({ bytes }) => bytes),
      {
        embedded: rows.filter(([kind]) => kind === 'embedded').map((row) => bytesOf(row[3])),
        memory: sample.seen - sample.lowest,
        known: former == null ? undefined : await this.#statisticsFrom(former),
      },
    );
    const bytes = Buffer.from(statistics.toBytes());
    await this.#table.run(
      replaceSummary(this.#table.names),
      [sample.seen, `\\x${bytes.toString('hex')}`, statistics.commonBytes],
      times,
    );
    this.#known = { position: sample.seen, statistics };
  }

  /** @param {string} data in base 64 */
  #statisticsFrom(data) {
    return fromTable(async () =>
      this.#native.NativeTraceStatistics.fromBytes(bytesOf(data), this.#dimensions),
    );
  }

  /**
   * @param {Uint8Array[]} words of traces
   * @param {{ embedded?: Uint8Array[], memory?: number, known?: NativeTraceStatistics }} [options] embeddings, the number of
   * traces, and previous statistics
   */
  #statisticsOf(words, { embedded = [], memory = words.length, known } = {}) {
    const { NativeTraceStatistics } = this.#native;
    return fromTable(async () => NativeTraceStatistics.of(words, embedded, memory, this.#dimensions, known));
  }

  /**
   * @param {View} view
   * @param {readonly NoveltyEntry[]} entries
   * @param {readonly Uint8Array[]} traces
   */
  async #soughtOf({ known, sought }, entries, traces) {
    if (sought !== undefined) return sought;
    const own = entries.map(({ words }) => /** @type {Uint8Array} */ (words));
    const wordsOf = (/** @type {Stored} */ { bytes }) =>
      bytes.subarray(0, bytes.length - this.#dimensions * Float32Array.BYTES_PER_ELEMENT);
    const statistics = await this.#statisticsOf([...known.map(wordsOf), ...own]);
    return statistics.seek([...traces], 0, 0, 0);
  }

  /**
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
      // Candidates may have been swept meanwhile.
      const positions = candidates[entry].filter((position) => indexes.has(position) && counts(position));
      return Uint32Array.from(positions, (position) => /** @type {number} */ (indexes.get(position)));
    });
    const bytes = known.map((each) => each.bytes);
    return fromTable(async () =>
      this.#native.comparePacked(
        bytes,
        [...traces],
        this.#dimensions,
        limit,
        count,
        seen - lowest,
        statistics,
        statistics && named,
      ),
    );
  }
}

/**
 * @param {any[][]} rows
 * @param {number} entries the number of entries
 * @returns {View}
 */
function viewOf(rows, entries) {
  /** @type {View} */
  const view = {
    ...{ isStored: false, seen: 0, lowest: 0, limit: 0, known: [], candidates: [] },
    ...{ statistics: undefined, sought: undefined },
  };
  view.candidates = Array.from({ length: entries }, () => []);
  for (const [kind, number, label, data] of rows) {
    const position = Number(number);
    if (kind === 'stored') view.isStored = true;
    else if (kind === 'seen') Object.assign(view, { seen: position, limit: Number(label) });
    else if (kind === 'lowest') view.lowest = position;
    else if (kind === 'trace') view.known.push({ position, label, bytes: bytesOf(data) });
  }
  return view;
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

/** Returns the error of a call that is stored already, but with nothing left that it was compared with. */
function deleted() {
  return codedError(
    Error,
    'ERR_STORE_ALREADY_STORED',
    'the call is stored already, and all that it was compared with is deleted by now; do not send it again',
  );
}

/** @param {string} text */
function bytesOf(text) {
  return Buffer.from(text, 'base64');
}

/** @param {Array<Uint8Array | undefined>} all */
function byteas(all) {
  const texts = all.map((bytes) =>
    bytes === undefined
      ? 'NULL'
      : `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}"`,
  );
  return `{${texts.join()}}`;
}

/** @param {Pick<readonly (number | bigint)[], 'join'> | Pick<BigInt64Array, 'join'>} numbers */
function literal(numbers) {
  return `{${numbers.join()}}`;
}

/**
 * Returns the reply of the addon. Entries were checked before, so malformed data comes from the table.
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

module.exports = { PostgresTraceStore };
