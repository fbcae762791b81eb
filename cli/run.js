'use strict';

const fs = require('node:fs');

const {
  cleanPii,
  cleanTrace,
  configureEmbedder,
  embedderStatus,
  Scorer,
  TraceMemory,
  VectorCache,
} = require('../index.js');
const { isNearDuplicate, resemblanceOf } = require('./report/duplicates.js');
const { version } = require('../package.json');
const { BUILT_IN, closestTo } = require('./domains.js');
const { CommandError, EXIT, reasonOf } = require('./errors.js');
const { createFormat, place } = require('./formats.js');
const { foreignInput, isSameFile, nameOf, readChunks, STDIN, statOf, totalSize } = require('./input.js');
const { FileLock, OutputFile, requireRoomFor, StandardOutput } = require('./output.js');
const { cut } = require('./report/text.js');
const { KnownTraces } = require('./known.js');
const { NATIVE } = require('../lib/format-names.js');
const { Ranking } = require('./ranking.js');
const { Reading } = require('./reading.js');
const { setMetadata } = require('./splice.js');
const { openStore } = require('./store.js');
const { renderSummary, Summary } = require('./summary.js');
const { InFlight } = require('./in-flight.js');

/**
 * @import { ReasoningTrace, Redaction } from '../index.js'
 * @import { SystemError } from './errors.js'
 * @import { Result } from './formats.js'
 * @import { Options } from './options.js'
 */

/** @typedef {InstanceType<typeof OutputFile>} File */

/** @typedef {import('./reading.js').Item} Item */

/** @typedef {Omit<Result, 'kept' | 'isNearDuplicate'>} Scored */

/**
 * What is written of a trace, and what was replaced in it before.
 *
 * @typedef {{ success: boolean, text: string, redactions: Redaction[] }} Excerpts
 */

/** What is known of the outcome of a trace that was read as it is. */
const ALL_KNOWN = { success: true, confidence: true };

/** @typedef {InstanceType<typeof import('./report/collector.js').ReportCollector>} ReportCollector */

/** @typedef {{ collector: ReportCollector, file: File }} ReportFile */

/** @typedef {import('../index.js').VectorCache | import('../index.js').TraceMemory} Remembered */

/** How many traces are in flight: enough for every core, and little memory however many there are. */
const MAX_IN_FLIGHT = 64;
const MOST_BYTES_IN_FLIGHT = 64 * 1024 * 1024;

/** How many bad lines are named, unless all are asked for. */
const MAX_NAMED = 20;

/** What the results and a report quote of a trace, in UTF-16 code units. */
const EXCERPT_LENGTH = 240;

/**
 * What a user of the command can do about a memory that does not fit, and where the advice to a program begins.
 *
 * @type {Record<string, [advice: string, own: string]>}
 */
const ADVICE = {
  ERR_MEMORY_OTHER_MODEL: [
    ': use another file',
    'use another file, or --dtype or --model-dir for the model that it was made with',
  ],
  ERR_MEMORY_OTHER_METHOD: [
    ': use another',
    'use another file, or --novelty for the method that it was made with',
  ],
};

/**
 * What is wrong with a memory; what a program can do about it is not what its user can.
 *
 * @param {SystemError} error
 */
function adviceOn({ code = '', message }) {
  if (!Object.hasOwn(ADVICE, code)) return message;
  const [advice, own] = ADVICE[code];
  const [problem] = message.split(advice, 1);
  return `${problem}: ${own}`;
}

/**
 * @param {Scored} scored
 * @param {boolean} kept
 * @returns {Result}
 */
const resultOf = (scored, kept) => ({
  ...scored,
  kept,
  isNearDuplicate: isNearDuplicate(resemblanceOf(scored.breakdown)),
});
/** Why a run is not complete that could not open or read an input. */
const UNREAD = 'not all of the input could be read';

/** @param {unknown} error */
const messageOf = (error) => /** @type {Error} */ (error).message;

/** @param {string[]} files */
const asTheyWere = (files) =>
  `${files.join(', ')} ${files.length === 1 ? 'is as it was' : 'are as they were'}`;

/** One run of the command: from its options to its exit code. */
class Run {
  #options;
  #messages;
  #summary = new Summary();
  #stop = new AbortController();
  #interrupted = false;
  #unread = 0;
  /** @type {import('./summary.js').Embedder} */
  #embedder = { available: false, dtype: null, reason: null };
  /**
   * What the summary says of the memory, if that outlives the run.
   *
   * @type {import('./summary.js').MemoryFile | null}
   */
  #memory = null;
  /** How many traces the run has added to the memory. */
  #added = 0;
  /**
   * Tells which traces need no new score; null where all are compared.
   *
   * @type {InstanceType<typeof KnownTraces> | null}
   */
  #known = null;
  /**
   * Keeps other runs from the file of the memory.
   *
   * @type {InstanceType<typeof FileLock> | null}
   */
  #lock = null;
  /**
   * The connection to a store.
   *
   * @type {Awaited<ReturnType<typeof openStore>> | null}
   */
  #connection = null;
  /**
   * Why the store has ended the run.
   *
   * @type {Error | null}
   */
  #storeFailure = null;
  /** @type {Scorer<any> | undefined} */
  #scorer;
  #stdout;
  /** @type {import('./formats.js').Format | undefined} */
  #format;
  /** @type {File | null} */
  #out = null;
  /** What is known of `--out`, if it is an input too, before that is read; otherwise null. */
  #replaced;
  /** @type {File | null} */
  #dropped = null;
  /** @type {ReportFile | null} */
  #report = null;
  /**
   * Where traces wait until it is known which are the best.
   *
   * @type {InstanceType<typeof Ranking> | null}
   */
  #ranking = null;
  /**
   * Where each output goes if not all of the input was read; null for nowhere.
   *
   * @type {Map<File, string | null>}
   */
  #partials = new Map();
  #threshold;
  #reading;
  /** @type {Map<string, number>} */
  #written = new Map();
  /** Domains that `--weights` has a profile for, of which no trace was scored yet. @type {Set<string>} */
  #unusedProfiles = new Set();

  /**
   * @param {Options} options
   * @param {InstanceType<typeof import('./messages.js').Messages>} messages
   */
  constructor(options, messages) {
    this.#options = options;
    this.#messages = messages;
    const { out, sources, threshold } = options;
    this.#threshold = threshold;
    this.#replaced =
      out !== null && sources.some((source) => isSameFile(source, out)) ? (statOf(out) ?? null) : null;
    const { confidence, domain, from, success } = options;
    this.#reading = new Reading({ format: from, success, confidence, domain });
    // Without files to write, the results would reach no reader.
    this.#stdout = new StandardOutput(() => this.#hasFiles || this.#stop.abort());
  }

  /** The scorer; there is one as soon as the run is prepared. */
  get #used() {
    return /** @type {Scorer<any>} */ (this.#scorer);
  }

  /** What the scorer remembers by itself. */
  get #remembered() {
    return /** @type {Remembered} */ (this.#used.memory);
  }

  get #hasFiles() {
    const { out, dropped, report, memory } = this.#options;
    return [out, dropped, report, memory].some((file) => file !== null);
  }

  /** Stops reading; what is in flight is still scored and written. */
  interrupt() {
    this.#interrupted = true;
    this.#stop.abort();
  }

  /**
   * Scores everything.
   *
   * @returns {Promise<number>} the exit code
   * @throws {CommandError}
   */
  async run() {
    try {
      await this.#prepare();
      const { quiet, sources, progress } = this.#options;
      const showsRows = this.#format !== undefined && this.#ranking === null && process.stdout.isTTY;
      // Rows that scroll by show the progress themselves.
      if (progress && !quiet && !showsRows) this.#messages.startProgress(totalSize(sources));
      await this.#score();
      return await this.#finish();
    } finally {
      this.#messages.stopProgress();
      for (const file of this.#files()) await file.discard();
      await this.#ranking?.remove().catch(() => {});
      this.#lock?.release();
      await this.#connection?.close();
    }
  }

  #files() {
    return [this.#out, this.#dropped, this.#report?.file ?? null].filter((file) => file !== null);
  }

  async #prepare() {
    const { dropped, explain, format, known, memory: file, out, report, splits, top } = this.#options;
    if (explain && format === null && out === null && dropped === null) {
      this.#messages.warning(
        '--explain adds to --format and --out, and neither is there; a report explains anyway',
      );
    }
    const weights = this.#readWeights();
    this.#embedder = await this.#loadEmbedder();
    const memory = await this.#loadMemory();
    await this.#connect();
    const store = this.#connection?.store;
    try {
      this.#scorer = new Scorer({ memory: store ?? memory, embedder: this.#options.embedder, weights });
    } catch (thrown) {
      const error = /** @type {SystemError} */ (thrown);
      if (error.code === 'ERR_MEMORY_OTHER_METHOD') {
        throw new CommandError(EXIT.file, `${this.#memory?.file}: ${adviceOn(error)}`);
      }
      // The path in the option is one in the file.
      const message = error.message.replaceAll('options.weights', () => this.#options.weights ?? '');
      throw new CommandError(EXIT.file, message);
    }
    this.#lookAtDomains(Object.keys(weights ?? {}));
    if (file !== null && known !== 'again') this.#known = new KnownTraces(this.#remembered);
    if (top !== null) {
      this.#ranking = new Ranking(top);
      await this.#ranking.open();
    }
    if (out !== null) this.#out = await OutputFile.open(out);
    if (dropped !== null) this.#dropped = await OutputFile.open(dropped);
    if (report !== null) this.#report = await this.#openReport(report);
    this.#partials = new Map(this.#files().map((file) => [file, this.#partialOf(file)]));
    if (format !== null) {
      this.#format = createFormat(format, { explains: explain, showsKept: splits && top === null });
      await this.#stdout.write(this.#format.begin());
    }
  }

  /**
   * Notes the domains that have a profile in the file of weights. Warns of a `--domain` that has no weights and is close to one that has.
   *
   * @param {string[]} profiles
   */
  #lookAtDomains(profiles) {
    this.#unusedProfiles = new Set(profiles);
    // This profile is for every domain without one of its own.
    this.#unusedProfiles.delete('default');
    const { domain } = this.#options;
    const known = ['default', ...BUILT_IN, ...profiles];
    if (domain === undefined || known.includes(domain)) return;
    const closest = closestTo(domain, known);
    if (closest === undefined) return;
    this.#messages.warning(
      `--domain ${domain} has no weights of its own, so those of default are used; did you mean ${closest}?`,
    );
  }

  #readWeights() {
    const { weights } = this.#options;
    if (weights === null) return undefined;
    let text;
    try {
      text = fs.readFileSync(weights, 'utf8');
    } catch (error) {
      throw new CommandError(EXIT.file, `cannot read ${weights}: ${reasonOf(error)}`);
    }
    try {
      return JSON.parse(text.trim());
    } catch (error) {
      throw new CommandError(EXIT.file, `${weights} is not JSON: ${messageOf(error)}`);
    }
  }

  /** @returns {Promise<import('./summary.js').Embedder>} */
  async #loadEmbedder() {
    const { dtype, embedder, engine, memory, modelDirectory, novelty, store, threads, verbose } =
      this.#options;
    // Words need none, so there is no reason to tell.
    if (novelty === 'lexical') return { available: false, dtype: null, reason: null };
    if (embedder === null) return { available: false, dtype: null, reason: '--no-embedder' };
    configureEmbedder({ dtype, engine, modelDirectory, threads });
    const status = await embedderStatus();
    if (!status.available) {
      // Whoever asked for one does not want scores without it.
      const asked = [dtype, engine, modelDirectory].some((option) => option !== undefined);
      if (asked || memory !== null || store !== null) {
        throw new CommandError(EXIT.file, `there is no embedder: ${status.reason}`);
      }
      this.#messages.warning(
        `there is no embedder, so novelty is 0.5 throughout (--novelty lexical needs none): ${status.reason}`,
      );
    }
    if (verbose) {
      this.#messages.note(`model: ${status.modelDirectory}`);
      this.#messages.note(
        `engine: ${status.engine === 'onnxruntime' ? status.runtimePath : `built in, ${status.kernel}`}`,
      );
    }
    return status;
  }

  /**
   * What is remembered from earlier runs; a new memory if that is nothing.
   *
   * @returns {Promise<Remembered>}
   */
  async #loadMemory() {
    const { memory: file, memorySize: maxElements, novelty } = this.#options;
    if (file !== null) {
      await requireRoomFor(file);
      this.#lock = new FileLock(file);
      this.#memory = { file, before: 0, after: null, forgotten: 0 };
      const held = await this.#readMemory(this.#memory);
      if (held !== null) return held;
    }
    if (novelty === 'prefix') return new VectorCache({ maxElements });
    return new TraceMemory({ maxElements, novelty });
  }

  /**
   * The memory in a file, with the bound that was asked for; null if there is no file.
   *
   * @param {import('./summary.js').MemoryFile} about where it is; gets how many traces the file holds
   * @returns {Promise<Remembered | null>}
   */
  async #readMemory(about) {
    const { file } = about;
    const { forget, memorySize, novelty } = this.#options;
    const Memory = novelty === 'prefix' ? VectorCache : TraceMemory;
    try {
      const held = await Memory.load(file);
      if (held instanceof TraceMemory && held.novelty !== novelty) {
        const message = `${file}: the memory compares with novelty '${held.novelty}', not with '${novelty}'`;
        throw new CommandError(EXIT.file, `${message}: ${ADVICE.ERR_MEMORY_OTHER_METHOD[1]}`);
      }
      about.before = held.size;
      if (memorySize === undefined || memorySize === held.maxElements) return held;
      const surplus = held.size - memorySize;
      if (surplus > 0 && !forget) {
        throw new CommandError(
          EXIT.usage,
          `${file} holds ${held.size} traces, and --memory-size ${memorySize} would forget the ${surplus} oldest; ` +
            '--forget allows that',
        );
      }
      return await Memory.load(file, { maxElements: memorySize });
    } catch (thrown) {
      if (thrown instanceof CommandError) throw thrown;
      const error = /** @type {SystemError} */ (thrown);
      if (error.code === 'ERR_MEMORY_NOT_FOUND') return null;
      throw new CommandError(EXIT.file, adviceOn(error));
    }
  }

  async #connect() {
    const { store: url, storeTable: table, memorySize: maxElements, novelty } = this.#options;
    if (url === null) return;
    this.#connection = await openStore({ url, table, maxElements, novelty });
    // Host and database; the password stays where it is.
    const [, place] = /^\w+:\/\/(?:[^/]*@)?([^?]*)/.exec(url) ?? ['', ''];
    this.#memory = {
      file: `postgres://${place}`,
      before: this.#connection.size,
      after: null,
      forgotten: null,
    };
  }

  /** @param {string} report */
  async #openReport(report) {
    const { novelty, sources, threshold } = this.#options;
    const { ReportCollector } = require('./report/collector.js');
    const { dtype } = this.#embedder;
    const collector = new ReportCollector({
      threshold,
      sources: sources.map(nameOf),
      novelty,
      dtype,
      version,
    });
    return { collector, file: await OutputFile.open(report) };
  }

  async #score() {
    this.#summary.begin();
    const inFlight = new InFlight({ maxPieces: MAX_IN_FLIGHT, maxBytes: MOST_BYTES_IN_FLIGHT });
    for (const source of this.#options.sources) {
      if (this.#stop.signal.aborted) break;
      try {
        await this.#scoreSource(source, inFlight);
      } catch (error) {
        if (error instanceof CommandError) throw error;
        this.#unread++;
        this.#messages.failure(`cannot read ${nameOf(source)}: ${reasonOf(error)}`);
      }
    }
    await inFlight.drain();
    this.#messages.onAllDone();
  }

  /**
   * @param {string} source
   * @param {InstanceType<typeof InFlight>} inFlight
   */
  async #scoreSource(source, inFlight) {
    const { signal } = this.#stop;
    /** @type {unknown} */
    let failure;
    const size = totalSize([source]);
    const text = this.#textOf(source, size, (error) => {
      failure = error;
    });
    const name = nameOf(source);
    const file = source === STDIN ? undefined : source;
    const read = this.#reading.read(text, file, (foreign) => foreignInput(source, foreign));
    for await (const items of read) {
      for (const item of items) {
        // Interrupted, it may end in the middle of a trace.
        if (signal.aborted) break;
        await inFlight.add(item.size, await this.#begin(name, item));
      }
      if (signal.aborted) break;
    }
    if (failure !== undefined) throw failure;
  }

  /**
   * Ends where reading fails: what was read before may end with a whole trace.
   *
   * @param {string} source
   * @param {number | null} size
   * @param {(error: unknown) => void} onFailure
   */
  async *#textOf(source, size, onFailure) {
    try {
      for await (const chunk of readChunks(source, {
        size,
        signal: this.#stop.signal,
        onRead: this.#messages.onRead,
      })) {
        this.#messages.onText(chunk.length);
        yield chunk;
      }
    } catch (error) {
      onFailure(error);
    }
  }

  /**
   * Hands a value in, to be scored; settles with what is to be done when it is its turn.
   *
   * @param {string} source
   * @param {Item} item
   * @returns {Promise<() => Promise<void>>}
   */
  async #begin(source, { line: begin, index, size, format, text, value, known = ALL_KNOWN, error, skipped }) {
    const line = begin ?? 0;
    const result = { source, line, index };
    if (skipped !== undefined) {
      return async () => {
        this.#messages.onDone(size);
        this.#summary.withoutConversation++;
        if (this.#options.verbose) this.#messages.note(`${place(result)}: ${this.#cleaned(skipped)}`);
      };
    }
    const isWritten = this.#out !== null || this.#dropped !== null;
    let written = '';
    let shown = /** @type {ReasoningTrace} */ (value);
    /** @type {Redaction[]} */
    let redactions = [];
    const found = error === undefined ? (this.#known?.find(value) ?? null) : null;
    if (found !== null && found.novelty !== null && this.#options.known === 'skip') {
      return async () => {
        this.#messages.onDone(size);
        this.#summary.knownTraces++;
      };
    }
    if (error === undefined && this.#options.clean !== null) {
      try {
        // Before it is scored: what cannot be cleaned is not remembered either.
        ({ trace: shown, redactions } = await cleanTrace(shown, this.#options.clean));
        text = undefined;
      } catch (thrown) {
        error = messageOf(thrown);
      }
    }
    if (error === undefined && isWritten) {
      try {
        written = text ?? JSON.stringify(shown);
      } catch {
        error = 'it is nested too deeply';
      }
    }
    if (error !== undefined) {
      const reason = error;
      return async () => {
        this.#messages.onDone(size);
        this.#addBad(result, reason);
      };
    }
    const trace = /** @type {ReasoningTrace} */ (value);
    const scoring = this.#explain(trace, found);
    // It is looked at when it is its turn.
    scoring.catch(() => {});
    // The value itself is let go of.
    const id = typeof trace?.id === 'string' ? trace.id : null;
    const domain = trace?.metadata?.task_domain ?? 'default';
    const success = trace?.metadata?.success;
    const objective = shown?.task?.objective;
    const isForeign = format === null && trace !== null && typeof trace === 'object' && !Array.isArray(trace);
    // Anything else makes no trace, and turning it into text may fail.
    const excerpt = typeof objective === 'string' ? cut(objective, EXCERPT_LENGTH) : '';
    return async () => {
      this.#messages.onDone(size);
      let breakdown;
      try {
        breakdown = await scoring;
      } catch (thrown) {
        const error = /** @type {SystemError} */ (thrown);
        if (String(error.code).startsWith('ERR_STORE')) return this.#giveUp(error);
        return this.#addBad(
          result,
          `${error.message}${isForeign ? ', and it is of no format that --from names' : ''}`,
        );
      }
      const about = { format: format ?? NATIVE, known, id, objective: excerpt, domain };
      await this.#add(
        { ...result, ...about, breakdown: this.#shareable(breakdown) },
        { success, text: written, redactions },
      );
    };
  }

  /**
   * Scores a trace; one that is known, with its earlier novelty.
   *
   * @param {ReasoningTrace} trace
   * @param {import('./known.js').Found | null} found
   */
  async #explain(trace, found) {
    if (found !== null && found.novelty !== null) {
      return this.#used.explain(trace, { novelty: await found.novelty });
    }
    const scoring = this.#used.explain(trace);
    found?.begin?.(scoring.then(({ dimensions }) => dimensions.novelty));
    return scoring;
  }

  /**
   * A breakdown as it may be shown: its words are those of the trace as it was recorded, which may be personal data.
   *
   * @param {import('../index.js').ScoreBreakdown} breakdown
   */
  #shareable(breakdown) {
    const { nearest } = breakdown;
    if (this.#options.clean === null || nearest === null) return breakdown;
    return { ...breakdown, nearest: { ...nearest, sharedWords: null, newWords: null } };
  }

  /**
   * Without its store there is no going on; what was scored is still written.
   *
   * @param {Error} error
   */
  #giveUp(error) {
    this.#storeFailure ??= error;
    this.#stop.abort();
  }

  /**
   * A reason as it may be shown: it may name properties.
   *
   * @param {string} reason
   */
  #cleaned(reason) {
    const { clean } = this.#options;
    return clean === null ? reason : cleanPii(reason, clean).cleaned;
  }

  /**
   * @param {Pick<Result, 'source' | 'line' | 'index'>} result
   * @param {string} reason
   */
  #addBad(result, reason) {
    const { verbose } = this.#options;
    const message = this.#cleaned(reason);
    this.#summary.bad++;
    const { bad } = this.#summary;
    if (verbose || bad <= MAX_NAMED) this.#messages.note(`${place(result)}: ${message}`);
    else if (bad === MAX_NAMED + 1) {
      this.#messages.note('further bad lines are only counted; --verbose names them all');
    }
    const { source, line, index: element } = result;
    this.#report?.collector.addError({ source, line, element, message });
  }

  /**
   * @param {Scored} scored
   * @param {Excerpts} trace
   */
  async #add(scored, trace) {
    const { noveltyBasis, score } = scored.breakdown;
    if (noveltyBasis !== 'given' && noveltyBasis !== 'no-embedder') this.#added++;
    if (this.#ranking) await this.#ranking.add(score, JSON.stringify([scored, trace]));
    else await this.#record(scored, trace, score >= this.#threshold);
  }

  /** Does with all that waited what could not be done before the best were known. */
  async #recordBest() {
    if (this.#ranking === null) return;
    const cutOff = await this.#ranking.cutOff();
    this.#threshold = cutOff.score;
    if (this.#report) this.#report.collector.threshold = cutOff.score;
    for await (const { record, kept } of this.#ranking.records(cutOff)) {
      const [scored, trace] = JSON.parse(record);
      await this.#record(scored, trace, kept);
    }
    if (this.#format === undefined) return;
    this.#messages.stopProgress();
    for await (const record of this.#ranking.best(cutOff)) {
      const [scored] = JSON.parse(record);
      await this.#stdout.write(this.#format.row(resultOf(scored, true)));
    }
  }

  /**
   * @param {Scored} scored
   * @param {Excerpts} trace
   * @param {boolean} kept
   */
  async #record(scored, { success, text, redactions }, kept) {
    const { breakdown, objective: excerpt } = scored;
    if (breakdown.noveltyBasis === 'given') this.#summary.knownTraces++;
    const result = resultOf(scored, kept);
    const position = { element: scored.index, index: this.#summary.scored };
    this.#report?.collector.add({ ...result, ...position, success, excerpt });
    this.#summary.add(result);
    this.#unusedProfiles.delete(result.domain);
    this.#summary.addRedactions(redactions);
    // The best come in the order of their ranks, when all are known.
    if (this.#format && this.#ranking === null) await this.#stdout.write(this.#format.row(result));
    const file = !this.#options.splits || result.kept ? this.#out : this.#dropped;
    if (!file) return;
    // Without one, that of an earlier score would stay beside this one.
    const score_breakdown = this.#options.explain ? breakdown : undefined;
    const metadata = { quality_score: breakdown.score, score_breakdown };
    await file.write(`${setMetadata(text, metadata)}\n`);
    this.#written.set(file.name, (this.#written.get(file.name) ?? 0) + 1);
  }

  async #finish() {
    await this.#recordBest();
    const { keepGoing, sources } = this.#options;
    const lack = this.#whyIncomplete();
    const problem = this.#whyNotWrite(keepGoing ? null : lack);
    const written = problem === null ? await this.#write(lack === null || keepGoing) : [];
    await this.#measureMemory();
    const figures = this.#figures(written);
    this.#messages.stopProgress();
    if (this.#format) await this.#stdout.write(this.#format.end(figures));
    const { bad, knownTraces, scored, withoutConversation } = this.#summary;
    const isEmpty = scored + bad + knownTraces + withoutConversation === 0;
    // Why there was nothing is told below, or was told.
    if (!this.#options.quiet && !isEmpty) {
      const summary = renderSummary(figures, this.#options);
      if (this.#format) this.#messages.text(summary);
      else await this.#stdout.write(summary);
    }
    await this.#stdout.finish();
    if (scored > 0) this.#warnOfNoEffect(figures);
    const files = this.#files().map(({ name }) => name);
    if (scored === 0 && lack === null) {
      if (knownTraces > 0 && files.length > 0) {
        this.#messages.warning(
          `all traces are known, so ${asTheyWere(files)}; --known score writes them with their earlier scores`,
        );
      } else if (knownTraces === 0 && bad === 0) {
        this.#messages.warning(`there is no trace in ${sources.map(nameOf).join(', ')}; see kp-score --help`);
      }
    }
    if (problem !== null) this.#messages.failure(problem);
    const left = lack !== null && problem === null ? this.#whatBecame(written) : '';
    // What could not be read was named when it was met.
    if (lack !== null && (lack !== UNREAD || left !== '')) this.#messages.failure(`${lack}${left}`);
    if (this.#interrupted && this.#storeFailure === null) return EXIT.interrupted;
    if (lack !== null || problem !== null) return EXIT.file;
    return bad > 0 ? EXIT.badLines : EXIT.ok;
  }

  /** Why the run has not seen all of its input; null if it has. */
  #whyIncomplete() {
    if (this.#storeFailure !== null) return `${this.#storeFailure.message}: the rest was not scored`;
    if (this.#interrupted) return 'interrupted: the rest was not read';
    return this.#unread > 0 ? UNREAD : null;
  }

  /**
   * What an incomplete run has left.
   *
   * @param {Array<{ file: string }>} written
   */
  #whatBecame(written) {
    const { keepGoing, memory } = this.#options;
    // A pipe or a device has what was written to it.
    const replaceable = this.#files().filter(({ partial }) => partial !== null);
    const files = [...replaceable.map(({ name }) => name), ...(memory === null ? [] : [memory])];
    if (keepGoing || files.length === 0) return '';
    const partial = written.map(({ file }) => file).join(', ');
    const result = partial === '' ? 'there is no partial result' : `what was scored is in ${partial}`;
    return `; ${result}, and ${asTheyWere(files)} (see --keep-going)`;
  }

  /**
   * Warns of options that were given and changed nothing of some traces, or of all.
   *
   * @param {import('./summary.js').Figures} figures
   */
  #warnOfNoEffect({ scored, converted, domains }) {
    const given = /** @type {const} */ (['success', 'confidence', 'domain'])
      .filter((name) => this.#options[name] !== undefined)
      .map((name) => `--${name}`);
    if (given.length > 0 && converted < scored) {
      this.#messages.warning(
        `${given.join(', ')}: without effect on ${scored - converted} of ${scored} traces, which are ReasoningTraces and keep their own values`,
      );
    }
    if (this.#unusedProfiles.size === 0) return;
    const names = [...BUILT_IN, ...domains.map(({ domain }) => domain)];
    const unused = [...this.#unusedProfiles].map((domain) => {
      const closest = closestTo(domain, names);
      return (
        JSON.stringify(domain) + (closest === undefined ? '' : ` (did you mean ${JSON.stringify(closest)}?)`)
      );
    });
    this.#messages.warning(
      `${this.#options.weights} has weights for domains that no trace has: ${unused.join(', ')}`,
    );
  }

  /**
   * Why no file must be replaced, neither the memory, which would not fit the traces that stay without their scores; null if
   * there is no reason.
   *
   * @param {string | null} lack why results go to other files anyway
   */
  #whyNotWrite(lack) {
    const { bad, converted, knownTraces, scored, withoutConversation } = this.#summary;
    if (scored === 0) {
      // A memory alone is as it should be, and so are files whose traces are all known.
      const isComplete = this.#whyIncomplete() === null;
      if (this.#files().length === 0 || (isComplete && knownTraces > 0)) return null;
      return 'nothing was scored, so no file was written';
    }
    if (this.#replaced === null || lack !== null) return null;
    const lost = [];
    if (this.#interrupted || this.#storeFailure !== null) lost.push('what was not read');
    if (this.#unread > 0) lost.push('what could not be read');
    if (bad > 0) lost.push('the bad lines');
    if (knownTraces > 0 && this.#options.known === 'skip') {
      lost.push('the known traces (unless with --known score)');
    }
    if (converted + withoutConversation > 0) lost.push('what it has in another format');
    const { size, mtimeNs } = this.#replaced;
    const now = statOf(this.#options.out ?? '');
    if (now?.size !== size || now.mtimeNs !== mtimeNs) lost.push('what was written to it meanwhile');
    if (lost.length === 0) return null;
    return `${this.#options.out} is left as it was, or it would lose ${lost.join(' and ')}; write to another file`;
  }

  /**
   * Replaces the outputs, then the memory; of an incomplete run, writes the outputs beside their places, and no memory.
   *
   * @param {boolean} inPlace
   * @returns {Promise<Array<{ file: string, traces: number | null }>>} the files that were written
   */
  async #write(inPlace) {
    const { memory, report } = this.#options;
    const { knownTraces, scored } = this.#summary;
    /** @type {Array<{ file: string, traces: number | null }>} */
    const written = [];
    if (scored > 0) {
      if (this.#report) await this.#writeReport(this.#report);
      // What may replace the input comes after what takes the rest of it.
      const files = this.#files().reverse();
      for (const file of files) await file.finish();
      for (const file of files) {
        const name = inPlace ? file.name : (this.#partials.get(file) ?? null);
        if (inPlace) await file.publish();
        else if (name !== file.name && name !== null) await file.publishPartial();
        const traces = file.name === report ? null : (this.#written.get(file.name) ?? 0);
        if (name !== null) written.unshift({ file: name, traces });
      }
    }
    // Last: a later run would skip traces that the memory has and no file. Where nothing was scored, the bound may be a new one.
    if (memory !== null && inPlace && scored + knownTraces > 0) {
      try {
        await this.#remembered.save(memory);
      } catch (error) {
        throw new CommandError(EXIT.file, messageOf(error));
      }
      if (this.#memory !== null) {
        const after = this.#remembered.size;
        const forgotten = Math.max(0, this.#memory.before + this.#added - after);
        this.#memory = { ...this.#memory, after, forgotten };
      }
    }
    return written;
  }

  /**
   * The name for an output of which a part was written; null if another file has that name which this run reads or writes. To be asked
   * before standard input is read, which closes it.
   *
   * @param {File} file
   */
  #partialOf({ name, partial }) {
    if (partial === null) return name;
    const { dropped, memory, out, report, sources, weights } = this.#options;
    const used = [...sources, dropped, memory, out, report, weights].filter((other) => other !== null);
    return used.some((other) => isSameFile(other, partial)) ? null : partial;
  }

  /** Finds out how many traces the memory holds: one that was not saved, as many as before; a store may not tell any more. */
  async #measureMemory() {
    if (this.#memory === null) return;
    const { before, after } = this.#memory;
    const held = this.#connection ? await this.#connection.store.size().catch(() => null) : (after ?? before);
    this.#memory = { ...this.#memory, after: held };
  }

  /** @param {ReportFile} report */
  async #writeReport({ collector, file }) {
    const { cleaned, seconds } = this.#figures([]);
    const finishedAt = new Date();
    await file.write(collector.render({ finishedAt, seconds, interrupted: this.#interrupted, cleaned }));
  }

  /** @param {Array<{ file: string, traces: number | null }>} written */
  #figures(written) {
    return this.#summary.figures({
      threshold: this.#threshold,
      top: this.#options.top,
      clean: this.#options.clean,
      interrupted: this.#interrupted,
      embedder: this.#embedder,
      memory: this.#memory,
      written,
    });
  }
}

module.exports = { Run };
