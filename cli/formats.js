'use strict';

// What goes to standard output for each trace.

const { stringify } = require('csv-stringify/sync');

const { decimal, labelOf, printable } = require('./printable.js');

/**
 * A trace that was scored.
 *
 * @typedef {object} Result
 * @property {string} source the file it is from, or `stdin`
 * @property {number} line where it begins there, from 1
 * @property {number | null} index in the array that it is an element of, from 0
 * @property {import('../formats.js').FormatName} format what it was converted from
 * @property {import('../formats.js').Known} known what of its outcome is known; the rest are defaults
 * @property {string | null} id
 * @property {string} objective the beginning of the task, as it may be shown
 * @property {string} domain
 * @property {boolean} kept whether it scores as much as the threshold
 * @property {boolean} isNearDuplicate whether it repeats a trace that was remembered before it
 * @property {ScoreBreakdown} breakdown
 */

/** @typedef {import('../index.js').ScoreBreakdown} ScoreBreakdown */

/**
 * Whether the results say what the scores are made of, and whether rows of the table say if they are kept.
 *
 * @typedef {{ explains: boolean, showsKept: boolean }} Options
 */

/** @typedef {{ begin(): string, row(result: Result): string, end(summary: object): string }} Format */

/**
 * Where a value is from, for people.
 *
 * @param {Pick<Result, 'source' | 'line' | 'index'>} result
 */
function place({ source, line, index }) {
  return `${source}:${line}${index === null ? '' : `[${index}]`}`;
}

const DIMENSIONS = /** @type {const} */ (['complexity', 'novelty', 'toolDiversity', 'outcome']);
/** @type {Partial<Record<typeof DIMENSIONS[number], string>>} */
const DIMENSION_WORDS = { toolDiversity: 'tool diversity' };
const RULE_WORDS = {
  'single-thought': 'a single thought',
  'recovery-bonus': 'recovered from errors',
  'single-tool-penalty': 'only one tool',
  clamp: 'kept within 0 and 1',
};

const BAR_WIDTH = 10;
const DOMAIN_WIDTH = 18;

/** A place has these many characters at most, its last ones: a path may be long, and ends with what tells it from others. */
const PLACE_LENGTH = 40;
const OBJECTIVE_LENGTH = 60;

/** What a domain of which nothing can be seen is called. */
const NO_DOMAIN = '(none)';

class Table {
  #explains;
  #showsKept;
  #isFirst = true;
  /** The longest place so far, so that what follows is mostly below each other. */
  #placeWidth = 0;

  /** @param {Options} options */
  constructor({ explains, showsKept }) {
    this.#explains = explains;
    this.#showsKept = showsKept;
  }

  /** The heading comes with the first row: there may be none. */
  begin() {
    return '';
  }

  #heading() {
    if (!this.#isFirst) return '';
    this.#isFirst = false;
    return `${'score'.padEnd(20)}${this.#keptCell('kept')}${'domain'.padEnd(DOMAIN_WIDTH)}trace\n`;
  }

  /**
   * Without `--threshold` no trace is called kept or dropped, and with `--top` all are kept.
   *
   * @param {string} text
   */
  #keptCell(text) {
    return this.#showsKept ? text.padEnd(6) : '';
  }

  /** @param {Result} result */
  row(result) {
    const { breakdown, domain, isNearDuplicate, kept } = result;
    const full = Math.round(breakdown.score * BAR_WIDTH);
    const bar = '█'.repeat(full) + '░'.repeat(BAR_WIDTH - full);
    const row =
      `${this.#heading()}${decimal(breakdown.score)}  ${bar}  ${this.#keptCell(kept ? 'yes' : 'no')}` +
      `${labelOf(domain, NO_DOMAIN, DOMAIN_WIDTH - 2).padEnd(DOMAIN_WIDTH)}${this.#traceCell(result)}` +
      `${isNearDuplicate ? `, like ${nameOfNearest(breakdown)}` : ''}\n`;
    return this.#explains ? `${row}${explain(breakdown)}\n` : row;
  }

  /**
   * Where a trace is from, what it was about, and its id, by which others refer to it.
   *
   * @param {Result} result
   */
  #traceCell(result) {
    const where = printable(endOf(place(result), PLACE_LENGTH));
    this.#placeWidth = Math.max(this.#placeWidth, where.length);
    const names = [labelOf(result.objective.trimStart(), '', OBJECTIVE_LENGTH), labelOf(result.id ?? '', '')];
    return [where.padEnd(this.#placeWidth), ...names]
      .filter((name) => name !== '')
      .join('  ')
      .trimEnd();
  }

  end() {
    return '';
  }
}

/**
 * The last characters of a text.
 *
 * @param {string} text
 * @param {number} length
 */
function endOf(text, length) {
  return text.length > length ? `…${text.slice(1 - length)}` : text;
}

/**
 * What a score is made of, in words.
 *
 * @param {ScoreBreakdown} breakdown
 */
function explain(breakdown) {
  const { composite, dimensions, overrides, tokens, truncated, weights } = breakdown;
  const terms = DIMENSIONS.map(
    (name) => `${weights[name].toFixed(2)} × ${decimal(dimensions[name])} ${DIMENSION_WORDS[name] ?? name}`,
  );
  const steps = overrides.map(({ rule, after }) => `        ${RULE_WORDS[rule] ?? rule}: ${decimal(after)}`);
  return [
    `        ${terms.join(' + ')} = ${decimal(composite)}`,
    ...steps,
    `        ${noveltyWords(breakdown)}${tokenWords(tokens, truncated)}`,
    '',
  ].join('\n');
}

/** @param {ScoreBreakdown} breakdown */
function noveltyWords(breakdown) {
  const { dimensions, nearest, noveltyBasis } = breakdown;
  if (noveltyBasis === 'given') return `novelty ${decimal(dimensions.novelty)}: as it was scored before`;
  if (noveltyBasis === 'no-embedder') return 'novelty 0.5: there is no embedder';
  if (nearest === null) return 'novelty 0.5: nothing to compare with yet';
  return `most similar: ${nameOfNearest(breakdown)} (${decimal(nearest.similarity)})`;
}

/** @param {ScoreBreakdown} breakdown */
function nameOfNearest({ nearest }) {
  // Of a known trace that is not compared again, the nearest is not known.
  if (nearest === null) return 'an earlier trace';
  return labelOf(nearest.label ?? '', 'a trace without an id');
}

/**
 * @param {number | null} tokens
 * @param {boolean | null} truncated
 */
function tokenWords(tokens, truncated) {
  if (tokens === null) return '';
  return `, ${tokens} tokens${truncated ? ', the rest left out' : ''}`;
}

/**
 * What a program gets of a result.
 *
 * @param {Result} result
 * @param {boolean} explains
 */
function fieldsOf({ source, line, index, format, known, id, objective, domain, kept, breakdown }, explains) {
  const { score } = breakdown;
  const fields = { source, line, index, id, objective, domain, score, kept, format, known };
  return explains ? { ...fields, breakdown } : fields;
}

class JsonLines {
  #explains;

  /** @param {Options} options */
  constructor({ explains }) {
    this.#explains = explains;
  }

  begin() {
    return '';
  }

  /** @param {Result} result */
  row(result) {
    return `${JSON.stringify(fieldsOf(result, this.#explains))}\n`;
  }

  end() {
    return '';
  }
}

class Json {
  #explains;
  #isFirst = true;

  /** @param {Options} options */
  constructor({ explains }) {
    this.#explains = explains;
  }

  begin() {
    return '{"results":[';
  }

  /** @param {Result} result */
  row(result) {
    const separator = this.#isFirst ? '\n' : ',\n';
    this.#isFirst = false;
    return separator + JSON.stringify(fieldsOf(result, this.#explains));
  }

  /** @param {object} summary */
  end(summary) {
    return `\n],"summary":${JSON.stringify(summary)}}\n`;
  }
}

const CSV_COLUMNS = /** @type {const} */ ([
  'source',
  'line',
  'index',
  'id',
  'objective',
  'domain',
  'score',
  'kept',
  'format',
]);
const CSV_KNOWN = ['knownSuccess', 'knownConfidence'];
const CSV_EXPLANATION = [
  ...DIMENSIONS,
  'profile',
  ...DIMENSIONS.map((name) => `${name}Weight`),
  ...['composite', 'overrides', 'noveltyBasis', 'nearestLabel', 'nearestSimilarity', 'tokens', 'truncated'],
];

/** Of a similarity, which is computed in single precision. */
const SINGLE_DECIMALS = 6;

class Csv {
  #explains;

  /** @param {Options} options */
  constructor({ explains }) {
    this.#explains = explains;
  }

  begin() {
    return csvLine([...CSV_COLUMNS, ...CSV_KNOWN, ...(this.#explains ? CSV_EXPLANATION : [])]);
  }

  /** @param {Result} result */
  row({ breakdown, known, ...result }) {
    const cells = [
      ...CSV_COLUMNS.map((name) => (name === 'score' ? breakdown.score : result[name])),
      known.success,
      known.confidence,
    ];
    if (!this.#explains) return csvLine(cells);
    const { dimensions, weights, composite, overrides, nearest } = breakdown;
    const shown = { ...dimensions, novelty: withoutNoise(dimensions.novelty) };
    return csvLine([
      ...cells,
      ...DIMENSIONS.map((name) => shown[name]),
      breakdown.profile,
      ...DIMENSIONS.map((name) => weights[name]),
      composite,
      overrides.map(({ rule }) => rule).join(' '),
      breakdown.noveltyBasis,
      nearest?.label,
      nearest === null ? null : withoutNoise(nearest.similarity),
      breakdown.tokens,
      breakdown.truncated,
    ]);
  }

  end() {
    return '';
  }
}

/**
 * A number with as many decimals as single precision has: a similarity of 1.0000000014 is 1, and a novelty of -1.4e-9 is 0.
 *
 * @param {number} value
 */
function withoutNoise(value) {
  // Without the sign of a zero.
  return Number(value.toFixed(SINGLE_DECIMALS)) + 0;
}

/** @param {readonly unknown[]} cells */
function csvLine(cells) {
  // A spreadsheet would compute what begins like a formula, and a trace may be from anybody.
  return stringify([cells], { cast: { boolean: String }, escape_formulas: true });
}

const FORMATS = { table: Table, json: Json, jsonl: JsonLines, csv: Csv };

/**
 * Makes text of results: `begin()`, then a `row` for each, then `end(summary)`.
 *
 * @param {'table' | 'json' | 'jsonl' | 'csv'} format
 * @param {Options} options
 * @returns {Format}
 */
function createFormat(format, options) {
  return new FORMATS[format](options);
}

module.exports = { createFormat, NO_DOMAIN, place };
