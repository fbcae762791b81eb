/**
 * Scores KnowledgePulse reasoning traces natively: the functions of `@knowledgepulse/sdk`, and what it takes to
 * see and set where the embedder comes from.
 *
 * @packageDocumentation
 */

/**
 * What an agent did for one task, step by step. The scorer reads only `task.objective`, `steps[].type`,
 * `steps[].content`, `steps[].tool.name`, `metadata.success`, `metadata.task_domain` and
 * `outcome.confidence`; everything else passes it by, however large.
 */
export interface ReasoningTrace {
  /** The JSON-LD context; the second one is that of older documents. */
  '@context': 'https://openknowledgepulse.org/schema/v1' | 'https://knowledgepulse.dev/schema/v1';
  '@type': 'ReasoningTrace';
  /** `kp:trace:<uuid>` */
  id: string;
  /** `kp:skill:<name>:<version>` */
  source_skill?: string;
  metadata: KnowledgeUnitMeta;
  /** What was to be done. */
  task: {
    /** What the agent was asked to do: the first part of the text that is embedded. */
    objective: string;
    input_schema?: Record<string, unknown>;
  };
  /** What was done, in order. May be empty. */
  steps: ReasoningTraceStep[];
  /** What came of it. */
  outcome: {
    result_summary: string;
    /** How sure the agent is of its result, 0 to 1. */
    confidence: number;
  };
  knowledge_graph_delta?: {
    entities: Array<{ name: string; type: string }>;
    relationships: Array<{ fact: string; valid_from: string }>;
  };
}

/**
 * A {@link ReasoningTrace} of which nothing may be changed, as a frozen one, or one that is declared `as const`. Scoring only reads, so
 * it takes either.
 */
export type ReadonlyReasoningTrace = DeepReadonly<ReasoningTrace>;

/** `T`, and all that is in it, to be read only. */
type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** One step of a {@link ReasoningTrace}. */
export interface ReasoningTraceStep {
  step_id: number;
  /** Other types than these are accepted at run time, and each distinct one counts towards complexity. */
  type: 'thought' | 'tool_call' | 'observation' | 'error_recovery';
  /** Part of the text that is embedded; absent counts as empty. */
  content?: string;
  /** The tool that was used; distinct names count towards tool diversity. */
  tool?: { name: string; mcp_server?: string };
  /** Never read, however large. */
  input?: Record<string, unknown>;
  output_summary?: string;
  /** Milliseconds. */
  latency_ms?: number;
}

/** The metadata that every knowledge unit carries. */
export interface KnowledgeUnitMeta {
  /** ISO 8601. */
  created_at: string;
  agent_id?: string;
  framework?: string;
  /** Selects the weights: see {@link ScoringWeights}. */
  task_domain: string;
  /** Whether the task was done; a failure scales the outcome dimension by 0.3. */
  success: boolean;
  /** 0 to 1; not read by the scorer. */
  quality_score: number;
  visibility: Visibility;
  privacy_level: PrivacyLevel;
  validated_by?: string[];
}

/** Who may see a knowledge unit. */
export type Visibility = 'private' | 'org' | 'network';

/** How a knowledge unit may be processed. */
export type PrivacyLevel = 'aggregated' | 'federated' | 'private';

/**
 * How much each dimension counts, 0 to 1; the four add up to 1. The profile is chosen by `metadata.task_domain`
 * (`finance`, `code`, `medical`, `customer_service`; any other name gets the profile `default`). A {@link Scorer} can have
 * further profiles, or other ones.
 */
export interface ScoringWeights {
  /** Of distinct step types, error recovery and the number of steps. */
  complexity: number;
  /** Of the distance to the traces scored before. */
  novelty: number;
  /** Of distinct tools per step. */
  toolDiversity: number;
  /** Of confidence and success. */
  outcome: number;
}

/** As below, for `traces.map(evaluateValue)`: a number is no options. */
export function evaluateValue(trace: ReadonlyReasoningTrace, index: number): Promise<number>;
/**
 * Scores a trace by complexity, novelty, tool diversity and outcome.
 *
 * Novelty compares the trace with those that this process scored before (the last 1,000), and remembers it.
 * Calls may overlap: scores and memory are those of evaluating them one after another in the order of the
 * calls. The event loop is free while the embedding is computed.
 *
 * Without an embedder (no model package, or no ONNX Runtime for the platform) novelty is 0.5. So it is when
 * the embedder is broken, and then the process emits one `KnowledgePulseWarning` that says why.
 *
 * @param trace - the trace; it is read before the call returns, and may be changed after that
 * @returns the score, 0 to 1; the promise never rejects for want of an embedder
 * @throws `TypeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if a field is missing or has the wrong
 * type. The message names the path, as in `trace.steps[3].tool.name must be a string, got number`. Nothing is
 * remembered then.
 * @throws `RangeError` with the same code, as a rejection, if `outcome.confidence` is not in [0, 1].
 * @throws `TypeError` with `code` `ERR_INVALID_OPTION`, as a rejection, if the options are no object, or one of them has
 * the wrong type or is not one of this call.
 * @throws `Error` with `code` `ERR_CACHE_OTHER_MODEL` or `ERR_CACHE_OTHER_METHOD`, as a rejection, if the memory holds
 * vectors of another model or of another `novelty`.
 * @example
 * ```ts
 * const score = await evaluateValue(trace);
 * if (score > 0.75) await share(trace);
 * ```
 */
export function evaluateValue(trace: ReadonlyReasoningTrace, options?: CallOptions): Promise<number>;

/** As below, for `batches.map(evaluateValues)`: a number is no options. */
export function evaluateValues(traces: readonly ReadonlyReasoningTrace[], index: number): Promise<number[]>;
/**
 * Scores many traces: the scores, and the memory afterwards, are those of one {@link evaluateValue} after
 * another, but several are embedded at a time, on all cores. Calls of `evaluateValue` made meanwhile come after the
 * batch.
 *
 * The traces are read as their turn comes, a window at a time, so memory stays bounded for a hundred thousand
 * of them: do not change the array or its traces before the promise settles.
 *
 * @param traces - the traces
 * @returns the scores, each 0 to 1, in the order of the traces
 * @throws `TypeError` or `RangeError` as {@link evaluateValue}, as a rejection, for the first invalid trace, with
 * a path as in `traces[5].steps[3].tool.name`. The traces before it are remembered then, those after it are not
 * scored.
 * @example
 * ```ts
 * const scores = await evaluateValues(traces);
 * const best = traces[scores.indexOf(Math.max(...scores))];
 * ```
 */
export function evaluateValues(
  traces: readonly ReadonlyReasoningTrace[],
  options?: BatchOptions,
): Promise<number[]>;

/** As below, for `traces.map(explain)`: a number is no options. */
export function explain(trace: ReadonlyReasoningTrace, index: number): Promise<ScoreBreakdown>;
/**
 * Scores a trace as {@link evaluateValue} does, and tells how the score came about.
 *
 * @param trace - the trace; it is read before the call returns
 * @returns the score and its parts, which make it up exactly
 * @throws as {@link evaluateValue}, as a rejection
 * @example
 * ```ts
 * const { score, nearest } = await explain(trace, { remember: false });
 * if (nearest && nearest.similarity > 0.95) console.log(`${score}: resembles ${nearest.label}`);
 * ```
 */
export function explain(trace: ReadonlyReasoningTrace, options?: ExplainOptions): Promise<ScoreBreakdown>;

/** Options of a call that can be cancelled. */
export interface CallOptions {
  /**
   * Cancels the call, which then rejects with the signal's `reason` (an `AbortError` if it has none) and leaves the
   * memory, or the file, as if it had never been made. A call whose trace is remembered already goes on instead, and so does one that has
   * given its trace to a store; a batch can be cancelled until its last trace is told to `onProgress`. One signal may
   * serve any number of calls.
   */
  signal?: AbortSignalLike | null;
}

/** An `AbortSignal`, told by its shape: it may be that of another library. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
}

/** Options of a call on many. */
export interface BatchOptions extends CallOptions {
  /**
   * Called after each trace or text, in their order. What it throws, the call rejects with. Of a batch of traces nothing is
   * remembered then if it has a `signal`. Without one, what was begun is: the traces before the one that was told last, that one, and up
   * to 63 after it. A store keeps what was given to it by then.
   */
  onProgress?: (progress: BatchProgress) => void;
}

/** How far a batch is. */
export interface BatchProgress {
  /** So many are done, 1 to `total`. */
  done: number;
  /** So many there are. */
  total: number;
}

/** Options of {@link Scorer.explain}. */
export interface ExplainOptions extends CallOptions {
  /**
   * Whether the memory is to remember the trace, as it does when one is scored.
   *
   * @defaultValue `true`
   */
  remember?: boolean;
}

/** Options of {@link Scorer}. */
export interface ScorerOptions {
  /**
   * The memory that novelty is measured against: of 384 dimensions. Scorers may share one.
   *
   * @defaultValue a new one, for 1,000 traces
   */
  cache?: VectorCache;
  /**
   * A memory elsewhere, which other processes can share, in the place of the cache. A batch that is aborted leaves there
   * what was given to it by then.
   */
  store?: NoveltyStore;
  /**
   * What becomes of a call when the store fails: `reject` rejects it with the store's error. `local` compares with the
   * cache instead, which then also remembers what goes to the store; the process emits one `KnowledgePulseWarning` each time the store begins
   * to fail. What the store has missed it gets when it answers again, a batch at a time between calls: the last 10,000 vectors, a
   * trace or with `novelty: 'full'` up to 32 of them for each. It lies in the memory of the process until then: see
   * {@link Scorer.flush}. A trace that the store refuses for good is given up, with a warning.
   *
   * @defaultValue `'reject'`
   */
  onStoreError?: 'reject' | 'local';
  /**
   * `null` scores without an embedder: novelty is 0.5, nothing is remembered, and a score takes microseconds.
   *
   * @defaultValue `'default'`, the embedder of the process
   */
  embedder?: 'default' | null;
  /**
   * Profiles of weights by `metadata.task_domain`, besides the SDK's five or in their place. `default` is for every
   * domain that has none of its own.
   */
  weights?: Readonly<Record<string, ScoringWeights>>;
  /**
   * How much of a trace is compared: `prefix`, the first 512 tokens, as the SDK does; or `full`, all of it, in up to
   * 32 windows of up to 1,000 bytes that are each compared and remembered. docs/novelty.md has the formula. The two need a memory
   * each: one that was filled by the other is refused. The members of the
   * `cache` wait for a comparison that is under way: of a large cache with all windows, for tenths of a second.
   *
   * @defaultValue `'prefix'`
   */
  novelty?: 'prefix' | 'full';
}

/**
 * Scores traces with a memory and weights of its own. All scorers of a process share its embedder; the functions
 * {@link evaluateValue}, {@link evaluateValues} and {@link explain} are the methods of one, {@link defaultScorer}, but can
 * be handed to `map`: methods refuse an index as their options.
 *
 * @example
 * ```ts
 * const scorer = new Scorer({
 *   cache: await VectorCache.load('memory.safetensors'),
 *   weights: { legal: { complexity: 0.1, novelty: 0.2, toolDiversity: 0.1, outcome: 0.6 } },
 * });
 * const score = await scorer.evaluateValue(trace);
 * await scorer.cache.save('memory.safetensors');
 * ```
 */
export class Scorer {
  /**
   * Makes a scorer. Nothing is loaded yet. Where the `cache` is being compared with, this waits for that comparison.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type, or there is no such option.
   * @throws `RangeError` with the same code if it is none of the values allowed: a cache of other dimensions, or
   * weights that are negative, not finite, or do not sum to 1 within 1e-9. The message names the profile and the sum.
   * @throws `Error` with `code` `ERR_CACHE_OTHER_METHOD` if the cache was filled by another `novelty`; where it is that of
   * {@link defaultScorer}, which all threads share, calls reject instead.
   */
  constructor(options?: ScorerOptions);

  /** The memory: the live one, not a copy. */
  get cache(): VectorCache;

  /** Scores a trace: see {@link evaluateValue}. */
  evaluateValue(trace: ReadonlyReasoningTrace, options?: CallOptions): Promise<number>;

  /**
   * Scores many traces: see {@link evaluateValues}. With a `signal`, the memory gets them when the last one is scored and told,
   * all at once, and gets none if the call rejects, except for an invalid trace; without, each as it is scored.
   */
  evaluateValues(traces: readonly ReadonlyReasoningTrace[], options?: BatchOptions): Promise<number[]>;

  /** Scores a trace and tells how the score came about: see {@link explain}. */
  explain(trace: ReadonlyReasoningTrace, options?: ExplainOptions): Promise<ScoreBreakdown>;

  /**
   * Gives the store what it has missed, with `onStoreError: 'local'`, at once: to be called before the process ends, which does not wait
   * for it. Resolves when the store has all that was scored before, at once if it has missed nothing or there is none.
   *
   * @throws what the store fails with, as a rejection; with `code` `ERR_STORE` if that has none. What it has missed is kept and sent
   * later, except for traces that it refuses for good.
   */
  flush(options?: CallOptions): Promise<void>;
}

/** The scorer behind {@link evaluateValue}: one per process, shared by all threads. */
export const defaultScorer: Scorer;

/** The model that vectors come from. Vectors of two models do not compare. */
export interface VectorModel {
  /** Its name, as in {@link EmbedderStatus.model}. */
  model: string;
  /** What its weights are stored in: `fp32` or `q8`. */
  dtype: string;
}

/** Options of a call that adds to a {@link NoveltyStore}. */
export interface AddOptions extends CallOptions {
  /**
   * A UUID that names the call. A call that is made again, because it is not known whether the first one was carried out, has the same
   * name and the same entries; a store that can tell stores them once. Others may ignore it.
   */
  call?: string;
}

/** Options of {@link NoveltyStore.nearest}. */
export interface NearestOptions extends CallOptions {
  /** The method that the vector is of, as in {@link NoveltyEntry.method}. */
  method?: string;
}

/** A trace for a {@link NoveltyStore}. */
export interface NoveltyEntry {
  /** What the trace is known by; null if it has no `id` that is a string of at most 1,024 bytes. */
  id: string | null;
  /** One embedding of the trace, or with `novelty: 'full'` one of each of its windows: 1 to 32, of 384 numbers. */
  vectors: readonly Float32Array[];
  model: VectorModel;
  /**
   * The name of the method by which the trace became vectors: the `novelty` of the scorer. Those of two methods do not
   * compare, so a store is of the first one that is named to it. Without a name nothing is compared.
   */
  method?: string;
}

/** What a store has nearest to a vector. */
export interface StoredNeighbour {
  /** The `id` of its entry. */
  label: string | null;
  /** The cosine similarity, -1 to 1. What is beyond ±1.001 is refused with `ERR_STORE`. */
  similarity: number;
}

/** For each vector of an entry, the nearest one that was stored before the entry; null if there was none. */
export type NoveltyComparison = Array<StoredNeighbour | null>;

/**
 * A novelty memory that a {@link Scorer} asks. `@knowledgepulse/native/pgvector` has one on PostgreSQL; {@link LocalStore} is
 * one on a {@link VectorCache}, and an example of how to write others. `@knowledgepulse/native/conformance` has the tests that
 * any store should pass.
 *
 * A store fails by rejecting with an `Error` whose `code` says why: `ERR_STORE_UNAVAILABLE`, `ERR_STORE_TIMEOUT`,
 * `ERR_STORE_READ_ONLY`, `ERR_STORE_FULL`, `ERR_STORE_SCHEMA`, `ERR_STORE_OTHER_MODEL`, `ERR_STORE_OTHER_METHOD`, or `ERR_STORE`. Nothing is stored
 * then, or it is not known whether it is. With `onStoreError: 'local'` a scorer makes the call again after the first five and
 * after errors without such a code; the others are refusals, also `ERR_INVALID_…`.
 *
 * Every call needs a time limit of the store's own: a scorer has none, and waits for one that never settles for ever.
 */
export interface NoveltyStore {
  /**
   * Compares an entry with everything stored before it, then stores it: one atomic step, also among processes. If
   * two submit the same trace at once, one of them sees the other's.
   */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;
  /**
   * As one {@link NoveltyStore.compareAndAdd} after another, all or nothing. The scorer gives it up to 64 entries,
   * and makes one call at a time.
   */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;
  /** The `count` stored vectors that are most similar to `vector`, the most similar first. Stores nothing. */
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;
  /** How many vectors are stored and compared with. */
  size(options?: CallOptions): Promise<number>;
}

/**
 * A {@link VectorCache} as a {@link NoveltyStore}. The cache may have other dimensions than an embedding; it gets the model and the
 * method of the entries.
 *
 * Its calls reject with `ERR_INVALID_ENTRY` or `ERR_INVALID_VECTOR` if they make no sense, and with `ERR_STORE_OTHER_MODEL` or
 * `ERR_STORE_OTHER_METHOD`.
 */
export class LocalStore implements NoveltyStore {
  /**
   * @param cache - what to store in; a new one for 1,000 vectors by default
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if it is no `VectorCache`.
   */
  constructor(cache?: VectorCache);
  /** Where it stores: the live one. */
  get cache(): VectorCache;
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;
  size(options?: CallOptions): Promise<number>;
}

/** A number for each dimension of a score. */
export interface ScoreDimensions {
  complexity: number;
  novelty: number;
  toolDiversity: number;
  outcome: number;
}

/**
 * A score and what it is made of: `contributions` are `dimensions` times `weights`; added up in their order they are
 * `composite`; the overrides lead from there to `score`. All of that holds exactly.
 */
export interface ScoreBreakdown {
  /** The score, 0 to 1. */
  score: number;
  /**
   * Each 0 to 1, but novelty 0 to 2 and by rounding 1e-6 beyond: a duplicate's can be below 0. With a store it is beyond by what the
   * similarities are, at most 0.001.
   */
  dimensions: ScoreDimensions;
  /** The profile that the weights are of: a task domain, or `default`. */
  profile: string;
  weights: ScoringWeights;
  contributions: ScoreDimensions;
  composite: number;
  /** The rules that applied, in their order; the last one's `after` is the score. */
  overrides: ScoreOverride[];
  /**
   * What novelty rests on: a comparison with the memory (the cache or the store); or it is 0.5, because there was
   * nothing in the memory, or because there is no embedder.
   */
  noveltyBasis: 'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder';
  /** The remembered trace that this one resembles most; null if there is none. */
  nearest: NearestTrace | null;
  /** How many tokens were embedded, special ones included; null without an embedder. */
  tokens: number | null;
  /** Whether there was more text than was embedded; null without an embedder. */
  truncated: boolean | null;
}

/** A rule that changed a score. */
export interface ScoreOverride {
  /**
   * `single-thought`: a trace of one thought scores 0.1. `recovery-bonus`: more than two error recoveries and a success
   * add 0.1. `single-tool-penalty`: using one tool only takes 0.1 away. `clamp`: the score was out of [0, 1]. Novelty above 1 can
   * take it there, and rounding, beyond either end.
   */
  rule: 'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp';
  /** The score before. */
  before: number;
  /** The score after. */
  after: number;
}

/** A remembered trace. */
export interface NearestTrace {
  /** Its `id`; null if it had none that is a string of at most 1,024 bytes. */
  label: string | null;
  /**
   * The cosine similarity, -1 to 1 within 1e-6, or with a store within 0.001; with `novelty: 'full'` the mean over the windows that resemble it most.
   */
  similarity: number;
  /**
   * The share of the text that resembles it most, 0 to 1: always 1, except with `novelty: 'full'`. Of traces without a label
   * it is that of one window: whether two of them are of one trace is not known.
   */
  share: number;
}

/**
 * Embeds texts as the scorer does: what to put in a {@link VectorCache}, or to look for there. All embedders of a
 * process are the same one.
 *
 * @example
 * ```ts
 * const embedder = new Embedder();
 * const cache = new VectorCache();
 * cache.add(await embedder.embed('restart the database'), 'runbook-7');
 * cache.nearest(await embedder.embed('the database does not answer'), 1); // [{ label: 'runbook-7', … }]
 * ```
 */
export class Embedder {
  /** The length of an embedding: 384. */
  get dimensions(): number;

  /**
   * Embeds a text, of which the first 512 tokens count.
   *
   * @returns 384 numbers whose squares add up to 1
   * @throws `TypeError` with `code` `ERR_INVALID_TEXT`, as a rejection, if it is no string.
   * @throws `Error` with an {@link EmbedderErrorCode}, as a rejection, if there is no embedder.
   */
  embed(text: string, options?: CallOptions): Promise<Float32Array>;

  /**
   * Embeds many texts, on all cores.
   *
   * @returns an embedding for each text, in their order
   * @throws as {@link Embedder.embed}, as a rejection
   */
  embedBatch(texts: readonly string[], options?: BatchOptions): Promise<Float32Array[]>;
}

/** Options of {@link VectorCache}. */
export interface VectorCacheOptions {
  /**
   * How many vectors are kept: a safe integer; 0 keeps none.
   *
   * @defaultValue 1000
   */
  maxElements?: number;
  /**
   * The length of every vector: a safe integer of at least 1.
   *
   * @defaultValue 384
   */
  dimensions?: number;
  /**
   * How many milliseconds a vector lives, by a monotonic clock: 0 or more.
   *
   * @defaultValue `Infinity`, for ever
   */
  ttlMs?: number;
}

/** A vector of a {@link VectorCache} that is similar to a query. */
export interface Neighbour {
  /** What it was added with. */
  label: string | undefined;
  /** The cosine similarity, -1 to 1 within 1e-6. */
  similarity: number;
  /** How many vectors in the cache are older. */
  index: number;
}

/** A vector of a {@link VectorCache}, as its iterator gives it. */
export interface VectorCacheEntry {
  /** A copy in single precision. */
  vector: Float32Array;
  /** What it was added with. */
  label: string | undefined;
  /** How many vectors were older when the iterator was made. */
  index: number;
}

/** Options of {@link VectorCache.load}. */
export interface VectorCacheLoadOptions extends CallOptions {
  /**
   * How many vectors are kept, beginning with the newest: a safe integer; 0 keeps none.
   *
   * @defaultValue that of the cache which was saved
   */
  maxElements?: number;
  /**
   * How many milliseconds a vector lives from when it was added: 0 or more, `Infinity` for ever.
   *
   * @defaultValue that of the cache which was saved
   */
  ttlMs?: number;
  /**
   * `check` refuses a file that names another model than the embedder of this process has, for which the embedder is
   * loaded. A file that names none is taken, and so is any where there is no embedder. `any` asks nothing.
   *
   * @defaultValue `check`
   */
  model?: 'check' | 'any';
}

/**
 * A bounded first-in-first-out memory of vectors that tells which are the most similar ones, by looking at all of
 * them. It can be saved to a file and loaded again.
 *
 * A scorer compares with it away from the event loop. What reads or changes the vectors meanwhile (`add`, `size`, `nearest`, iteration
 * and so on) waits until the comparison of that trace is done: a scan, with `novelty: 'full'` up to 32, about 10 ms each for 200,000 vectors.
 *
 * @example
 * ```ts
 * const cache = new VectorCache({ maxElements: 2, dimensions: 3 });
 * cache.add([1, 0, 0], 'first');
 * cache.maxCosineSimilarity([1, 1, 0]); // 0.7071…
 * cache.nearest([1, 1, 0]); // [{ label: 'first', similarity: 0.7071…, index: 0 }]
 * await cache.save('memory.safetensors');
 * ```
 */
export class VectorCache implements Iterable<VectorCacheEntry> {
  /**
   * Makes an empty cache.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
   * @throws `RangeError` with the same code if it is outside its range.
   */
  constructor(options?: VectorCacheOptions);

  /**
   * The cache in a file that {@link VectorCache.save} wrote: its vectors, labels, model, method and bounds. Vectors are as
   * old as the wall clock says, so a time to live goes on while no process runs; where the clock was set back, they
   * count as just added.
   *
   * The file is read away from the event loop. It is checked as it is read, and cannot make the process take more
   * memory than a cache of as many vectors takes.
   *
   * @param path - the file; relative to the directory in which the process is at the call
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, as a rejection, for a wrong path or option.
   * @throws `Error` with `code` `ERR_CACHE_NOT_FOUND`, as a rejection, if there is no such file.
   * @throws `Error` with `code` `ERR_CACHE_DAMAGED`, as a rejection, if the file is not what a cache was saved as. The
   * message says what is wrong.
   * @throws `Error` with `code` `ERR_CACHE_OTHER_MODEL`, as a rejection, if its vectors do not compare with those of the
   * embedder: see {@link VectorCacheLoadOptions.model}.
   * @throws `Error` with `code` `ERR_CACHE_IO`, as a rejection, if the system does not let it be read.
   * @throws `RangeError` with `code` `ERR_OUT_OF_MEMORY`, as a rejection, if there is no room for it.
   */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<VectorCache>;

  /**
   * Adds a copy of `vector`, which displaces the oldest one if the cache is full.
   *
   * @param vector - finite numbers, as many as the cache has dimensions
   * @param label - what {@link VectorCache.nearest} tells of the vector: at most 1,024 bytes of UTF-8. Lone surrogates
   * become U+FFFD.
   * @throws `RangeError` with `code` `ERR_INVALID_VECTOR` if it has another length or a component that is not
   * finite, as in `Expected 384 dimensions, got 3`. Nothing is added then.
   * @throws `TypeError` with the same code if it is no array of numbers.
   * @throws `TypeError` with `code` `ERR_INVALID_LABEL` if the label is no string, `RangeError` if it is too long.
   * @throws `RangeError` with `code` `ERR_OUT_OF_MEMORY` if there is no room for it.
   */
  add(vector: ArrayLike<number>, label?: string): void;

  /**
   * Adds many vectors, as {@link VectorCache.add} one after another does, but all or none: when one of them is
   * refused, or its label, nothing is added.
   *
   * @param vectors - the vectors
   * @param labels - as many labels, or `undefined` for a vector without one
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}, with a place as in `vectors[5][3] must be a finite
   * number, got NaN` or `vectors[5]: Expected 384 dimensions, got 3`.
   */
  addBatch(vectors: ArrayLike<ArrayLike<number>>, labels?: ArrayLike<string | undefined>): void;

  /**
   * The largest cosine similarity of `query` to a vector in the cache, -1 to 1 within 1e-6; 0 if the cache is
   * empty. A zero vector has similarity 0 to everything.
   *
   * @param query - finite numbers, as many as the cache has dimensions
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}.
   */
  maxCosineSimilarity(query: ArrayLike<number>): number;

  /**
   * {@link VectorCache.maxCosineSimilarity} of each query, in the order of the queries.
   *
   * @throws `RangeError` or `TypeError` as {@link VectorCache.addBatch}, with `queries` for `vectors`.
   */
  maxCosineSimilarities(queries: ArrayLike<ArrayLike<number>>): number[];

  /**
   * The `k` vectors that are most similar to `query`, the most similar first, and of equally similar ones the older
   * first; fewer if the cache holds fewer. The similarity of the first is {@link VectorCache.maxCosineSimilarity}.
   *
   * @param query - finite numbers, as many as the cache has dimensions
   * @param k - a safe integer of at least 0; 1 by default
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}; with `code` `ERR_INVALID_OPTION` for a wrong `k`.
   */
  nearest(query: ArrayLike<number>, k?: number): Neighbour[];

  /**
   * The vectors in the cache, oldest first, as they are when the iterator is made: those that leave before their turn
   * are left out, and those that are added later do not come.
   *
   * A vector is as it was added, in single precision. One whose largest component is not within 2^-40 and 2^40 is at
   * another scale, by a power of two, which no similarity depends on.
   */
  [Symbol.iterator](): IterableIterator<VectorCacheEntry>;

  /** How many vectors the cache holds; expired ones do not count. */
  get size(): number;

  /** How many vectors are kept. */
  get maxElements(): number;

  /** The length of every vector. */
  get dimensions(): number;

  /** How many milliseconds a vector lives, to a nanosecond; `Infinity` for ever. */
  get ttlMs(): number;

  /**
   * The model that the vectors come from, if the scorer or a {@link LocalStore} added any: its name, and what its weights are stored in.
   * Vectors of different models do not compare, so the scorer refuses a cache with those of another one.
   */
  get model(): { model: string; dtype: string } | null;

  /**
   * The name of the method by which traces became the vectors, if the scorer or a {@link LocalStore} added any: the `novelty` of the
   * scorer, `prefix` or `full`. Vectors of two methods do not compare, so a scorer refuses a cache with those of the
   * other one. Vectors that were added by hand, and those of files that an older version has saved, are of any.
   */
  get method(): string | undefined;

  /** Returns the memory of expired vectors, which no longer count anyway. A no-op without `ttlMs`. */
  evictExpired(): void;

  /** Removes every vector, and forgets the model and the method. */
  clear(): void;

  /**
   * Writes the cache to a file, in the safetensors format: its vectors, labels, model, method and bounds, as they are at the
   * call. That takes place away from the event loop, while the cache goes on. Calls for one file are done in their
   * order.
   *
   * The file is replaced in one step, when the new one is on the disk: whatever happens, there is the old one or the new
   * one, whole. A symbolic link stays, and the file that it leads to is replaced. That keeps its permissions; a new
   * file has those that the process gives to new files. A process that is killed can leave a file `.knowledgepulse-….tmp`
   * beside it, which a later call removes.
   *
   * @param path - the file; relative to the directory in which the process is at the call
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, as a rejection, for a wrong path.
   * @throws `Error` with `code` `ERR_CACHE_IO`, as a rejection, if the system does not let it be written: the disk is
   * full, the directory is missing or may not be written to. The old file is as it was.
   */
  save(path: string, options?: CallOptions): Promise<void>;
}

/**
 * The novelty memory of {@link evaluateValue}: the live one, not a copy, shared by all threads of the
 * process.
 *
 * @internal
 */
export function _getLocalCache(): VectorCache;

/** Options of {@link configureEmbedder}. */
export interface EmbedderOptions {
  /**
   * A directory with the model: `model.onnx` (or `onnx/model.onnx`), `tokenizer.json`,
   * `tokenizer_config.json`, `config.json`.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_MODEL_DIR`, then the package
   * `@knowledgepulse/all-minilm-l6-v2` or `@knowledgepulse/all-minilm-l6-v2-q8`
   */
  modelDirectory?: string;
  /**
   * Which of the installed model packages to use: `fp32`, the SDK's numbers, or `q8`, faster and a quarter of the
   * size.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_DTYPE`, then `fp32` if it is installed, else `q8`
   */
  dtype?: 'fp32' | 'q8';
  /**
   * The ONNX Runtime library, 1.24.1 or newer.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_ONNXRUNTIME`, then the library in the platform's
   * package
   */
  runtimePath?: string;
  /**
   * Threads that one inference computes on: an integer from 1 to 1024.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_THREADS`, then as many as the process may use
   */
  threads?: number;
}

/**
 * Says where the embedder comes from and what it may use, for the whole process. To be called before the first
 * {@link evaluateValue} or {@link embedderStatus}; nothing is loaded yet.
 *
 * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
 * @throws `RangeError` with the same code if it is none of the values allowed.
 * @throws `Error` with `code` `ERR_ALREADY_CONFIGURED` if the call comes too late.
 * @example
 * ```ts
 * configureEmbedder({ dtype: 'q8', threads: 1 });
 * ```
 */
export function configureEmbedder(options: EmbedderOptions): void;

/** What became of loading the embedder. What is not known is null. */
export interface EmbedderStatus {
  /** Whether traces are compared by their text. If not, novelty is 0.5. */
  available: boolean;
  /** Why it is not available. */
  code: EmbedderErrorCode | null;
  /** The same for people: what is wrong with which file, and what to do. */
  reason: string | null;
  modelDirectory: string | null;
  /** What the model calls itself; `sha256:` and its checksum, if it has no name. */
  model: string | null;
  /** SHA-256 of the model file, in hexadecimal. */
  modelSha256: string | null;
  /** What the weights are stored in. */
  dtype: 'fp32' | 'q8' | null;
  /** The length of an embedding: 384. */
  dimensions: number | null;
  /** The ONNX Runtime library. */
  runtimePath: string | null;
  /** Its version. */
  runtimeVersion: string | null;
  /** Threads that one inference computes on. */
  threads: number;
}

/** Why there is no embedder. */
export type EmbedderErrorCode =
  /** No model package is installed, or the configured directory holds no model. */
  | 'ERR_MODEL_NOT_FOUND'
  /** A model file is missing from its package, truncated or altered. */
  | 'ERR_MODEL_DAMAGED'
  /** A model file is there, and the system refuses to read it: a permission is missing, or the disk fails. */
  | 'ERR_MODEL_UNREADABLE'
  /** The model is another one than the scorer can use. */
  | 'ERR_MODEL_UNSUPPORTED'
  /** The platform has no ONNX Runtime, or the library of its package or the configured one does not exist. */
  | 'ERR_RUNTIME_NOT_FOUND'
  /** The library is there, and the system refuses to read it: a permission is missing, or the disk fails. */
  | 'ERR_RUNTIME_UNREADABLE'
  /** The library is no ONNX Runtime for this platform. */
  | 'ERR_RUNTIME_UNUSABLE'
  /** The library is older than 1.24.1. */
  | 'ERR_RUNTIME_TOO_OLD'
  /** `tokenizer.json` is malformed or describes another kind of tokenizer. */
  | 'ERR_TOKENIZER'
  /** ONNX Runtime failed. */
  | 'ERR_INFERENCE'
  /** There is no memory to load the model. */
  | 'ERR_OUT_OF_MEMORY'
  /** A bug in this package. */
  | 'ERR_INTERNAL';

/**
 * Loads the embedder, if no call has yet, and tells what became of it. Never rejects.
 *
 * @example
 * ```ts
 * const { available, reason } = await embedderStatus();
 * if (!available) console.warn(`Novelty is 0.5: ${reason}`);
 * ```
 */
export function embedderStatus(): Promise<EmbedderStatus>;
