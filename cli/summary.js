'use strict';

// The figures of a run, in bounded memory however many traces there are.

const { NATIVE } = require('../lib/format-names.js');
const { SIMILARITY } = require('./report/duplicates.js');
const { Histogram, SCORE_BINS } = require('./report/statistics.js');
const { copyOf, cut } = require('./report/text.js');
const { NO_DOMAIN } = require('./formats.js');
const { decimal, labelOf, printable } = require('./printable.js');

/** @import { CleanOptions, EmbedderStatus, Redaction } from '../index.js' */

/** How many domains are told apart; traces of further ones are counted together. */
const MAX_DOMAINS = 50;
const OTHER_DOMAINS = '(others)';
const DOMAIN_WIDTH = 20;

/** Beyond this, in UTF-16 code units, domains are taken for the same. */
const DOMAIN_LENGTH = 100;

/**
 * What is known of a run besides its scores.
 *
 * @typedef {object} About
 * @property {number} threshold
 * @property {import('./ranking.js').Top | null} top how many of the best were asked for; `threshold` is the least score of them then
 * @property {Required<CleanOptions> | null} clean how traces were cleaned; null if they were not
 * @property {boolean} interrupted
 * @property {Embedder} embedder
 * @property {MemoryFile | null} memory null if it does not outlive the run
 * @property {Array<{ file: string, traces: number | null }>} written null where traces are not counted
 */

/** @typedef {Partial<EmbedderStatus> & Pick<EmbedderStatus, 'available' | 'dtype' | 'reason'>} Embedder where nothing is to be embedded, the reason is null */

/**
 * Where the memory is kept, how many traces it held before the run and holds after it, and how many it has forgotten; null where that
 * is not known.
 *
 * @typedef {{ file: string, before: number, after: number | null, forgotten: number | null }} MemoryFile
 */

/** @typedef {ReturnType<Summary['figures']>} Figures */

class Scores extends Histogram {
  kept = 0;

  constructor() {
    super(SCORE_BINS);
  }

  /**
   * @override
   * @param {number} score
   * @param {boolean} [kept]
   */
  add(score, kept) {
    super.add(score);
    if (kept) this.kept++;
  }
}

class Summary {
  #all = new Scores();
  /** @type {Map<string, Scores>} */
  #domains = new Map();
  #nearDuplicates = 0;
  #start = 0;
  #unknownSuccess = 0;
  #unknownConfidence = 0;
  /** By their types, how many texts were replaced. @type {Map<string, number>} */
  #redactions = new Map();
  /** Traces that were converted from another format. */
  converted = 0;
  bad = 0;
  /** Traces that were not of a conversation, such as spans of other programs. */
  withoutConversation = 0;
  /** Traces that were not compared, because the memory held them with their scores. */
  knownTraces = 0;

  /** The time is taken from now on. */
  begin() {
    this.#start = performance.now();
  }

  /** @param {import('./formats.js').Result} result */
  add({ breakdown: { score }, domain, format, isNearDuplicate, kept, known }) {
    this.#all.add(score, kept);
    if (format !== NATIVE) this.converted++;
    if (!known.success) this.#unknownSuccess++;
    if (!known.confidence) this.#unknownConfidence++;
    if (isNearDuplicate) this.#nearDuplicates++;
    let name = domain.length > DOMAIN_LENGTH ? copyOf(cut(domain, DOMAIN_LENGTH)) : domain;
    if (!this.#domains.has(name) && this.#domains.size >= MAX_DOMAINS) name = OTHER_DOMAINS;
    const scores = this.#domains.get(name) ?? new Scores();
    this.#domains.set(name, scores);
    scores.add(score, kept);
  }

  /** @param {Redaction[]} redactions what was replaced in a trace */
  addRedactions(redactions) {
    for (const { type, count } of redactions) {
      this.#redactions.set(type, (this.#redactions.get(type) ?? 0) + count);
    }
  }

  get scored() {
    return this.#all.count;
  }

  /**
   * The figures, for programs.
   *
   * @param {About} about
   */
  figures({ clean, ...about }) {
    const seconds = (performance.now() - this.#start) / 1000;
    return {
      scored: this.#all.count,
      kept: this.#all.kept,
      dropped: this.#all.count - this.#all.kept,
      bad: this.bad,
      withoutConversation: this.withoutConversation,
      knownTraces: this.knownTraces,
      nearDuplicates: this.#nearDuplicates,
      converted: this.converted,
      unknownSuccess: this.#unknownSuccess,
      unknownConfidence: this.#unknownConfidence,
      cleaned: clean && { ...clean, redactions: Object.fromEntries(this.#redactions) },
      mean: this.#all.mean,
      median: this.#all.quantile(0.5),
      p10: this.#all.quantile(0.1),
      p90: this.#all.quantile(0.9),
      domains: [...this.#domains]
        .sort(([, a], [, b]) => b.count - a.count)
        .map(([domain, scores]) => ({
          domain,
          scored: scores.count,
          kept: scores.kept,
          mean: scores.mean,
          median: scores.quantile(0.5),
        })),
      seconds,
      perSecond: this.#all.count / seconds,
      ...about,
    };
  }
}

/**
 * The figures, for people.
 *
 * @param {Figures} figures
 * @param {{ splits: boolean, known: 'skip' | 'score' | 'again' }} options whether a threshold was set, and what was done with known
 * traces
 */
function renderSummary(figures, { splits, known }) {
  const { scored, kept, dropped, bad, domains, embedder, memory, nearDuplicates } = figures;
  const threshold = `${figures.threshold}${splits ? '' : ' (the default)'}`;
  const lines = [
    `${count(scored, 'trace')} scored in ${figures.seconds.toFixed(1)} s, ${rate(figures.perSecond)} per second` +
      `${bad > 0 ? `; ${count(bad, 'bad line')}` : ''}`,
  ];
  if (scored > 0) {
    const [mean, median, p10, p90] = /** @type {const} */ (['mean', 'median', 'p10', 'p90']).map((name) =>
      decimal(figures[name] ?? 0),
    );
    lines.push(
      row('score', `mean ${mean}, median ${median}, p10 ${p10}, p90 ${p90}`),
      row(
        'kept',
        `${grouped(kept)} ${bestWords(figures) ?? `of at least ${threshold}`}, ${grouped(dropped)} below`,
      ),
    );
    if (nearDuplicates > 0) lines.push(row('novelty', nearDuplicateWords(nearDuplicates)));
    if (figures.converted > 0)
      lines.push(row('converted', `${count(figures.converted, 'trace')} from another format`));
    lines.push(...unknownWords(figures));
    if (figures.cleaned !== null) lines.push(row('cleaned', cleanedWords(figures.cleaned)));
    if (domains.length > 1) lines.push(...domainTable(domains));
  }
  if (figures.withoutConversation > 0) {
    lines.push(
      row('skipped', `${count(figures.withoutConversation, 'trace')} without a conversation: see --verbose`),
    );
  }
  if (figures.knownTraces > 0) lines.push(row('known', knownWords(figures.knownTraces, known)));
  lines.push(row('embedder', embedderWords(embedder)));
  for (const { file, traces } of figures.written) {
    lines.push(row('written', traces === null ? file : `${file}: ${count(traces, 'trace')}`));
  }
  if (memory !== null) {
    const after = memory.after === null ? 'unknown' : count(memory.after, 'trace');
    const forgotten = memory.forgotten ? `, ${grouped(memory.forgotten)} forgotten, the oldest` : '';
    lines.push(row('memory', `${memory.file}: ${grouped(memory.before)} → ${after}${forgotten}`));
  }
  return `${lines.join('\n')}\n`;
}

/** @param {Figures} figures */
function bestWords({ threshold, top }) {
  if (top === null || top === undefined) return undefined;
  const asked = 'count' in top ? grouped(top.count) : `${top.percent} %`;
  return `of the best ${asked}, which score at least ${decimal(threshold)}`;
}

/** @param {NonNullable<Figures['cleaned']>} cleaned */
function cleanedWords({ level, strict, redactions }) {
  const counts = Object.entries(redactions).map(([type, number]) => `${type} ${grouped(number)}`);
  return `${counts.join(', ') || 'nothing was found'} (${level}${strict ? ', strict' : ''})`;
}

/** @param {Figures['domains']} domains */
function domainTable(domains) {
  const rows = domains.map(({ domain, scored, kept, mean, median }) => [
    labelOf(domain, NO_DOMAIN, DOMAIN_WIDTH),
    grouped(scored),
    grouped(kept),
    decimal(mean ?? 0),
    decimal(median ?? 0),
  ]);
  const table = [['domain', 'traces', 'kept', 'mean', 'median'], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map((cells) => cells[column].length)));
  return table.map(
    ([name, ...cells]) =>
      `  ${name.padEnd(widths[0])}${cells.map((cell, at) => `  ${cell.padStart(widths[at + 1])}`).join('')}`,
  );
}

/** @param {number} number */
function nearDuplicateWords(number) {
  const novelty = Number((1 - SIMILARITY).toFixed(4));
  const what = number === 1 ? 'is a near-duplicate of an earlier one' : 'are near-duplicates of earlier ones';
  return `${count(number, 'trace')} ${what}: a novelty of ${novelty} or less`;
}

/**
 * @param {number} number
 * @param {'skip' | 'score' | 'again'} known
 */
function knownWords(number, known) {
  return known === 'score'
    ? `${count(number, 'trace')} with the novelty of the earlier score`
    : `${count(number, 'trace')}, skipped; --known score writes them with their earlier scores`;
}

/**
 * What was scored with a default, and how to say better.
 *
 * @param {Figures} figures
 */
function unknownWords({ unknownSuccess, unknownConfidence }) {
  const words = [];
  if (unknownSuccess > 0) {
    words.push(`success not known of ${count(unknownSuccess, 'trace')}, scored as failed: see --success`);
  }
  if (unknownConfidence > 0) {
    words.push(
      `confidence not known of ${count(unknownConfidence, 'trace')}, scored as 0.5: see --confidence`,
    );
  }
  return words.map((text, at) => row(at === 0 ? 'outcome' : '', text));
}

/** @param {Embedder} embedder */
function embedderWords({ available, dtype, engine, kernel, model, reason, runtimeVersion, threads }) {
  if (!available) {
    return reason === null
      ? 'none: words alone are compared'
      : `none, so novelty is 0.5 throughout: ${printable(reason)}`;
  }
  const computes = engine === 'onnxruntime' ? `ONNX Runtime ${runtimeVersion}` : `built in (${kernel})`;
  return `${labelOf(model ?? '', 'a model')} (${dtype}), ${computes}, ${count(threads ?? 0, 'thread')}`;
}

/**
 * @param {string} name
 * @param {string} text
 */
const row = (name, text) => `  ${name.padEnd(10)}${text}`;
/** @param {number} value */
const rate = (value) => (value < 10 ? value.toFixed(1) : grouped(Math.round(value)));
/** @param {number} value */
const grouped = (value) => value.toLocaleString('en');
/**
 * @param {number} value
 * @param {string} noun
 */
const count = (value, noun) => `${grouped(value)} ${noun}${value === 1 ? '' : 's'}`;

module.exports = { rate, renderSummary, Summary };
