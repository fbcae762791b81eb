/**
 * Scores KnowledgePulse reasoning traces natively: the functions of `@knowledgepulse/sdk`, scorers with a memory and weights of
 * their own, selection and cleaning of traces, and the configuration of the embedder.
 *
 * @packageDocumentation
 */

/**
 * The record of an agent's work on one task, step by step. The scorer reads only `task.objective`, `steps[].type`,
 * `steps[].content`, `steps[].tool.name`, `metadata.success`, `metadata.task_domain` and `outcome.confidence`, and remembers
 * the trace by its `id`. Other fields cost nothing, however large they are.
 */
export interface ReasoningTrace {
  /** The JSON-LD context; older documents have the second one. */
  '@context': 'https://openknowledgepulse.org/schema/v1' | 'https://knowledgepulse.dev/schema/v1';
  '@type': 'ReasoningTrace';
  /** `kp:trace:<uuid>` */
  id: string;
  /** `kp:skill:<name>:<version>` */
  source_skill?: string;
  metadata: KnowledgeUnitMeta;
  task: {
    /** The agent's task: the first part of the text that is embedded. */
    objective: string;
    input_schema?: Record<string, unknown>;
  };
  /** The agent's steps, in order. May be empty. */
  steps: ReasoningTraceStep[];
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
 * A {@link ReasoningTrace} that cannot be changed, such as a frozen one or one that is declared `as const`. The scorer only reads a trace,
 * so it accepts both kinds.
 */
export type ReadonlyReasoningTrace = DeepReadonly<ReasoningTrace>;

/** `T` with all properties read-only, at every depth. */
type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** One step of a {@link ReasoningTrace}. */
export interface ReasoningTraceStep {
  step_id: number;
  /** Other types are accepted at run time too, and each distinct type counts towards complexity. */
  type: 'thought' | 'tool_call' | 'observation' | 'error_recovery';
  /** Part of the text that is embedded. A step without content counts as one with empty content. */
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
  /** Whether the agent succeeded; a failure multiplies the outcome dimension by 0.3. */
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
 * How much each dimension counts, 0 to 1; the four add up to 1. `metadata.task_domain` chooses the profile (`finance`, `code`,
 * `medical`, `customer_service`); any other domain gets the profile `default`. A {@link Scorer} can have further profiles, and
 * other weights in these.
 */
export interface ScoringWeights {
  /** Weight of complexity: distinct step types, error recovery and the number of steps. */
  complexity: number;
  /** Weight of novelty: the distance to the traces scored before. */
  novelty: number;
  /** Weight of tool diversity: distinct tools per step. */
  toolDiversity: number;
  /** Weight of the outcome: confidence and success. */
  outcome: number;
}

/** Lets `traces.map(evaluateValue)` work: the index that `map` passes is ignored. */
export function evaluateValue(trace: ReadonlyReasoningTrace, index: number): Promise<number>;
/**
 * Scores a trace by complexity, novelty, tool diversity and outcome.
 *
 * Novelty compares the trace with the last 1,000 traces that this process scored, and the trace is then remembered. The same
 * trace scores less the second time. Calls may overlap: scores and memory are the same as if one call followed the other in
 * the order of the calls. The event loop stays free while the embedding is computed.
 *
 * Novelty is 0.5 without a working embedder. If a model is installed but does not work, the process emits one
 * `KnowledgePulseWarning` with the reason.
 *
 * @param trace - the trace; it is read before the call returns, and may be changed afterwards
 * @returns the score, 0 to 1; a missing embedder does not reject the promise
 * @throws `TypeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if a field is missing or has the wrong
 * type. The message names the path: `trace.steps[3].tool.name must be a string, got number`. Nothing is remembered.
 * @throws `RangeError` with the same code, as a rejection, if `outcome.confidence` is not in [0, 1].
 * @throws `TypeError` with `code` `ERR_INVALID_OPTION`, as a rejection, if an option is unknown or has the wrong type.
 * @throws `Error` with `code` `ERR_MEMORY_OTHER_MODEL` or `ERR_MEMORY_OTHER_METHOD`, as a rejection, if the memory holds
 * vectors of another model, or was filled by another `novelty`.
 * @example
 * ```ts
 * const score = await evaluateValue(trace);
 * if (score > 0.75) await share(trace);
 * ```
 */
export function evaluateValue(trace: ReadonlyReasoningTrace, options?: CallOptions): Promise<number>;

/** Lets `batches.map(evaluateValues)` work: the index that `map` passes is ignored. */
export function evaluateValues(traces: readonly ReadonlyReasoningTrace[], index: number): Promise<number[]>;
/**
 * Scores many traces. The scores, and the memory afterwards, are the same as after one {@link evaluateValue} after another,
 * but several traces are embedded at a time, on all cores. Later calls of `evaluateValue` wait for the batch.
 *
 * At most 64 traces are in flight and the others are read later, so memory does not grow with the batch. Do not change the array or
 * its traces before the promise settles.
 *
 * @returns the scores, each 0 to 1, in the order of the traces
 * @throws `TypeError` or `RangeError` as {@link evaluateValue}, as a rejection, for the first invalid trace, with a path
 * such as `traces[5].steps[3].tool.name`. Earlier traces are remembered, later ones are not scored.
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

/** Lets `traces.map(explain)` work: the index that `map` passes is ignored. */
export function explain(trace: ReadonlyReasoningTrace, index: number): Promise<ScoreBreakdown>;
/**
 * Scores a trace as {@link evaluateValue} does, and returns the parts of the score.
 *
 * @param trace - the trace; it is read before the call returns
 * @returns the score and the parts that it is computed from
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
   * Cancels the call, which rejects with the signal's `reason` (by default an `AbortError`) and leaves memory and files unchanged. An
   * abort has no effect once the trace is remembered or given to a store, or once `onProgress` was called for the last trace of a
   * batch. One signal may serve any number of calls.
   */
  signal?: AbortSignalLike | null;
}

/** The part of an `AbortSignal` that is used; signals of other libraries work too. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
}

/** Options of a call on many traces or texts. */
export interface BatchOptions extends CallOptions {
  /**
   * Called after each trace or text, in their order. If it throws, the call rejects with that error. With a `signal`, the memory then
   * has no trace of the batch; without one, it has the traces up to this one and up to 63 more. A store keeps the traces that it was
   * given.
   */
  onProgress?: (progress: BatchProgress) => void;
}

/** The progress of a batch. */
export interface BatchProgress {
  /** The number of traces or texts that are done, 1 to `total`. */
  done: number;
  /** The number of traces or texts in the batch. */
  total: number;
}

/** Options of {@link Scorer.explain}. */
export interface ExplainOptions extends CallOptions {
  /**
   * Whether the memory remembers the trace, as with `evaluateValue`. With `false` it stays unchanged.
   *
   * @defaultValue `true`
   */
  remember?: boolean;
  /**
   * A known novelty, such as `dimensions.novelty` of an earlier breakdown. The trace is neither compared nor remembered, and no
   * embedder is needed.
   *
   * @defaultValue the novelty from comparing with the memory
   */
  novelty?: number;
}

/**
 * How traces are compared.
 *
 * - `prefix` compares the embeddings of the first 512 tokens, as the SDK does. Its memory is a {@link VectorCache}.
 * - `lexical` compares the words of the whole trace, and never loads a model. Its memory is a {@link TraceMemory}.
 * - `full` compares the words of the whole trace and the embedding of a digest; without a model novelty is 0.5. Its memory is a
 *   {@link TraceMemory} with `novelty: 'full'`.
 *
 * The page {@link https://github.com/openknowledgepulse/native/blob/main/docs/memory.md | Memory} has the formulas and a comparison.
 */
export type NoveltyMethod = 'prefix' | 'lexical' | 'full';

/** Options of {@link Scorer}. */
export interface ScorerOptions<
  Memory extends VectorCache | TraceMemory | NoveltyStore = VectorCache | TraceMemory | NoveltyStore,
> {
  /**
   * The memory that traces are compared with and added to. It determines the {@link NoveltyMethod}. Embeddings must have 384 dimensions.
   * Scorers may share a memory. A {@link NoveltyStore} can be shared with other processes; when a batch is aborted, it keeps the traces
   * that it was given.
   *
   * @defaultValue a new {@link VectorCache}, for 1,000 traces
   */
  memory?: Memory;
  /**
   * The memory that traces are compared with while a store fails; it must have the store's method. Without a fallback, calls reject
   * with the store's error.
   *
   * The fallback remembers every trace. Each time the store begins to fail, the process emits one `KnowledgePulseWarning`. When the
   * store answers again, it gets the missed traces in batches between calls. At most 10,000 traces wait, in the memory of the process,
   * so call {@link Scorer.flush} before it ends. Beyond that the oldest are dropped with a warning (`ERR_STORE_DROPPED`), and the next
   * `flush` rejects. A trace that the store refuses for good is dropped with a warning.
   */
  fallback?: VectorCache | TraceMemory;
  /**
   * `null` scores without an embedder: novelty is always 0.5, nothing is remembered, and a score takes microseconds. It changes
   * nothing for a memory with `novelty: 'lexical'`.
   *
   * @defaultValue `'default'`, the embedder of the process
   */
  embedder?: 'default' | null;
  /**
   * Profiles of weights by `metadata.task_domain`, added to the SDK's five; a profile of the same name replaces it. Domains without a
   * profile use `default`.
   */
  weights?: Readonly<Record<string, ScoringWeights>>;
}

/**
 * Scores traces with a memory and weights of its own. All scorers of a process share its embedder.
 *
 * The functions {@link evaluateValue}, {@link evaluateValues} and {@link explain} are the methods of {@link defaultScorer}, but can be
 * passed to `map`. A method that is called without its object, as after `const { explain } = scorer`, rejects with
 * `ERR_INVALID_THIS`.
 *
 * @example
 * ```ts
 * const scorer = new Scorer({
 *   memory: await VectorCache.load('memory.safetensors'),
 *   weights: { legal: { complexity: 0.1, novelty: 0.2, toolDiversity: 0.1, outcome: 0.6 } },
 * });
 * const score = await scorer.evaluateValue(trace);
 * await scorer.memory.save('memory.safetensors');
 * ```
 */
export class Scorer<Memory extends VectorCache | TraceMemory | NoveltyStore = VectorCache> {
  /**
   * Makes a scorer. The first call loads the embedder. The constructor waits for a comparison that is running on the memory.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option or weight is unknown or has the wrong type.
   * @throws `RangeError` with the same code if an option is outside its range: a memory whose embeddings do not have 384 dimensions, or
   * weights that are negative, not finite, or do not sum to 1 within 1e-9. The message names the profile and the sum.
   * @throws `Error` with `code` `ERR_MEMORY_OTHER_METHOD` if the cache holds vectors of another method, or the fallback has another
   * method than the store. With the cache of {@link defaultScorer}, which all threads share, the calls reject instead.
   */
  constructor(options?: ScorerOptions<Memory>);

  /** The memory itself, not a copy. */
  get memory(): Memory;

  /** Scores a trace: see {@link evaluateValue}. */
  evaluateValue(trace: ReadonlyReasoningTrace, options?: CallOptions): Promise<number>;

  /**
   * Scores many traces: see {@link evaluateValues}.
   *
   * Without a `signal`, each trace is remembered when it is scored. With one, all are remembered together after the last call of
   * `onProgress`, and none if the call rejects for another reason than an invalid trace.
   */
  evaluateValues(traces: readonly ReadonlyReasoningTrace[], options?: BatchOptions): Promise<number[]>;

  /** Scores a trace and returns the parts of the score: see {@link explain}. */
  explain(trace: ReadonlyReasoningTrace, options?: ExplainOptions): Promise<ScoreBreakdown>;

  /**
   * Sends the traces that the store has missed. Call it before the process ends, because waiting traces do not keep the process alive. It
   * resolves when the store has every trace that was scored before the call; at once if none is missing or there is no store.
   *
   * @throws the error of the store, as a rejection; an `Error` with `code` `ERR_STORE` if that has no code. The traces are
   * kept and sent later, except traces that the store refuses for good.
   * @throws `Error` with `code` `ERR_STORE_DROPPED`, as a rejection, if traces were dropped since the last `flush` because more
   * than 10,000 waited. The store has the others.
   */
  flush(options?: CallOptions): Promise<void>;
}

/** The scorer of {@link evaluateValue}, {@link evaluateValues} and {@link explain}: one per process, shared by all threads. */
export const defaultScorer: Scorer;

/** The model that vectors come from. Vectors of different models cannot be compared. */
export interface VectorModel {
  /** Its name, as in {@link EmbedderStatus.model}. */
  model: string;
  /** The type of its weights: `fp32` or `q8`. */
  dtype: string;
}

/** Options of a call that adds to a {@link NoveltyStore}. */
export interface AddOptions extends CallOptions {
  /**
   * A UUID of the call. A call with an unknown outcome is repeated with the same UUID and entries; a store that recognises the UUID
   * stores them once. A store may ignore it.
   */
  call?: string;
}

/** Options of {@link NoveltyStore.nearest}. */
export interface NearestOptions extends CallOptions {
  /** The novelty method of the vector: see {@link NoveltyEntry.method}. */
  method?: string;
}

/** A trace for a {@link NoveltyStore}. */
export interface NoveltyEntry {
  /** The trace's `id`; null if that is not a string, or is longer than 1,024 bytes of UTF-8. */
  id: string | null;
  /**
   * The embeddings of the trace. With `novelty: 'prefix'` one of 384 numbers, of the first 512 tokens; a store takes several. With `full`
   * one, of the digest. With `lexical` none.
   */
  vectors: readonly Float32Array[];
  /**
   * With `novelty: 'lexical'` and `'full'` the words of the trace, at most 480, in the order of their hashes. Each takes ten bytes,
   * little-endian: its XXH3-64 in eight, and its count in two, whose code
   * {@link https://github.com/openknowledgepulse/native/blob/main/docs/shared-store.md#another-store | Shared store} explains.
   */
  words?: Uint8Array;
  /** The model of the vectors; null with `novelty: 'lexical'`. */
  model: VectorModel | null;
  /**
   * The novelty method of the scorer's memory. A store accepts only the method of its first entry, because vectors of different methods
   * cannot be compared. An entry without a method is always accepted.
   */
  method?: string;
}

/** The stored vector or trace that is most similar to a query. */
export interface StoredNeighbour {
  /** The `id` of its entry. */
  label: string | null;
  /**
   * For vectors the cosine similarity, -1 to 1; for traces the combined similarity, 0 to 1. The scorer refuses a number beyond ±1.001
   * with `ERR_STORE`.
   */
  similarity: number;
  /** For an entry with words: the cosine of the weighted words, 0 to 1. Novelty is computed from these three parts. */
  lexical?: number;
  /** For an entry with words: the weighted share of them that the stored trace contains, 0 to 1. */
  contained?: number;
  /** For an entry with words and a vector: the cosine of the projected vectors, 0 to 1; null without a vector. */
  embedded?: number | null;
}

/**
 * For each vector of an entry, the nearest vector that was stored before the entry. For an entry with words, one element: the most similar
 * trace. An element is null if nothing was stored.
 */
export type NoveltyComparison = Array<StoredNeighbour | null>;

/**
 * A memory outside of this process that a {@link Scorer} compares traces with. `@knowledgepulse/native/postgres` has one on
 * PostgreSQL. {@link LocalStore} wraps a {@link VectorCache} or a {@link TraceMemory}, and is an example for stores of your own.
 * `@knowledgepulse/native/conformance` has the tests that every store should pass.
 *
 * A store rejects with an `Error` whose `code` is `ERR_STORE_UNAVAILABLE`, `ERR_STORE_TIMEOUT`, `ERR_STORE_READ_ONLY`,
 * `ERR_STORE_FULL`, `ERR_STORE_SCHEMA`, `ERR_STORE_OTHER_MODEL`, `ERR_STORE_OTHER_METHOD` or `ERR_STORE`. With a `fallback`, the
 * scorer repeats the call after the first five and after errors without a code of this package. The other codes, and
 * `ERR_INVALID_…`, mean that the trace is refused and not sent again. `ERR_STORE_ALREADY_STORED` means that a repeated `call` is stored
 * but cannot be answered as the first time; it is not sent again either.
 *
 * Every call needs a time limit of the store's own, because the scorer waits for ever for a call that never settles.
 */
export interface NoveltyStore {
  /**
   * The novelty method of scorers that use the store.
   *
   * @defaultValue `'prefix'`, for a store of vectors
   */
  readonly novelty?: NoveltyMethod;
  /**
   * Compares an entry with every entry stored before it, then stores it, in one atomic step. If two processes submit the same trace at
   * once, one of them finds the other's.
   */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;
  /**
   * Does {@link NoveltyStore.compareAndAdd} for one entry after another, for all or none. The scorer passes up to 64 entries, and makes
   * one call at a time.
   */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;
  /** Returns the `count` stored vectors that are most similar to `vector`, the most similar first. Stores nothing. */
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;
  /**
   * Returns the `count` stored traces that are most similar to an entry with words, the most similar first. Stores nothing. Required of
   * a store with `lexical` or `full`.
   */
  nearestTraces?(entry: NoveltyEntry, count: number, options?: CallOptions): Promise<StoredNeighbour[]>;
  /** Returns the number of vectors or traces that a new one would be compared with. */
  size(options?: CallOptions): Promise<number>;
}

/**
 * A {@link VectorCache} or a {@link TraceMemory} with the interface of a {@link NoveltyStore}. A cache may have other dimensions than an
 * embedding, and takes on the model and the method of the first entry.
 *
 * Calls run in their order, away from the event loop, and each sees the effects of all earlier ones. The memory is locked during
 * a call, and its own methods wait for that: use the store's methods instead.
 *
 * Its calls reject with `ERR_INVALID_ENTRY` or `ERR_INVALID_VECTOR` if an argument is malformed, and with `ERR_STORE_OTHER_MODEL` or
 * `ERR_STORE_OTHER_METHOD` if an entry has another model or method than the memory.
 */
export class LocalStore<Memory extends VectorCache | TraceMemory = VectorCache> implements NoveltyStore {
  /**
   * @param memory - the memory to store in; by default a new cache for 1,000 vectors
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if it is neither a `VectorCache` nor a `TraceMemory`.
   */
  constructor(memory?: Memory);
  /** The memory itself, not a copy. */
  get memory(): Memory;
  /** `prefix`, or the method of the `TraceMemory`. */
  get novelty(): NoveltyMethod;
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;
  nearestTraces(entry: NoveltyEntry, count: number, options?: CallOptions): Promise<StoredNeighbour[]>;
  size(options?: CallOptions): Promise<number>;
}

/** A number for each dimension of a score. */
export type ScoreDimensions = Record<keyof ScoringWeights, number>;

/**
 * A score and its parts. `contributions` are `dimensions` times `weights`; `composite` is their sum in the order of the fields;
 * `overrides` change it to `score`. All of these hold to the last bit.
 */
export interface ScoreBreakdown {
  /** The score, 0 to 1. */
  score: number;
  /**
   * 0 to 1 each; novelty 0 to 2, because a similarity can be negative. Rounding can take novelty beyond that, by 1e-6 or with a store
   * by 0.001, so a duplicate can be slightly below 0.
   */
  dimensions: ScoreDimensions;
  /** The name of the profile that the weights belong to: a task domain, or `default`. */
  profile: string;
  weights: ScoringWeights;
  contributions: ScoreDimensions;
  composite: number;
  /** The rules that applied, in their order. The `after` of the last one is the score. */
  overrides: ScoreOverride[];
  /**
   * The source of the novelty. `cache` and `store`: a comparison with a memory of this process or with a store. `empty-cache`,
   * `empty-store` and `no-embedder`: it is 0.5. `given`: the option `novelty`.
   */
  noveltyBasis: 'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder' | 'given';
  /** The most similar remembered trace; null without a comparison or with an empty memory. */
  nearest: NearestTrace | null;
  /** The number of embedded tokens, special tokens included; null if nothing was embedded. */
  tokens: number | null;
  /** Whether the text was longer than the compared part; null if nothing was compared. */
  truncated: boolean | null;
}

/** A rule that changed a score. */
export interface ScoreOverride {
  /**
   * - `single-thought`: a trace whose only step is a thought scores 0.1.
   * - `recovery-bonus`: more than two error recoveries in a successful trace add 0.1.
   * - `single-tool-penalty`: a trace that uses one tool only loses 0.1.
   * - `clamp`: the score was outside [0, 1], which a novelty above 1 and rounding can cause.
   */
  rule: 'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp';
  before: number;
  after: number;
}

/** A remembered trace. */
export interface NearestTrace {
  /** Its `id`; null if that was not a string, or was longer than 1,024 bytes of UTF-8. */
  label: string | null;
  /**
   * With `novelty: 'prefix'` the cosine similarity, -1 to 1 within 1e-6, with a store within 0.001. Otherwise the larger of
   * 0.7 `lexical` + 0.3 `embedded` (`lexical` alone without a model) and the fourth power of `contained`, 0 to 1. Novelty is 1 minus
   * the similarity.
   */
  similarity: number;
  /** The cosine of the weighted words, 0 to 1; null with `novelty: 'prefix'`. */
  lexical: number | null;
  /** The weighted share of the scored trace's words that it contains, 0 to 1; null with `novelty: 'prefix'`. */
  contained: number | null;
  /** The cosine of the embedded digests, 0 to 1; null unless with `novelty: 'full'`. */
  embedded: number | null;
  /**
   * The heaviest words that both traces have, at most ten, the heaviest first. The weights of all shared words add up to `lexical`. Null
   * with `novelty: 'prefix'`, and with a store, which has only hashes of words.
   */
  sharedWords: ExplainedWord[] | null;
  /**
   * The heaviest words of the scored trace that this one lacks, at most ten. The weights of all such words add up to 1 minus
   * `contained`. Null where `sharedWords` is null.
   */
  newWords: ExplainedWord[] | null;
}

/** A word of a scored trace. */
export interface ExplainedWord {
  /** The compared form of the word: normalised, in lower case, at most 64 characters. */
  word: string;
  /** Its weight: see {@link NearestTrace.sharedWords} and {@link NearestTrace.newWords}. */
  weight: number;
  /** Its document frequency: the number of remembered traces that contain it. */
  traces: number;
}

/**
 * Embeds texts as the scorer does, to add them to a {@link VectorCache} or to search it. All instances of a process share one model.
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
   * Embeds the first 512 tokens of a text.
   *
   * @returns 384 numbers whose squares add up to 1
   * @throws `TypeError` with `code` `ERR_INVALID_TEXT`, as a rejection, if it is not a string.
   * @throws `Error` with an {@link EmbedderErrorCode}, as a rejection, if the embedder is missing or does not work.
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
   * The maximum number of vectors or traces: a safe integer; 0 keeps none.
   *
   * @defaultValue 1000
   */
  maxElements?: number;
  /**
   * The length of every vector: a safe integer of at least 1. Ignored by a {@link TraceMemory} with `lexical`.
   *
   * @defaultValue 384
   */
  dimensions?: number;
  /**
   * The time to live of a vector or trace in milliseconds, by a monotonic clock: 0 or more.
   *
   * @defaultValue `Infinity`: never
   */
  ttlMs?: number;
}

/** A vector of a {@link VectorCache} that is similar to a query. */
export interface Neighbour {
  /** The label that it was added with, if any. */
  label: string | undefined;
  /** The cosine similarity, -1 to 1 within 1e-6. */
  similarity: number;
  /** Its position in the cache: the number of older vectors. */
  index: number;
}

/** A vector that the iterator of a {@link VectorCache} yields. */
export interface VectorCacheEntry {
  /** A copy in single precision. */
  vector: Float32Array;
  /** The label that it was added with, if any. */
  label: string | undefined;
  /** The number of older vectors when the iterator was made. */
  index: number;
}

/** Options of {@link VectorCache.load}. */
export interface VectorCacheLoadOptions extends CallOptions {
  /**
   * The maximum number of vectors: a safe integer. The newest are kept; 0 keeps none.
   *
   * @defaultValue the saved value
   */
  maxElements?: number;
  /**
   * The time to live of a vector in milliseconds since it was added: 0 or more, `Infinity` for ever.
   *
   * @defaultValue the saved value
   */
  ttlMs?: number;
  /**
   * `check` loads the embedder and refuses a file with vectors of another model. It accepts a file that names no model, and every file
   * if there is no embedder. `any` does not check.
   *
   * @defaultValue `check`
   */
  model?: 'check' | 'any';
}

/** The members that {@link VectorCache} and {@link TraceMemory} share. */
declare abstract class BoundedMemory {
  /** The number of vectors or traces that have not expired. */
  get size(): number;

  /** The maximum number of vectors or traces. */
  get maxElements(): number;

  /** The time to live of a vector or trace in milliseconds, to a nanosecond; `Infinity` means for ever. */
  get ttlMs(): number;

  /**
   * The model of the vectors, if a scorer or a {@link LocalStore} added any. A scorer refuses a memory with vectors of another model,
   * because they cannot be compared.
   */
  get model(): VectorModel | null;

  /** Frees the memory of expired vectors or traces, which are ignored in any case. Does nothing without `ttlMs`. */
  evictExpired(): void;

  /** Removes every vector or trace, and forgets the model and the method of vectors. */
  clear(): void;

  /**
   * Writes the memory to a file in the safetensors format: vectors or traces, labels, model, method and bounds as they are at the call. Writing
   * happens away from the event loop. Calls for one file run in their order.
   *
   * The file is replaced in one step after the new one is on the disk, so there is always a complete one. Symbolic links are
   * followed. A replaced file keeps its permissions; a new one follows the `umask`. A process that is killed can leave a file
   * `.knowledgepulse-….tmp`, which a later call removes.
   *
   * @param path - the file; relative to the working directory at the call
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, as a rejection, for a wrong path.
   * @throws `Error` with `code` `ERR_MEMORY_IO`, as a rejection, if the system refuses to write it: the disk is full, the
   * directory is missing or read-only. The old file is unchanged.
   */
  save(path: string, options?: CallOptions): Promise<void>;
}

/**
 * A bounded first-in-first-out memory of vectors. Queries compare with every vector, so their results are exact. It can be saved to a
 * file and loaded again.
 *
 * A scorer compares with it away from the event loop. Members that read or change the vectors (`add`, `size`, `nearest`, iteration)
 * wait for a running comparison of one trace: about 10 ms with 200,000 vectors.
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
export class VectorCache extends BoundedMemory implements Iterable<VectorCacheEntry> {
  /**
   * Makes an empty cache.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION` for the wrong type of an option, or a value outside its range.
   */
  constructor(options?: VectorCacheOptions);

  /**
   * Loads a file that {@link VectorCache.save} wrote: vectors, labels, model, method and bounds. The time to live goes on by the wall
   * clock while no process runs; if the clock was set back, vectors count as just added.
   *
   * The file is read and checked away from the event loop. It takes no more memory than a cache with as many vectors.
   *
   * @param path - the file; relative to the working directory at the call
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, as a rejection, for a wrong path or option.
   * @throws `Error` with `code` `ERR_MEMORY_NOT_FOUND`, as a rejection, if there is no such file.
   * @throws `Error` with `code` `ERR_MEMORY_DAMAGED`, as a rejection, if the file is cut off, changed or no saved cache. The message
   * has the reason.
   * @throws `Error` with `code` `ERR_MEMORY_OTHER_METHOD`, as a rejection, if the file holds a {@link TraceMemory}.
   * @throws `Error` with `code` `ERR_MEMORY_OTHER_MODEL`, as a rejection, if its vectors are of another model than the embedder: see {@link VectorCacheLoadOptions.model}.
   * @throws `Error` with `code` `ERR_MEMORY_IO`, as a rejection, if the system refuses to read it.
   * @throws `RangeError` with `code` `ERR_OUT_OF_MEMORY`, as a rejection, if there is not enough memory.
   */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<VectorCache>;

  /**
   * Adds a copy of `vector`, and evicts the oldest vector if the cache is full.
   *
   * @param vector - finite numbers, as many as the cache has dimensions
   * @param label - the name by which {@link VectorCache.nearest} returns the vector: at most 1,024 bytes of UTF-8. Lone
   * surrogates become U+FFFD.
   * @throws `RangeError` with `code` `ERR_INVALID_VECTOR` if it has another length or a component that is not
   * finite, as in `Expected 384 dimensions, got 3`. Nothing is added then.
   * @throws `TypeError` with the same code if it is not an array of numbers.
   * @throws `TypeError` with `code` `ERR_INVALID_LABEL` if the label is not a string, `RangeError` if it is too long.
   * @throws `RangeError` with `code` `ERR_OUT_OF_MEMORY` if there is not enough memory for it.
   */
  add(vector: ArrayLike<number>, label?: string): void;

  /**
   * Adds many vectors in their order, all or none: if one vector or label is refused, nothing is added.
   *
   * @param labels - a label for each vector, or `undefined` for a vector without one
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}, with the place in the message: `vectors[5][3]
   * must be a finite number, got NaN` or `vectors[5]: Expected 384 dimensions, got 3`.
   */
  addBatch(vectors: ArrayLike<ArrayLike<number>>, labels?: ArrayLike<string | undefined>): void;

  /**
   * Returns the largest cosine similarity of `query` to a vector in the cache, -1 to 1 within 1e-6; 0 if the cache is empty. A zero
   * vector has similarity 0 to every vector.
   *
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}.
   */
  maxCosineSimilarity(query: ArrayLike<number>): number;

  /**
   * Returns {@link VectorCache.maxCosineSimilarity} of each query, in their order.
   *
   * @throws `RangeError` or `TypeError` as {@link VectorCache.addBatch}, with `queries` for `vectors`.
   */
  maxCosineSimilarities(queries: ArrayLike<ArrayLike<number>>): number[];

  /**
   * Returns the `k` vectors that are most similar to `query`, or all if the cache holds fewer: the most similar first, of equal ones the
   * older. The similarity of the first is {@link VectorCache.maxCosineSimilarity}.
   *
   * @param k - a safe integer of at least 0; 1 by default
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}; with `code` `ERR_INVALID_OPTION` for a wrong `k`.
   */
  nearest(query: ArrayLike<number>, k?: number): Neighbour[];

  /**
   * Iterates over the vectors that the cache holds when the iterator is made, oldest first. Vectors that are evicted before
   * their turn are left out.
   *
   * A vector is yielded as it was added, in single precision. If its largest component is not between 2^-40 and 2^40, it is multiplied
   * by a power of two, which changes no similarity.
   */
  [Symbol.iterator](): IterableIterator<VectorCacheEntry>;

  /** The length of every vector. */
  get dimensions(): number;

  /**
   * The novelty method of the vectors: `prefix` if a scorer added them, or that of the entries of a {@link LocalStore}. A scorer refuses
   * a cache with vectors of another method. `undefined` while all vectors were added with {@link VectorCache.add}; these are always
   * compared.
   */
  get method(): string | undefined;
}

/** Options of {@link TraceMemory}. */
export interface TraceMemoryOptions extends VectorCacheOptions {
  /**
   * The novelty method: `lexical` compares words and needs no model, `full` also compares embeddings of {@link TraceMemory.digest}.
   *
   * @defaultValue `lexical`
   */
  novelty?: 'lexical' | 'full';
}

/** Options of a call on a {@link TraceMemory}. */
export interface TraceOptions extends CallOptions {
  /**
   * The embedding of the trace's {@link TraceMemory.digest}. Required with `novelty: 'full'`, otherwise ignored.
   */
  vector?: ArrayLike<number>;
}

/** A remembered trace that is similar to another one. */
export interface SimilarTrace {
  /** The `id` that it was added with, if any. */
  label: string | undefined;
  /** Its position in the memory: the number of older traces. */
  index: number;
  /** The similarity, 0 to 1: the larger of `contained`⁴ and `lexical`, or of `contained`⁴ and 0.7 `lexical` + 0.3 `embedded`. */
  similarity: number;
  /** The cosine of the two traces' weighted words, 0 to 1. */
  lexical: number;
  /** The weighted share of the trace's words that the remembered one contains, 0 to 1. */
  contained: number;
  /** The cosine of the two projected embeddings, 0 to 1; only with `novelty: 'full'`. */
  embedded: number | undefined;
}

/** The result of comparing a trace with a {@link TraceMemory}. */
export interface TraceComparison {
  /** 1 minus the similarity of the nearest trace: 0 for a duplicate; 0.5 if the memory is empty. */
  novelty: number;
  /** The most similar trace, of equal ones the oldest; null if the memory is empty. */
  nearest: SimilarTrace | null;
}

/** A trace that the iterator of a {@link TraceMemory} yields. */
export interface TraceMemoryEntry {
  /** The `id` that it was added with, if any. */
  label: string | undefined;
  /** The number of older traces when the iterator was made. */
  index: number;
  /** The count of each word, by the word's XXH3-64 in 16 hexadecimal digits. At most 480 words. */
  words: Map<string, number>;
  /** A copy of the embedding in single precision; only with `novelty: 'full'`. */
  vector: Float32Array | undefined;
}

/**
 * A bounded first-in-first-out memory that compares whole traces by their words, and with `novelty: 'full'` also by an embedding. Results
 * are exact and do not depend on the order of the traces. {@link https://github.com/openknowledgepulse/native/blob/main/docs/memory.md | Memory}
 * has the formula.
 *
 * Traces are read at the call and compared away from the event loop, in the order of the calls. The memory keeps hashes of words, no
 * text: about 4 KB for a real trace, 6 KB with an embedding.
 *
 * @example
 * ```ts
 * const memory = new TraceMemory({ maxElements: 10_000 });
 * await memory.add(trace);
 * const { novelty, nearest } = await memory.compareAndAdd(another);
 * await memory.save('traces.safetensors');
 * ```
 */
export class TraceMemory extends BoundedMemory implements Iterable<TraceMemoryEntry> {
  /**
   * Makes an empty memory.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION` for the wrong type of an option, or a value outside its range.
   */
  constructor(options?: TraceMemoryOptions);

  /**
   * Loads a file that {@link TraceMemory.save} wrote, with the options and errors of {@link VectorCache.load}. A file of a
   * {@link VectorCache} is refused with `ERR_MEMORY_OTHER_METHOD`.
   */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<TraceMemory>;

  /**
   * Returns the memory that has this {@link TraceMemory.handle} in another thread of the process, not a copy.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION` if it is no handle, or if no thread holds the memory any more. In
   * WebAssembly a thread finds only its own memories.
   * @example
   * ```ts
   * new Worker('./worker.js', { workerData: memory.handle });
   * const memory = TraceMemory.fromHandle(workerData); // in worker.js
   * ```
   */
  static fromHandle(handle: number): TraceMemory;

  /**
   * Returns the text to embed for a memory with `novelty: 'full'`: the objective and the contents of all steps, each cut to the same
   * number of characters, so that together they have at most 1,900.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_TRACE`, naming the path, if the trace is malformed.
   */
  static digest(trace: ReadonlyReasoningTrace): string;

  /**
   * Adds a trace under its `id` without comparing it, and evicts the oldest trace if the memory is full.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if the trace is malformed.
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_VECTOR`, as a rejection, if a required embedding is missing, has
   * another length, or a component that is not finite.
   * @throws the reason of the signal, as a rejection, if it aborts before the trace is remembered.
   */
  add(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<void>;

  /** Compares a trace without adding it. Rejects as {@link TraceMemory.add}. */
  compare(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<TraceComparison>;

  /** Compares a trace, then adds it, in one atomic step. Rejects as {@link TraceMemory.add}. */
  compareAndAdd(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<TraceComparison>;

  /**
   * Returns the `k` most similar traces, or all if the memory holds fewer: the most similar first, of equal ones the older. Rejects as {@link TraceMemory.add}, and with `ERR_INVALID_OPTION` for a wrong `k`.
   *
   * @param k - a safe integer of at least 0; 1 by default
   */
  nearest(trace: ReadonlyReasoningTrace, k?: number, options?: TraceOptions): Promise<SimilarTrace[]>;

  /**
   * Iterates over the traces that the memory holds when the iterator is made, oldest first. Traces that are evicted before
   * their turn are left out.
   */
  [Symbol.iterator](): IterableIterator<TraceMemoryEntry>;

  /** The novelty method. */
  get novelty(): 'lexical' | 'full';

  /**
   * A number by which {@link TraceMemory.fromHandle} finds the memory in another thread, such as a worker. The number alone does not keep
   * the memory alive.
   */
  get handle(): number;

  /** The memory that the traces take without their labels, in bytes. */
  get bytes(): number;
}

/**
 * The memory of {@link evaluateValue} itself, not a copy. All threads of the process share it.
 *
 * @internal
 */
export function _getLocalCache(): VectorCache;

/** A type of secret or personal data, and how often it was replaced. */
export interface Redaction {
  /**
   * The type, as it stands in `[REDACTED:<type>]`: `connection_string`, `bearer_token`, `api_key`, `password`, `email`, `phone`, `ip` or
   * `filepath`; with `strict` also `private_key`, `jwt`, `webhook_url`, `card_number`, `iban` or
   * `social_security_number`.
   */
  type: string;
  /** At least 1. */
  count: number;
}

/** The result of {@link cleanPii}. */
export interface CleanedText {
  /** The text, in which each match is replaced by `[REDACTED:<type>]`. */
  cleaned: string;
  /** The types that were replaced, in the order of their first match. */
  redactions: Redaction[];
}

/** The result of {@link cleanTrace}. */
export interface CleanedTrace {
  /** A copy of the trace with clean texts. */
  trace: ReasoningTrace;
  /** The types that were replaced in all texts together. */
  redactions: Redaction[];
}

/** Options of {@link cleanPii}, {@link cleanPiiAsync} and {@link cleanTrace}. */
export interface CleanOptions {
  /**
   * The privacy level: `aggregated` and `federated` replace secrets and identifiers, `private` only secrets. E-mail
   * addresses, telephone numbers, IP addresses and home directories are identifiers.
   *
   * @defaultValue `'aggregated'`
   */
  level?: PrivacyLevel;
  /**
   * Whether to find more than the SDK: keys of some 250 providers, private keys, JSON Web Tokens, webhooks, values of names
   * like `DB_PASS`, cookies, passwords in URLs and in arguments of commands, numbers of cards, bank accounts and social
   * security, telephone numbers in groups, IPv6 addresses, and more forms of home directories. The page
   * {@link https://github.com/openknowledgepulse/native/blob/main/docs/cleaning.md | Cleaning} lists them.
   *
   * @defaultValue `false`
   */
  strict?: boolean;
}

/**
 * Replaces secrets and personal data in a text. Without `strict`, the result equals that of the SDK's `cleanPii`, to the
 * character. The time grows linearly with any text: a megabyte takes some milliseconds. For larger texts,
 * {@link cleanPiiAsync} leaves the event loop free.
 *
 * Patterns cannot know every secret: a text without matches is not necessarily safe to share.
 *
 * @param text - the text; lone surrogates stay as they are
 * @param level - the level, as for the SDK, or options
 * @returns the clean text and the replacements, counted by type
 * @throws `TypeError` with `code` `ERR_INVALID_TEXT` if the text is not a string.
 * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if the options are not an object, if one of them has the wrong type, if the
 * call has no such option, or if there is a third argument; `RangeError` with the same code if there is no such level.
 * @example
 * ```ts
 * cleanPii('mail bob@example.com'); // { cleaned: 'mail [REDACTED:email]', redactions: [{ type: 'email', count: 1 }] }
 * ```
 */
export function cleanPii(text: string, level?: PrivacyLevel | CleanOptions): CleanedText;

/**
 * Does the same as {@link cleanPii} on another thread. The event loop waits only while the text is copied, before the call
 * returns.
 *
 * @throws as {@link cleanPii}, as a rejection; or the signal's reason if that aborts before the text is clean
 */
export function cleanPiiAsync(
  text: string,
  level?: PrivacyLevel | (CleanOptions & CallOptions),
): Promise<CleanedText>;

/**
 * Copies a trace and replaces secrets and personal data in all of its texts, as {@link cleanPii} does in one: the objective,
 * the steps with their inputs and summaries, the outcome, the knowledge graph's delta, the metadata, and every other field,
 * including the names of properties. These strings stay as they are: `@context`, `@type`, `id`, `source_skill`; of the
 * metadata `created_at`, `task_domain`, `visibility` and `privacy_level`; the `type` of steps and entities, and
 * `valid_from`.
 *
 * With `strict`, strings and numbers are also replaced if the name of a property that they are under says that they are secrets, as in
 * `{ password: ['…'] }` and `{ name: 'X-Api-Key', value: '…' }`.
 *
 * The level comes from the options. The trace's `metadata.privacy_level` does not change it: a trace that is labelled
 * `private` loses its identifiers too, unless `level` is `private`.
 *
 * @param trace - the trace; it is copied before the call returns, and never changed. It need not be one that can be scored.
 * @returns the copy, which is plain data, and the replacements, counted by type
 * @throws `TypeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if the trace is not an object, if it contains itself,
 * if a getter throws, or if it holds a value that JSON lacks, such as a function, a bigint, a `Map` or a typed array. The
 * message names the path.
 * @throws `RangeError` with the same code, as a rejection, if the trace is nested deeper than 256 levels or has more than ten million
 * values.
 * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, as a rejection, as {@link cleanPii}.
 * @example
 * ```ts
 * const { trace: clean, redactions } = await cleanTrace(trace, { strict: true });
 * ```
 */
export function cleanTrace(
  trace: ReadonlyReasoningTrace,
  options?: CleanOptions & CallOptions,
): Promise<CleanedTrace>;

/** A number of traces, or a percentage of them that is rounded up: `'10%'`. */
export type TraceCount = number | `${number}%`;

/** Options of {@link select}. */
export interface SelectOptions extends CallOptions {
  /** How many traces are chosen; fewer if there are fewer that are fit to be shared. */
  count: TraceCount;
  /**
   * The novelty method: see {@link TraceMemoryOptions.novelty}. `full` needs a model.
   *
   * @defaultValue `lexical`
   */
  novelty?: 'lexical' | 'full';
  /**
   * The traces that are shared already: the set complements them. The memory must compare by the same `novelty`, and is not
   * changed.
   */
  known?: TraceMemory;
  /** How much of `count` is kept for failures of tasks that no trace has solved. They come last; where they are too few, others follow. */
  quota?: { failures?: TraceCount };
  /** Called now and then while traces are compared, which takes most of the time. If it throws, the call rejects with that. */
  onProgress?: (progress: BatchProgress) => void;
}

/** A trace of {@link select}. */
export interface Candidate {
  /** Its index among the traces. */
  index: number;
  /** Its `id`, if it has one. */
  id: string | undefined;
}

/** A trace of {@link select} that is similar to another one. */
export interface SimilarCandidate extends Candidate {
  /** 0 to 1. */
  similarity: number;
}

/** A trace that {@link select} has chosen. */
export interface ChosenTrace extends Candidate {
  /** 1 for the most valuable trace. */
  rank: number;
  /** Why it was chosen: it covers others, or it is a failure for which a quota was kept. */
  reason: 'coverage' | 'failure';
  /** How much the set gained with it. */
  gain: number;
  /** The coverage by the set up to this trace, as a part of the coverage by all traces, 0 to 1. */
  covered: number;
  /** For how many traces it stands that were not chosen. */
  standsFor: number;
  /** These, the most similar first, at most 16. */
  similar: SimilarCandidate[];
  /** The most similar trace that was not chosen, even if another trace stands for it; null if no trace is similar. */
  nearestLeft: SimilarCandidate | null;
}

/** A trace that {@link select} has not chosen. */
export interface LeftTrace extends Candidate {
  /**
   * The chosen trace that stands for it; null if no chosen trace is among its 64 nearest, or if a known trace stands for it.
   */
  chosen: SimilarCandidate | null;
  /** The trace of `known` that stands for it, by its index in the memory. */
  known: { index: number; similarity: number } | null;
  /** Why nobody can learn from it, so that it is never chosen; null if it can be. */
  unfit: 'no-agent-step' | 'one-step' | 'no-objective' | null;
}

/** The result of {@link select}. */
export interface Selection {
  /** The chosen traces, the most valuable first. A smaller `count` gives the beginning of the list. */
  chosen: ChosenTrace[];
  /** The other traces, in their order. Of more than 100,000 traces a uniform sample is compared, and `left` has its traces alone. */
  left: LeftTrace[];
  /** A sentence that says how they were chosen, and why they may be fewer than `count`. */
  explanation: string;
  /** The coverage by `known` alone, as a part of the coverage by all traces, 0 to 1. */
  coveredBefore: number;
}

/**
 * Chooses the traces that are worth sharing: not the highest scores, but a set that stands for all others, successes first.
 * The same traces give the same set; of equally valuable traces the earlier is chosen.
 *
 * Nobody knows how a trace ended whose `metadata.imported.known.success` is false, as `toTraces` writes it.
 *
 * @param traces - the traces; they are read some at a time, so do not change them before the call settles
 * @returns the chosen traces, and for each other trace the one that stands for it
 * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_TRACE`, as a rejection, as {@link evaluateValues}.
 * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, as a rejection.
 * @throws with `novelty: 'full'` also as {@link Embedder.embed}, as a rejection
 * @example
 * ```ts
 * const { chosen } = await select(traces, { count: 50 });
 * const shared = chosen.map(({ index }) => traces[index]);
 * ```
 */
export function select(traces: readonly ReadonlyReasoningTrace[], options: SelectOptions): Promise<Selection>;

/** Options of {@link configureEmbedder}. */
export interface EmbedderOptions {
  /**
   * The directory of the model. It has `model.safetensors` for the built-in engine, or `model.onnx` (or `onnx/model.onnx`) for ONNX
   * Runtime, and `tokenizer.json`, `tokenizer_config.json`, `config.json`. If `1_Pooling/config.json` names another pooling than the mean
   * of the tokens, the model is refused (`ERR_MODEL_UNSUPPORTED`).
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_MODEL_DIR`, then the package
   * `@knowledgepulse/all-minilm-l6-v2` or `@knowledgepulse/all-minilm-l6-v2-q8`
   */
  modelDirectory?: string;
  /**
   * Selects an installed model package: `fp32` has the SDK's numbers, `q8` is faster and a quarter of the size.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_DTYPE`, then `fp32` if it is installed, else `q8`
   */
  dtype?: 'fp32' | 'q8';
  /**
   * The model in memory instead of a directory, for programs that are one file. The built-in engine computes it. The bytes are copied.
   */
  model?: {
    /** `model.safetensors`, of either model package. */
    weights: Uint8Array;
    /** `tokenizer.json`. */
    tokenizer: Uint8Array;
  };
  /**
   * The engine that computes embeddings. `builtin` reads `model.safetensors`, `onnxruntime` reads `model.onnx`. `auto` takes the built-in
   * engine, but ONNX Runtime for a model with `model.onnx` alone, and on arm64 where the platform's package carries it.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_ENGINE`, then `auto`
   */
  engine?: 'auto' | 'builtin' | 'onnxruntime';
  /**
   * The library of the engine `onnxruntime`: ONNX Runtime 1.24.1 or newer. It does not select the engine.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_ONNXRUNTIME`, then the library in the platform's
   * package, then that of the package `onnxruntime-node`
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
 * Configures the embedder of the process: its model, engine and threads. Call it before the first {@link evaluateValue} or
 * {@link embedderStatus}, which load the embedder. A {@link Scorer} with `embedder: null` or `novelty: 'lexical'` loads none.
 *
 * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION` for the wrong type of an option, or a value outside its range.
 * @throws `Error` with `code` `ERR_ALREADY_CONFIGURED` if the embedder has been configured or loaded already.
 * @example
 * ```ts
 * configureEmbedder({ dtype: 'q8', threads: 1 });
 * ```
 */
export function configureEmbedder(options: EmbedderOptions): void;

/** The state of the embedder. Unknown fields are null. */
export interface EmbedderStatus {
  /** Whether the embedder works. If not, novelty is 0.5. */
  available: boolean;
  /** Why it is not available; null if it is. */
  code: EmbedderErrorCode | null;
  /** The reason as a sentence: the file, the problem, and what to do. */
  reason: string | null;
  modelDirectory: string | null;
  /** The name of the model, from its configuration; `sha256:` and its checksum if it has no name. */
  model: string | null;
  /**
   * SHA-256 of the weights' file in hexadecimal: the value in the model's manifest, which `kp-score doctor` verifies, or without a manifest
   * the computed one.
   */
  modelSha256: string | null;
  /** The type that the weights are stored in. */
  dtype: 'fp32' | 'q8' | null;
  /** The length of an embedding: 384. */
  dimensions: number | null;
  /** The engine that computes embeddings; null without a model. */
  engine: 'builtin' | 'onnxruntime' | null;
  /** The instructions of the built-in engine; null for ONNX Runtime. `simd128` is WebAssembly. */
  kernel:
    | 'avx512-vnni'
    | 'avx512'
    | 'avx-vnni'
    | 'avx2'
    | 'neon-i8mm'
    | 'neon-dot'
    | 'neon'
    | 'simd128'
    | 'portable'
    | null;
  /** The ONNX Runtime library, if that is the engine. */
  runtimePath: string | null;
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
  /** The system refuses to read a model file. */
  | 'ERR_MODEL_UNREADABLE'
  /** The engine cannot compute the model. */
  | 'ERR_MODEL_UNSUPPORTED'
  /** The engine is ONNX Runtime, and there is no library. */
  | 'ERR_RUNTIME_NOT_FOUND'
  /** The system refuses to read the library. */
  | 'ERR_RUNTIME_UNREADABLE'
  /** The library is no ONNX Runtime for this platform. */
  | 'ERR_RUNTIME_UNUSABLE'
  /** The library is older than 1.24.1. */
  | 'ERR_RUNTIME_TOO_OLD'
  /** `tokenizer.json` is malformed or describes another kind of tokenizer. */
  | 'ERR_TOKENIZER'
  /** The engine failed. */
  | 'ERR_INFERENCE'
  /** `KNOWLEDGEPULSE_KERNEL` names instructions that do not exist or that the processor lacks. */
  | 'ERR_INVALID_OPTION'
  /** There is no memory to load the model. */
  | 'ERR_OUT_OF_MEMORY'
  /** A bug in this package. */
  | 'ERR_INTERNAL';

/**
 * The `code` of every error of this package, and of every problem that `kp-score doctor` reports. The page
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/errors.md | Errors} explains each of them.
 */
export type ErrorCode =
  | EmbedderErrorCode
  // Arguments. ERR_INVALID_OPTION is above.
  | 'ERR_INVALID_THIS'
  | 'ERR_INVALID_TRACE'
  | 'ERR_INVALID_VECTOR'
  | 'ERR_INVALID_LABEL'
  | 'ERR_INVALID_TEXT'
  | 'ERR_INVALID_INPUT'
  | 'ERR_INVALID_RECORD'
  | 'ERR_INVALID_ENTRY'
  | 'ERR_ALREADY_CONFIGURED'
  // Memories and their files. ERR_OUT_OF_MEMORY is above.
  | 'ERR_MEMORY_NOT_FOUND'
  | 'ERR_MEMORY_DAMAGED'
  | 'ERR_MEMORY_OTHER_MODEL'
  | 'ERR_MEMORY_OTHER_METHOD'
  | 'ERR_MEMORY_IO'
  // Stores.
  | 'ERR_STORE_UNAVAILABLE'
  | 'ERR_STORE_TIMEOUT'
  | 'ERR_STORE_READ_ONLY'
  | 'ERR_STORE_ALREADY_STORED'
  | 'ERR_STORE_DROPPED'
  | 'ERR_STORE_FULL'
  | 'ERR_STORE_SCHEMA'
  | 'ERR_STORE_OTHER_MODEL'
  | 'ERR_STORE_OTHER_METHOD'
  | 'ERR_STORE_OTHER_LIMITS'
  | 'ERR_STORE'
  // The package. ERR_INTERNAL is above.
  | 'ERR_ADDON_LOAD'
  // The doctor alone.
  | 'ERR_VERSION_MISMATCH'
  | 'ERR_EMBEDDING_WRONG'
  | 'ERR_CRASHED'
  | 'ERR_TIMEOUT'
  | 'ERR_NO_PROCESS';

/**
 * Loads the embedder if necessary, and returns its state. Never rejects.
 *
 * @example
 * ```ts
 * const { available, reason } = await embedderStatus();
 * if (!available) console.warn(`Novelty is 0.5: ${reason}`);
 * ```
 */
export function embedderStatus(): Promise<EmbedderStatus>;

// biome-ignore lint/complexity/noUselessEmptyExport: without it, a file of declarations exports BoundedMemory too.
export {};
