'use strict';

// The command line: what it may say, what it means, and what of it makes no sense.

const { parseArgs } = require('node:util');

const { LEVELS } = require('../lib/clean/options.js');
const { FORMAT_NAMES, NATIVE } = require('../lib/format-names.js');
const { CommandError, EXIT } = require('./errors.js');
const { isSameFile, nameOf, STDIN } = require('./input.js');

/** Scores of at least this are kept, unless `--threshold` says otherwise; only the summary and the results tell then. */
const DEFAULT_THRESHOLD = 0.75;

const FORMATS = /** @type {const} */ (['table', 'json', 'jsonl', 'csv']);
const DTYPES = /** @type {const} */ (['fp32', 'q8']);
const ENGINES = /** @type {const} */ (['auto', 'builtin', 'onnxruntime']);
const NOVELTIES = /** @type {const} */ (['prefix', 'lexical', 'full']);
const KNOWN = /** @type {const} */ (['skip', 'score', 'again']);
const ANSWERS = /** @type {const} */ (['yes', 'no']);
const MAX_THREADS = 1024;

/** The formats, for the help. */
const NAMES = `${FORMAT_NAMES.slice(0, -1).join(', ')} or ${FORMAT_NAMES.at(-1)}`;

const USAGE = `Usage: kp-score [OPTION...] [FILE...]
       kp-score doctor [--json]   checks the installation (a file of traces is ./doctor)

Scores reasoning traces, each 0 to 1. Reads the files, or standard input: JSON Lines,
JSON arrays and single objects, also compressed with gzip. - is standard input.
A line that is not a trace is named on standard error, and the rest is scored.

Other formats, which become traces:
  --from FORMAT        what the input is; without it, each record is recognised by what is
                       in it: ${NAMES}
  --success yes|no     whether the agents succeeded; otherwise what the format says, or
                       else no
  --confidence N       how sure they are of their results, 0 to 1; otherwise what the
                       format says, or else 0.5
  --domain NAME        metadata.task_domain, which selects the weights

Results:
  --format FORMAT      what goes to standard output for each trace: table, json, jsonl
                       or csv; table, unless there is an --out or a --report
  --explain            adds what each score is made of, to results and --out
  --out FILE           writes the traces with metadata.quality_score filled in, as JSON
                       Lines; compressed if FILE ends in .gz. May be the input
  --threshold N        writes to --out only the traces that score at least N, 0 to 1
                       (${DEFAULT_THRESHOLD} where only the summary needs one)
  --top N, --top N%    shows only the best N traces, or N percent of them, the best first;
                       --out gets the same ones in the order of the input. Of equal
                       scores, those that come first
  --dropped FILE       writes the other traces here; needs --threshold or --top
  --clean [LEVEL]      replaces secrets and personal data in results, --out, --dropped and
                       the report, after scoring: aggregated, federated, private
                       (aggregated)
  --clean-strict       as --clean, and replaces more kinds of secrets
  --report FILE        writes a page to look at, in HTML
  --keep-going         replaces files and saves the memory even where not all of the input
                       was read; otherwise they stay, and FILE.partial has what was scored

Scoring:
  --memory FILE        compares with the traces of earlier runs too: loads what they have
                       left in FILE, if it exists, and saves it at the end
  --known HOW          a trace that FILE holds with the same id and contents: skip leaves
                       it out, score gives it its earlier score, again compares it (skip)
  --store URL          compares with a memory in PostgreSQL that others share, and adds to
                       it: postgres://user@host/database; needs the package pg. A
                       password can come from PGPASSWORD
  --store-table NAME   the table there, also SCHEMA.TABLE (knowledgepulse_novelty)
  --memory-size N      how many traces are remembered: 1000, or what FILE was saved with;
                       with --store 100000 where it makes the table, which keeps what it
                       was made with
  --forget             lets --memory-size be less than FILE holds: the oldest traces leave
  --novelty METHOD     prefix compares the first 512 tokens, lexical the words of the
                       whole trace without a model, full its words and a digest (prefix)
  --weights FILE       a JSON object of profiles: by domain, the weights of complexity,
                       novelty, toolDiversity and outcome
  --dtype DTYPE        which of two installed models: fp32 or q8
  --model-dir DIR      another directory with the model
  --engine ENGINE      what computes the embeddings: auto, builtin or onnxruntime (auto)
  --threads N          threads that one inference computes on
  --no-embedder        without a model: novelty is 0.5, except with --novelty lexical

Messages:
  --quiet              only what ends the run, no summary
  --verbose            names every bad line, and says where the embedder is from
  --no-progress        no progress bar; there is one only on a terminal
  --version            prints the version
  -h, --help           prints this

Exit code: 0 all scored; 1 some lines are bad, the rest is scored; 2 wrong usage; 3 a file
could not be read or written; 130 interrupted. With 3 and 130 the files and the memory are
as they were. Interrupted twice, it ends at once.`;

const OPTIONS = /** @type {const} */ ({
  clean: { type: 'string' },
  'clean-strict': { type: 'boolean' },
  confidence: { type: 'string' },
  domain: { type: 'string' },
  dropped: { type: 'string' },
  dtype: { type: 'string' },
  engine: { type: 'string' },
  explain: { type: 'boolean' },
  forget: { type: 'boolean' },
  format: { type: 'string' },
  from: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  'keep-going': { type: 'boolean' },
  known: { type: 'string' },
  memory: { type: 'string' },
  'memory-size': { type: 'string' },
  'model-dir': { type: 'string' },
  'no-embedder': { type: 'boolean' },
  'no-progress': { type: 'boolean' },
  novelty: { type: 'string' },
  out: { type: 'string' },
  quiet: { type: 'boolean' },
  report: { type: 'string' },
  store: { type: 'string' },
  'store-table': { type: 'string' },
  success: { type: 'string' },
  threads: { type: 'string' },
  threshold: { type: 'string' },
  top: { type: 'string' },
  verbose: { type: 'boolean' },
  version: { type: 'boolean' },
  weights: { type: 'string' },
});

/** Options that name a file which is written to. */
const OUTPUTS = /** @type {const} */ (['out', 'dropped', 'report', 'memory']);

/** @typedef {ReturnType<typeof parse>['values']} Values what the options say */

/** @typedef {'clean' | 'confidence' | 'dtype' | 'engine' | 'format' | 'from' | 'known' | 'success' | 'memory-size' | 'novelty' | 'threads' | 'threshold'} TextName */

/** @typedef {{ sources: string[] } & ReturnType<typeof valuesOf>} Options what they mean */

/**
 * What the arguments ask for.
 *
 * @param {string[]} args
 * @returns {{ help: true, version: boolean } | { help: false, version: true } | ({ help: false, version: false } & Options)}
 * @throws {CommandError} if they make no sense
 */
function readOptions(args) {
  const { values, positionals } = parse(args);
  const { help = false, version = false } = values;
  if (help) return { help, version };
  if (version) return { help, version };
  for (const [name, value] of Object.entries(values)) {
    if (value === '') throw misused(`--${name} must not be empty`);
  }
  if (positionals.length === 0 && process.stdin.isTTY) {
    throw misused('there is nothing to read: name files, or pipe traces into it');
  }
  const sources = positionals.length > 0 ? positionals : [STDIN];
  const options = { help, version, sources, ...valuesOf(values) };
  refuseContradictions(values, options);
  return options;
}

/** @param {string[]} args */
function parse(args) {
  try {
    return parseArgs({ args: withLevel(args), options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const [message] = /** @type {Error} */ (error).message.split(/\.\s/, 1);
    const [, name] = /^Option '(--[\w-]+).* is ambiguous$/.exec(message) ?? [];
    if (name === undefined) throw misused(message);
    throw misused(`${name} needs a value; one that begins with a hyphen is written ${name}=VALUE`);
  }
}

/**
 * The arguments with a value for `--clean`, which needs none: a word behind it is a level, or else something else.
 *
 * @param {string[]} args
 * @returns {string[]}
 */
function withLevel(args) {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const at = args.indexOf('--clean');
  if (at === -1 || at > end) return args;
  const next = args[at + 1];
  const isLevel = LEVELS.some((level) => level === next);
  return [
    ...args.slice(0, at),
    `--clean=${isLevel ? next : LEVELS[0]}`,
    ...withLevel(args.slice(isLevel ? at + 2 : at + 1)),
  ];
}

/** @param {Values} values */
function cleanOf(values) {
  const level = oneOf(values, 'clean', LEVELS);
  const strict = values['clean-strict'] ?? false;
  return level === undefined && !strict ? null : { level: level ?? LEVELS[0], strict };
}

/** @param {Values} values */
function valuesOf(values) {
  const out = values.out ?? null;
  const report = values.report ?? null;
  const success = oneOf(values, 'success', ANSWERS);
  const hasFile = out !== null || report !== null || values.dropped !== undefined;
  return {
    clean: cleanOf(values),
    confidence: number(values, 'confidence', isScore, 'a number from 0 to 1'),
    domain: values.domain,
    dropped: values.dropped ?? null,
    dtype: oneOf(values, 'dtype', DTYPES),
    engine: oneOf(values, 'engine', ENGINES),
    explain: values.explain ?? false,
    forget: values.forget ?? false,
    format: oneOf(values, 'format', FORMATS) ?? (hasFile ? null : 'table'),
    from: oneOf(values, 'from', FORMAT_NAMES),
    keepGoing: values['keep-going'] ?? false,
    known: oneOf(values, 'known', KNOWN) ?? KNOWN[0],
    memory: values.memory ?? null,
    memorySize: number(values, 'memory-size', isCount, 'a whole number of at least 1'),
    modelDirectory: values['model-dir'],
    embedder: values['no-embedder'] ? null : /** @type {const} */ ('default'),
    progress: !values['no-progress'],
    novelty: oneOf(values, 'novelty', NOVELTIES) ?? NOVELTIES[0],
    out,
    quiet: values.quiet ?? false,
    report,
    store: values.store ?? null,
    storeTable: values['store-table'],
    splits: values.threshold !== undefined || values.top !== undefined,
    success: success === undefined ? undefined : success === 'yes',
    threads: number(values, 'threads', isThreadCount, `a whole number from 1 to ${MAX_THREADS}`),
    threshold: number(values, 'threshold', isScore, 'a number from 0 to 1') ?? DEFAULT_THRESHOLD,
    top: topOf(values.top),
    verbose: values.verbose ?? false,
    weights: values.weights ?? null,
  };
}

/**
 * How many of the best traces are asked for; null if all are.
 *
 * @param {string | undefined} text
 * @returns {import('./ranking.js').Top | null}
 */
function topOf(text) {
  if (text === undefined) return null;
  const [, digits, isPercent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const value = Number(digits);
  if (isPercent ? value > 0 && value <= 100 : isCount(value)) {
    return isPercent ? { percent: value } : { count: value };
  }
  throw misused(`--top must be a whole number of at least 1, or a percentage up to 100%, got '${text}'`);
}

/**
 * @template {string} Allowed
 * @param {Values} values
 * @param {TextName} name
 * @param {readonly Allowed[]} allowed
 * @returns {Allowed | undefined}
 */
function oneOf(values, name, allowed) {
  const value = values[name];
  const found = allowed.find((each) => each === value);
  if (value !== undefined && found === undefined) {
    throw misused(
      `--${name} must be ${allowed.slice(0, -1).join(', ')} or ${allowed.at(-1)}, got '${value}'`,
    );
  }
  return found;
}

/**
 * @param {Values} values
 * @param {TextName} name
 * @param {(value: number) => boolean} isAllowed
 * @param {string} expected
 */
function number(values, name, isAllowed, expected) {
  const text = values[name];
  if (text === undefined) return undefined;
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!isAllowed(value)) throw misused(`--${name} must be ${expected}, got '${text}'`);
  return value;
}

/** @param {number} value */
const isCount = (value) => Number.isSafeInteger(value) && value >= 1;
/** @param {number} value */
const isScore = (value) => value >= 0 && value <= 1;
/** @param {number} value */
const isThreadCount = (value) => Number.isInteger(value) && value >= 1 && value <= MAX_THREADS;

/**
 * @param {Values} values
 * @param {Options} options
 */
function refuseContradictions(values, options) {
  if (options.dropped !== null && !options.splits) throw misused('--dropped needs --threshold or --top');
  if (values.threshold !== undefined && values.top !== undefined) {
    throw misused('--threshold and --top exclude each other');
  }
  if (options.from === NATIVE) {
    for (const name of /** @type {const} */ (['success', 'confidence', 'domain'])) {
      if (values[name] !== undefined)
        throw misused(`--${name} is for other formats, and --from ${NATIVE} reads none`);
    }
  }
  if (options.quiet && options.verbose) throw misused('--quiet and --verbose exclude each other');
  const isLexical = options.novelty === 'lexical';
  if (options.embedder === null || isLexical) {
    const ofModel = /** @type {const} */ (['dtype', 'engine', 'model-dir', 'threads']);
    const ofComparing = /** @type {const} */ (['memory', 'memory-size', 'store', 'novelty']);
    const reason = isLexical ? '--novelty lexical' : '--no-embedder';
    for (const name of isLexical ? ofModel : [...ofModel, ...ofComparing]) {
      if (values[name] !== undefined) throw misused(`--${name} and ${reason} exclude each other`);
    }
  }
  if (options.memory === null && values.known !== undefined) {
    const reason = options.store === null ? '' : ': a store does not know the contents of earlier traces';
    throw misused(`--known needs --memory${reason}`);
  }
  if (options.forget && (options.memory === null || options.memorySize === undefined)) {
    throw misused('--forget needs --memory and --memory-size');
  }
  if (options.store !== null && options.memory !== null) {
    throw misused('--store and --memory exclude each other');
  }
  if (options.store !== null && !/^postgres(ql)?:\/\//.test(options.store)) {
    throw misused('--store must be a URL that begins with postgres://');
  }
  if (options.store === null && options.storeTable !== undefined) {
    throw misused('--store-table needs --store');
  }
  if (options.sources.filter((source) => source === STDIN).length > 1) {
    throw misused('standard input can be read only once');
  }
  for (const name of OUTPUTS) {
    if (values[name] === STDIN) {
      throw misused(`--${name} must be a file; for results on standard output there is --format`);
    }
  }
  refuseSameFile(values, options);
}

/**
 * No output may overwrite another one or something that is read, except `--out` an input that it loses nothing of.
 *
 * @param {Values} values
 * @param {Options} options
 */
function refuseSameFile(values, options) {
  const { dropped, out, sources, splits } = options;
  const files = /** @type {const} */ ([...OUTPUTS, 'weights']).flatMap((name) => {
    const file = values[name];
    return file === undefined ? [] : [{ name, file }];
  });
  for (const [at, { name, file }] of files.entries()) {
    const other = files.slice(0, at).find((earlier) => isSameFile(earlier.file, file));
    if (other !== undefined) throw misused(`--${other.name} and --${name} must not be the same file`);
    const source = name === 'out' ? undefined : sources.find((input) => isSameFile(input, file));
    if (source !== undefined) throw misused(`--${name} must not be a file of traces: ${nameOf(source)}`);
  }
  const replaced = out === null ? [] : sources.filter((source) => isSameFile(source, out));
  if (replaced.length > 1) {
    throw misused(`--out is read more than once, and would have its traces as often: ${nameOf(replaced[0])}`);
  }
  if (replaced.length > 0 && options.clean !== null) {
    throw misused(`--out is read too, and would lose what --clean replaces: ${nameOf(replaced[0])}`);
  }
  if (replaced.length > 0 && splits && dropped === null) {
    throw misused(
      `--out is read too, and would lose the traces that ${values.top === undefined ? '--threshold' : '--top'} leaves out: ${nameOf(replaced[0])}; ` +
        'name a file for them with --dropped, or write to another',
    );
  }
}

/** @param {string} message */
function misused(message) {
  return new CommandError(EXIT.usage, `${message}; kp-score --help tells what there is`);
}

module.exports = { readOptions, USAGE };
