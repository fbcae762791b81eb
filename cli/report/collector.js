'use strict';

// Collects the scores of a run, in bounded memory, for one page of HTML that shows them. The page itself is made of
// report/ by scripts/build-report.mjs; here the figures are put into it.

const fs = require('node:fs');
const path = require('node:path');
const { gunzipSync } = require('node:zlib');

const { codedError } = require('../../lib/calls/errors.js');
const { NearDuplicates, resemblanceOf } = require('./duplicates.js');
const { DIMENSION_BINS, Histogram, SCORE_BINS, Sequence, Top } = require('./statistics.js');
const { copyOf, cut, isBlank } = require('./text.js');

// From the manifest, because this module is bundled into dist/.
const templateFile = () =>
  path.join(path.dirname(require.resolve('../../package.json')), 'dist', 'report.html.gz');

/** Where the template takes the figures. */
const PLACE = '__KNOWLEDGEPULSE_REPORT__';

/** @typedef {import('../..').ScoreBreakdown} ScoreBreakdown */

/**
 * The figures of a report, as its page reads them.
 *
 * @typedef {ReturnType<ReportCollector['summary']>} Report
 */

/** @typedef {'score' | keyof ScoreBreakdown['dimensions']} Measure */

/** @typedef {{ kept: number } & Record<Measure, InstanceType<typeof Histogram>>} Domain */

/** @typedef {import('../..').NearestTrace} Nearest */

/** @typedef {NonNullable<ReturnType<InstanceType<typeof Histogram>['summary']>>} Summary */

/** @typedef {InstanceType<typeof Top<ListedBreakdown, { breakdown: { score: number } }>>} TopTraces */

/**
 * A trace of which everything is listed.
 *
 * @typedef {import('./duplicates.js').ListedTrace & {
 *   index: number, source: string, line: number | null, element: number | null, score: number, excerpt: string,
 *   domain: string | null, success: boolean, breakdown: Omit<ScoreBreakdown, 'profile'> & { profile: string | null },
 * }} ListedBreakdown
 */

/**
 * How a run ended.
 *
 * @typedef {object} Run
 * @property {Date} finishedAt
 * @property {number} seconds how long scoring took
 * @property {boolean} [interrupted] whether it was ended before everything was read
 * @property {import('../summary.js').Figures['cleaned']} [cleaned] how traces were cleaned, and what was replaced
 */

/** @type {Array<keyof ScoreBreakdown['dimensions']>} */
const DIMENSIONS = ['complexity', 'novelty', 'toolDiversity', 'outcome'];
/** What is told of the nearest trace, beside its label. */
const NEAREST = /** @type {const} */ ([
  ...['similarity', 'lexical', 'contained', 'embedded', 'sharedWords', 'newWords'],
]);
/** What the page shows: multiples of the 100 steps of its slider, so that what it counts is exact. */
const SHOWN_BINS = 1000;
const SHOWN_DOMAIN_BINS = 200;
const SEQUENCE_BUCKETS = 2000;
const LISTED_TRACES = 10;
const LISTED_ERRORS = 100;
const LISTED_SOURCES = 50;
/** Domains beyond these count as one, and so do profiles and rules. */
const LISTED_NAMES = 40;
const REST = '(others)';

/** Lengths in UTF-16 code units beyond which text is cut. */
const EXCERPT_LENGTH = 240;
const NAME_LENGTH = 200;

/**
 * Collects what a report shows. Memory does not grow with the number of traces, and everything that a trace carries may
 * be hostile: it is cut to a length here and escaped by the page.
 */
class ReportCollector {
  #about;
  #count = 0;
  #kept = 0;
  #succeeded = 0;
  #truncated = 0;
  #scores = new Histogram(SCORE_BINS);
  /** @type {Map<string, Domain>} */
  #domains = new Map();
  /** @type {Map<string | null, { weights: import('../..').ScoringWeights, count: number }>} */
  #profiles = new Map();
  /** @type {Map<string, number>} */
  #rules = new Map();
  /** @type {Map<ScoreBreakdown['noveltyBasis'], number>} */
  #bases = new Map();
  #novelty = new Sequence(SEQUENCE_BUCKETS);
  /** @type {Array<{ source: string, position: number }>} */
  #starts = [];
  /** @type {string | undefined} */
  #lastSource;
  #duplicates = new NearDuplicates();
  /** @type {TopTraces} */
  #best = new Top(LISTED_TRACES, (a, b) => b.breakdown.score - a.breakdown.score);
  /** @type {TopTraces} */
  #worst = new Top(LISTED_TRACES, (a, b) => a.breakdown.score - b.breakdown.score);
  /** @type {Array<{ source: string, line: number | null, element: number | null, message: string }>} */
  #errors = [];
  #errorCount = 0;

  /**
   * @param {object} options
   * @param {number} options.threshold traces that score as much or more are kept
   * @param {string[]} options.sources the names of what is read
   * @param {'prefix' | 'lexical' | 'full'} options.novelty
   * @param {'fp32' | 'q8' | null} options.dtype null without an embedder
   * @param {string} options.version of this package
   */
  constructor({ threshold, sources, novelty, dtype, version }) {
    this.#about = {
      threshold,
      sources: sources.slice(0, LISTED_SOURCES).map((name) => excerptOf(name, NAME_LENGTH)),
      sourceCount: sources.length,
      noveltyMode: novelty,
      dtype,
      version,
    };
  }

  /**
   * The threshold, where it is known only when all traces have been scored; before the first is added.
   *
   * @param {number} threshold
   */
  set threshold(threshold) {
    this.#about.threshold = threshold;
  }

  /**
   * Adds a trace that was scored, in the order of scoring.
   *
   * @param {object} trace
   * @param {number} trace.index how many traces were scored before it
   * @param {string | null} [trace.id]
   * @param {string} trace.source
   * @param {number | null} [trace.line] from 1; null where it has none
   * @param {number | null} [trace.element] its index in the array that it is an element of, from 0
   * @param {string | null} [trace.domain] its `metadata.task_domain`
   * @param {boolean} trace.success
   * @param {string} [trace.excerpt] what it was about
   * @param {import('../..').ScoreBreakdown} trace.breakdown
   */
  add({ index, id, source, line, element, domain, success, excerpt, breakdown }) {
    const position = this.#count;
    const { score, dimensions } = breakdown;
    const isKept = score >= this.#about.threshold;
    this.#count += 1;
    if (isKept) this.#kept += 1;
    if (success) this.#succeeded += 1;
    if (breakdown.truncated) this.#truncated += 1;
    this.#scores.add(score);
    this.#novelty.add(dimensions.novelty);
    this.#noteStart(source, position);
    this.#addToDomain(domain, isKept, breakdown);
    this.#noteProfile(breakdown);
    for (const { rule } of breakdown.overrides) tally(this.#rules, rule);
    // Where the memory is, in the process or in a store, makes no difference.
    tally(this.#bases, breakdown.noveltyBasis.replace(/cache|store/, 'memory'));

    const nearest = breakdown.nearest && {
      ...pick(breakdown.nearest, NEAREST),
      label: nameOf(breakdown.nearest.label),
    };
    const listed = {
      position,
      index,
      id: nameOf(id),
      source: excerptOf(source, NAME_LENGTH),
      line: line ?? null,
      element: element ?? null,
      score,
      excerpt: excerptOf(excerpt, EXCERPT_LENGTH),
    };
    this.#duplicates.add(listed, nearest, resemblanceOf(breakdown));
    /** @returns {ListedBreakdown} */
    const full = () => ({
      ...listed,
      domain: nameOf(domain),
      success: Boolean(success),
      breakdown: copyOfBreakdown(breakdown, nearest),
    });
    this.#best.offer({ breakdown }, full);
    this.#worst.offer({ breakdown }, full);
  }

  /**
   * Adds a line that could not be scored.
   *
   * @param {{ source: string, line: number | null, element?: number | null, message: string }} error
   */
  addError({ source, line, element, message }) {
    this.#errorCount += 1;
    if (this.#errors.length === LISTED_ERRORS) return;
    this.#errors.push({
      source: excerptOf(source, NAME_LENGTH),
      line: line ?? null,
      element: element ?? null,
      message: excerptOf(message, EXCERPT_LENGTH),
    });
  }

  /**
   * @param {string} source
   * @param {number} position
   */
  #noteStart(source, position) {
    if (source === this.#lastSource) return;
    this.#lastSource = source;
    if (this.#starts.length < LISTED_SOURCES) {
      this.#starts.push({ source: excerptOf(source, NAME_LENGTH), position });
    }
  }

  /**
   * @param {string | null | undefined} name
   * @param {boolean} isKept
   * @param {ScoreBreakdown} breakdown
   */
  #addToDomain(name, isKept, { score, dimensions }) {
    const domain = entryOf(this.#domains, nameOf(name) ?? '', () => ({
      kept: 0,
      score: new Histogram(SCORE_BINS),
      complexity: new Histogram(DIMENSION_BINS),
      novelty: new Histogram(DIMENSION_BINS),
      toolDiversity: new Histogram(DIMENSION_BINS),
      outcome: new Histogram(DIMENSION_BINS),
    }));
    if (isKept) domain.kept += 1;
    domain.score.add(score);
    for (const key of DIMENSIONS) domain[key].add(dimensions[key]);
  }

  /** @param {ScoreBreakdown} breakdown */
  #noteProfile({ profile, weights }) {
    entryOf(this.#profiles, nameOf(profile), () => ({
      weights: pick(weights, DIMENSIONS),
      count: 0,
    })).count += 1;
  }

  /**
   * The figures, as the page reads them.
   *
   * @param {Run} run
   */
  summary({ finishedAt, seconds, interrupted, cleaned = null }) {
    const isComplete = this.#count <= LISTED_TRACES;
    const best = this.#best.items;
    const isBest = new Set(best.map(({ position }) => position));
    return {
      ...this.#about,
      finishedAt: finishedAt.toISOString(),
      seconds,
      interrupted: Boolean(interrupted),
      cleaned,
      count: this.#count,
      kept: this.#kept,
      succeeded: this.#succeeded,
      truncated: this.#truncated,
      scores: this.#scores.summary(),
      scoreBins: { bins: SHOWN_BINS, filled: this.#scores.filled(SHOWN_BINS) },
      domains: [...this.#domains]
        .map(([name, domain]) => summaryOfDomain(name, domain))
        .sort((a, b) => b.count - a.count),
      profiles: [...this.#profiles].map(([name, profile]) => ({ name, ...profile })),
      rules: Object.fromEntries(this.#rules),
      bases: Object.fromEntries(this.#bases),
      novelty: { width: this.#novelty.width, buckets: this.#novelty.buckets.map((row) => row.map(rounded)) },
      starts: this.#starts,
      duplicates: this.#duplicates.summary(),
      best,
      // Of a few traces the worst are among the best already.
      worst: isComplete ? [] : this.#worst.items.filter(({ position }) => !isBest.has(position)),
      errors: { count: this.#errorCount, first: this.#errors },
    };
  }

  /**
   * The report, one page that needs nothing else.
   *
   * @param {Run} run
   * @returns {string} HTML
   */
  render(run) {
    const [before, after, ...others] = readTemplate().split(PLACE);
    if (after === undefined || others.length > 0) {
      throw codedError(
        Error,
        'ERR_REPORT_TEMPLATE',
        `${templateFile()} is not what the set-up makes; ${REMEDY}`,
      );
    }
    return before + jsonForHtml(this.summary(run)) + after;
  }
}

const REMEDY = 'reinstall @knowledgepulse/native, or in a checkout run: npm run setup';

function readTemplate() {
  const file = templateFile();
  try {
    return gunzipSync(fs.readFileSync(file)).toString();
  } catch (cause) {
    const message = `${file}, the page of the report, could not be read: ${/** @type {Error} */ (cause).message}; ${REMEDY}`;
    throw codedError(Error, 'ERR_REPORT_TEMPLATE', message, cause);
  }
}

/**
 * JSON that nothing can end or begin an element in, where HTML takes it as text.
 *
 * @param {unknown} value
 */
function jsonForHtml(value) {
  /** @param {string} character */
  const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escaped);
}

/**
 * @param {string} name
 * @param {Domain} domain
 */
function summaryOfDomain(name, { kept, ...histograms }) {
  const summaries = Object.entries(histograms).map(([key, histogram]) => [key, histogram.summary()]);
  const { count } = histograms.score;
  return {
    name,
    count,
    kept,
    .../** @type {Record<Measure, Summary>} */ (Object.fromEntries(summaries)),
    scoreBins: { bins: SHOWN_DOMAIN_BINS, filled: histograms.score.filled(SHOWN_DOMAIN_BINS) },
  };
}

/**
 * @param {ScoreBreakdown} breakdown
 * @param {Nearest | null} nearest
 */
function copyOfBreakdown(breakdown, nearest) {
  const { score, composite, noveltyBasis, tokens, truncated } = breakdown;
  return {
    score,
    composite,
    noveltyBasis,
    tokens,
    truncated,
    dimensions: pick(breakdown.dimensions, DIMENSIONS),
    profile: nameOf(breakdown.profile),
    weights: pick(breakdown.weights, DIMENSIONS),
    contributions: pick(breakdown.contributions, DIMENSIONS),
    overrides: breakdown.overrides.map((override) => pick(override, ['rule', 'before', 'after'])),
    nearest,
  };
}

/**
 * @template {object} T
 * @template {keyof T} Key
 * @param {T} object
 * @param {readonly Key[]} keys
 * @returns {Pick<T, Key>}
 */
function pick(object, keys) {
  return /** @type {Pick<T, Key>} */ (Object.fromEntries(keys.map((key) => [key, object[key]])));
}

/**
 * The entry of a name in a map of bounded size; names beyond the bound share one entry.
 *
 * @template Value
 * @template {string | null} Name
 * @param {Map<Name, Value>} map
 * @param {Name} name
 * @param {() => Value} make
 * @returns {Value}
 */
function entryOf(map, name, make) {
  const key = map.has(name) || map.size < LISTED_NAMES ? name : /** @type {Name} */ (REST);
  const entry = map.get(key) ?? make();
  map.set(key, entry);
  return entry;
}

/**
 * @template {string} Name
 * @param {Map<Name, number>} map
 * @param {Name} name
 */
function tally(map, name) {
  const key = map.has(name) || map.size < LISTED_NAMES ? name : /** @type {Name} */ (REST);
  map.set(key, (map.get(key) ?? 0) + 1);
}

/**
 * A name or id, cut to a length that fits the page; null if it has no visible character.
 *
 * @param {string | null | undefined} name
 */
function nameOf(name) {
  if (typeof name !== 'string' || isBlank(name)) return null;
  // Two long ids of different lengths are still two.
  return copyOf(name.length > NAME_LENGTH ? `${cut(name, NAME_LENGTH)}… (${name.length})` : name);
}

/**
 * The beginning of a text on one line.
 *
 * @param {string | undefined} text
 * @param {number} length
 */
function excerptOf(text, length) {
  if (typeof text !== 'string') return '';
  const line = cut(text, 2 * length)
    .replace(/\s+/g, ' ')
    .trim();
  return copyOf(line.length > length || text.length > 2 * length ? `${cut(line, length)}…` : line);
}

/** @param {number} value */
function rounded(value) {
  return Math.round(value * 1e4) / 1e4;
}

module.exports = { ReportCollector };
