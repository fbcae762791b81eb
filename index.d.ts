/**
 * Scores KnowledgePulse reasoning traces natively. It has the functions of `@knowledgepulse/sdk`, scorers with a memory and weights
 * of their own, and what is needed to see and to set where the embedder comes from.
 *
 * @packageDocumentation
 */

/**
 * What an agent did for one task, step by step. The scorer reads only `task.objective`, `steps[].type`,
 * `steps[].content`, `steps[].tool.name`, `metadata.success`, `metadata.task_domain` and
 * `outcome.confidence`, and remembers the trace by its `id`. Everything else costs nothing, however large it is.
 */
export interface ReasoningTrace {
  /** The JSON-LD context. The second one is found in older documents. */
  '@context': 'https://openknowledgepulse.org/schema/v1' | 'https://knowledgepulse.dev/schema/v1';
  '@type': 'ReasoningTrace';
  /** `kp:trace:<uuid>` */
  id: string;
  /** `kp:skill:<name>:<version>` */
  source_skill?: string;
  metadata: KnowledgeUnitMeta;
  /** The task. */
  task: {
    /** What the agent was asked to do: the first part of the text that is embedded. */
    objective: string;
    input_schema?: Record<string, unknown>;
  };
  /** What the agent did, in order. May be empty. */
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
 * A {@link ReasoningTrace} that cannot be changed, such as a frozen one or one that is declared `as const`. The scorer only reads a trace,
 * so it accepts both kinds.
 */
export type ReadonlyReasoningTrace = DeepReadonly<ReasoningTrace>;

/** `T` with all its properties, and theirs, read-only. */
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
 * For novelty, the trace is compared with the last 1,000 traces that this process scored, and then remembered among them. So
 * scoring the same trace again gives a lower score. Calls may overlap: scores and memory are those of one call after another, in
 * the order of the calls. The event loop stays free while the embedding is computed.
 *
 * Novelty is 0.5 if there is no embedder (no model package), or if the embedder does not
 * work. In the second case the process emits one `KnowledgePulseWarning` that says why.
 *
 * @param trace - the trace; it is read before the call returns, and may be changed after that
 * @returns the score, 0 to 1; a missing embedder does not reject the promise
 * @throws `TypeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if a field is missing or has the wrong
 * type. The message names the path, as in `trace.steps[3].tool.name must be a string, got number`. Nothing is
 * remembered then.
 * @throws `RangeError` with the same code, as a rejection, if `outcome.confidence` is not in [0, 1].
 * @throws `TypeError` with `code` `ERR_INVALID_OPTION`, as a rejection, if the options are not an object, if one of them has
 * the wrong type, or if the call has no such option.
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
 * Scores many traces. The scores, and the memory afterwards, are those of one {@link evaluateValue} after another, but several
 * traces are embedded at a time, on all cores. A call of `evaluateValue` that is made meanwhile takes its turn after the batch.
 *
 * At most 64 traces are in flight, and the others are read when their turn comes, so the memory in use does not grow with the
 * batch. Do not change the array or its traces before the promise settles.
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

/** Lets `traces.map(explain)` work: the index that `map` passes is ignored. */
export function explain(trace: ReadonlyReasoningTrace, index: number): Promise<ScoreBreakdown>;
/**
 * Scores a trace as {@link evaluateValue} does, and says how the score came about.
 *
 * @param trace - the trace; it is read before the call returns
 * @returns the score and its parts, from which it can be computed exactly
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
   * Cancels the call. It then rejects with the signal's `reason` (an `AbortError` if it has none), and leaves the memory, or the
   * file, as if it had never been made. An abort that comes too late has no effect: after the trace is remembered or given to a
   * store, or for a batch after `onProgress` was called for its last trace. One signal may serve any number of calls.
   */
  signal?: AbortSignalLike | null;
}

/** What an `AbortSignal` needs to have; it may be that of another library. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
}

/** Options of a call on many traces or texts. */
export interface BatchOptions extends CallOptions {
  /**
   * Called after each trace or text, in their order. If it throws, the call rejects with what it threw. What the memory has then
   * depends on the `signal`: with one, none of the batch; without one, the traces up to the one it was called for, and up to 63
   * after that. A store keeps what it was given by then.
   */
  onProgress?: (progress: BatchProgress) => void;
}

/** How far a batch is. */
export interface BatchProgress {
  /** How many traces or texts are done, 1 to `total`. */
  done: number;
  /** How many the batch has. */
  total: number;
}

/** Options of {@link Scorer.explain}. */
export interface ExplainOptions extends CallOptions {
  /**
   * Whether the memory remembers the trace, as it does with `evaluateValue`. With `false` it stays as it was.
   *
   * @defaultValue `true`
   */
  remember?: boolean;
  /**
   * Scores the trace with this novelty, as an earlier breakdown had it in `dimensions.novelty`. The trace is not compared, so no
   * embedder is needed, and it is not remembered.
   *
   * @defaultValue the novelty that comparing with the memory gives
   */
  novelty?: number;
}

/**
 * How traces are compared.
 *
 * - `prefix` compares the embeddings of the first 512 tokens, as the SDK does: a {@link VectorCache}.
 * - `lexical` compares the words of the whole trace. It needs no model, and neither loads one nor waits for one: a {@link TraceMemory}.
 * - `full` compares the words of the whole trace, and the embeddings of its digest. Without a model novelty is 0.5: a
 *   {@link TraceMemory} with `novelty: 'full'`.
 *
 * The page {@link https://github.com/openknowledgepulse/native/blob/main/docs/novelty.md | Novelty} has the formulas, and tells what
 * each of them finds.
 */
export type NoveltyMethod = 'prefix' | 'lexical' | 'full';

/** Options of {@link Scorer}. */
export interface ScorerOptions<
  Memory extends VectorCache | TraceMemory | NoveltyStore = VectorCache | TraceMemory | NoveltyStore,
> {
  /**
   * What traces are compared with, and remembered in; it says how: see {@link NoveltyMethod}. A {@link NoveltyStore} is a memory elsewhere,
   * which other processes can share; when a batch is aborted, it keeps what it was given by then. Embeddings must have 384 dimensions.
   * Scorers may share a memory.
   *
   * @defaultValue a new {@link VectorCache}, for 1,000 traces
   */
  memory?: Memory;
  /**
   * What traces are compared with while a store fails; it must compare as the store does. Without, a call then rejects with the
   * store's error.
   *
   * The fallback also remembers what goes to the store. The process emits one `KnowledgePulseWarning` each time the store begins to fail.
   * When the store answers again, it gets what it has missed, one batch between two calls. At most the last 10,000 traces are kept for
   * it, in the memory of the process, so call {@link Scorer.flush} before that ends. When there are more, the oldest are dropped, with
   * a warning of the code `ERR_STORE_DROPPED`, and the next `flush` rejects. A trace that the store refuses for good is dropped, with
   * a warning.
   */
  fallback?: VectorCache | TraceMemory;
  /**
   * `null` scores without an embedder: novelty is always 0.5, nothing is remembered, and a score takes microseconds. With
   * memory of `novelty: 'lexical'`, which needs none, it changes nothing.
   *
   * @defaultValue `'default'`, the embedder of the process
   */
  embedder?: 'default' | null;
  /**
   * Profiles of weights by `metadata.task_domain`. They are added to the SDK's five, and replace those of the same name.
   * `default` is the profile of every domain that has no profile of its own.
   */
  weights?: Readonly<Record<string, ScoringWeights>>;
}

/**
 * Scores traces with a memory and weights of its own. All scorers of a process share its embedder.
 *
 * The functions {@link evaluateValue}, {@link evaluateValues} and {@link explain} are the methods of {@link defaultScorer}, with one
 * difference: they can be handed to `map`. A method that is called without its object, as after `const { explain } = scorer`, rejects
 * with `ERR_INVALID_THIS`.
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
   * Makes a scorer. The embedder is loaded by the first call, not here. If the memory is being compared with, this waits for that
   * comparison.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type, or if there is no such option or weight.
   * @throws `RangeError` with the same code if an option is outside its range: a memory whose embeddings do not have 384 dimensions, or
   * weights that are negative, not finite, or do not sum to 1 within 1e-9. The message names the profile and the sum.
   * @throws `Error` with `code` `ERR_MEMORY_OTHER_METHOD` if the cache holds vectors of another method, or the fallback
   * compares otherwise than the store. With the cache of
   * {@link defaultScorer}, which all threads share, the calls reject instead.
   */
  constructor(options?: ScorerOptions<Memory>);

  /** What it compares with: the memory itself, not a copy. */
  get memory(): Memory;

  /** Scores a trace: see {@link evaluateValue}. */
  evaluateValue(trace: ReadonlyReasoningTrace, options?: CallOptions): Promise<number>;

  /**
   * Scores many traces: see {@link evaluateValues}.
   *
   * Without a `signal`, the memory gets each trace when it is scored. With one, it gets all of them at once, after the last is
   * scored and `onProgress` was called for it, so that an abort can leave the memory as it was. It then gets none if the call
   * rejects, unless the reason is an invalid trace.
   */
  evaluateValues(traces: readonly ReadonlyReasoningTrace[], options?: BatchOptions): Promise<number[]>;

  /** Scores a trace and says how the score came about: see {@link explain}. */
  explain(trace: ReadonlyReasoningTrace, options?: ExplainOptions): Promise<ScoreBreakdown>;

  /**
   * Sends the store what it has missed, if it has a `fallback`. Call it before the process ends, because the process does not
   * stay alive for that. It resolves when the store has everything that was scored before the call, and at once if the store has
   * missed nothing or the scorer has no store.
   *
   * @throws the error of the store, as a rejection; an `Error` with `code` `ERR_STORE` if that has no code. What the store has
   * missed is kept and sent later, except for traces that it refuses for good.
   * @throws `Error` with `code` `ERR_STORE_DROPPED`, as a rejection, if traces were dropped since the last call of `flush` because more
   * than 10,000 waited. The store has the others then.
   */
  flush(options?: CallOptions): Promise<void>;
}

/** The scorer whose methods {@link evaluateValue} and its like are: one per process, shared by all threads. */
export const defaultScorer: Scorer;

/** The model that vectors come from. Vectors of different models cannot be compared. */
export interface VectorModel {
  /** Its name, as in {@link EmbedderStatus.model}. */
  model: string;
  /** What its weights are stored in: `fp32` or `q8`. */
  dtype: string;
}

/** Options of a call that adds to a {@link NoveltyStore}. */
export interface AddOptions extends CallOptions {
  /**
   * A UUID that names the call. When it is unknown whether a call was carried out, it is made again with the same name and the same
   * entries, and a store that recognises the name stores them once. A store may ignore it.
   */
  call?: string;
}

/** Options of {@link NoveltyStore.nearest}. */
export interface NearestOptions extends CallOptions {
  /** The method by which the vector was made, as in {@link NoveltyEntry.method}. */
  method?: string;
}

/** A trace for a {@link NoveltyStore}. */
export interface NoveltyEntry {
  /** The trace's `id`; null if that is not a string, or is longer than 1,024 bytes of UTF-8. */
  id: string | null;
  /**
   * What is compared and stored of the trace. With `novelty: 'prefix'` one vector of 384 numbers, the embedding of its first 512 tokens; a
   * store takes several. With `full` that of the digest, and with `lexical` none.
   */
  vectors: readonly Float32Array[];
  /**
   * With `novelty: 'lexical'` and `'full'` the words of the trace, at most 480, in the order of their hashes. Each takes ten bytes: its
   * XXH3-64 in eight, and how much it counts in two, both little-endian; the page
   * {@link https://github.com/openknowledgepulse/native/blob/main/docs/fleet.md#another-store | Fleet} says how to read the count.
   */
  words?: Uint8Array;
  /** The model of the vectors; null with `novelty: 'lexical'`. */
  model: VectorModel | null;
  /**
   * The name of the method by which the vectors were made from the trace: the novelty of the scorer's memory. Vectors of different methods
   * cannot be compared, so a store accepts only the first method that is named to it. An entry without a method is always accepted.
   */
  method?: string;
}

/** The stored vector that is nearest to another, or the stored trace that is most similar to another by its words. */
export interface StoredNeighbour {
  /** The `id` of its entry. */
  label: string | null;
  /**
   * Of vectors the cosine similarity, -1 to 1; of traces what the parts make together, 0 to 1. The scorer refuses a number beyond
   * ±1.001 with `ERR_STORE`.
   */
  similarity: number;
  /** For an entry with words: the cosine of the weighted words, 0 to 1. Novelty rests on these three parts. */
  lexical?: number;
  /** For an entry with words: which part of them the other trace contains, 0 to 1. */
  contained?: number;
  /** For an entry with words and a vector: the cosine of the projected vectors, 0 to 1; null without a vector. */
  embedded?: number | null;
}

/**
 * For each vector of an entry, the nearest vector that was stored before the entry; for an entry with words, one: the most similar
 * trace. Null if nothing was stored.
 */
export type NoveltyComparison = Array<StoredNeighbour | null>;

/**
 * A memory that a {@link Scorer} compares traces with, elsewhere than in this process. `@knowledgepulse/native/postgres` has one on
 * PostgreSQL. {@link LocalStore} is one on a {@link VectorCache} or a {@link TraceMemory}, and an example of how to write others.
 * `@knowledgepulse/native/conformance` has the tests that every store should pass.
 *
 * When a store fails, it rejects with an `Error` whose `code` says why: `ERR_STORE_UNAVAILABLE`, `ERR_STORE_TIMEOUT`,
 * `ERR_STORE_READ_ONLY`, `ERR_STORE_FULL`, `ERR_STORE_SCHEMA`, `ERR_STORE_OTHER_MODEL`, `ERR_STORE_OTHER_METHOD`, or `ERR_STORE`.
 * Nothing is stored then, or it is unknown whether something is. With a `fallback`, a scorer makes the call again later
 * after the first five, and after errors without a code of this package. It takes the others, and `ERR_INVALID_…`, as a refusal
 * of the trace. A store that has the entries of a `call` already, and cannot answer as the first time, rejects with
 * `ERR_STORE_ALREADY_STORED`: the scorer does not send them again.
 *
 * Every call needs a time limit of the store's own, because the scorer has none: it waits for ever for a call that never settles.
 */
export interface NoveltyStore {
  /**
   * How the scorers compare that use it.
   *
   * @defaultValue `'prefix'`, for a store of vectors
   */
  readonly novelty?: NoveltyMethod;
  /**
   * Compares an entry with everything that was stored before it, then stores it. This is one atomic step, also between
   * processes: if two submit the same trace at once, one of them finds the other's.
   */
  compareAndAdd(entry: NoveltyEntry, options?: AddOptions): Promise<NoveltyComparison>;
  /**
   * Does the same as one {@link NoveltyStore.compareAndAdd} after another, for all entries or none. The scorer passes up to 64
   * entries, and makes one call at a time.
   */
  compareAndAddBatch(entries: readonly NoveltyEntry[], options?: AddOptions): Promise<NoveltyComparison[]>;
  /** The `count` stored vectors that are most similar to `vector`, the most similar first. Stores nothing. */
  nearest(
    vector: Float32Array,
    count: number,
    model: VectorModel,
    options?: NearestOptions,
  ): Promise<StoredNeighbour[]>;
  /**
   * The `count` stored traces that are most similar to an entry with words, the most similar first. Stores nothing. A store of
   * `lexical` or `full` has it.
   */
  nearestTraces?(entry: NoveltyEntry, count: number, options?: CallOptions): Promise<StoredNeighbour[]>;
  /** How many vectors or traces a new one would be compared with. */
  size(options?: CallOptions): Promise<number>;
}

/**
 * A {@link VectorCache} or a {@link TraceMemory} with the interface of a {@link NoveltyStore}. A cache may have other dimensions than an
 * embedding, and takes on the model and the method of the first entry.
 *
 * Calls are worked on in the order in which they were made, away from the event loop, and each sees all of the calls before or
 * nothing. The memory is locked while a call is worked on, so that its own methods wait for that: ask the store instead.
 *
 * Its calls reject with `ERR_INVALID_ENTRY` or `ERR_INVALID_VECTOR` if an argument is malformed, and with `ERR_STORE_OTHER_MODEL` or
 * `ERR_STORE_OTHER_METHOD` if an entry has another model or method than the memory.
 */
export class LocalStore<Memory extends VectorCache | TraceMemory = VectorCache> implements NoveltyStore {
  /**
   * @param memory - what to store in; by default a new cache for 1,000 vectors
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if it is neither a `VectorCache` nor a `TraceMemory`.
   */
  constructor(memory?: Memory);
  /** What it stores in: itself and not a copy. */
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
export interface ScoreDimensions {
  complexity: number;
  novelty: number;
  toolDiversity: number;
  outcome: number;
}

/**
 * A score and how it came about. `contributions` are `dimensions` times `weights`, `composite` is their sum, added up in the
 * order of the fields, and `overrides` lead from there to `score`. All of that holds to the last bit.
 */
export interface ScoreBreakdown {
  /** The score, 0 to 1. */
  score: number;
  /**
   * Each from 0 to 1, except novelty: that is from 0 to 2, because a similarity can be negative. Rounding can take it 1e-6 beyond, so
   * that the novelty of a duplicate can be slightly below 0. With a store it can be 0.001 beyond, as its similarities can.
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
   * Where the novelty comes from: a comparison with the memory (`cache` for one of this process, or `store`); or it is 0.5, because the memory was empty (`empty-cache` or `empty-store`) or because there is no embedder; or
   * it was `given` as the option `novelty`.
   */
  noveltyBasis: 'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder' | 'given';
  /** The remembered trace that this one resembles most; null if there was no comparison or the memory was empty. */
  nearest: NearestTrace | null;
  /** How many tokens were embedded, special ones included; null where nothing was. */
  tokens: number | null;
  /** Whether there was more text than was compared; null where nothing was. */
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
  /** The score before. */
  before: number;
  /** The score after. */
  after: number;
}

/** A remembered trace. */
export interface NearestTrace {
  /** Its `id`; null if that was not a string, or was longer than 1,024 bytes of UTF-8. */
  label: string | null;
  /**
   * With `novelty: 'prefix'` the cosine similarity, -1 to 1 within 1e-6, or with a store within 0.001. Otherwise the larger of
   * 0.7 `lexical` + 0.3 `embedded` (`lexical` alone without a model) and the fourth power of `contained`, 0 to 1. Novelty is 1 minus
   * this.
   */
  similarity: number;
  /** The cosine of the weighted words, 0 to 1; null with `novelty: 'prefix'`. */
  lexical: number | null;
  /** Which part of the scored trace's words it contains, by their weights, 0 to 1; null with `novelty: 'prefix'`. */
  contained: number | null;
  /** The cosine of the embedded digests, 0 to 1; null unless with `novelty: 'full'`. */
  embedded: number | null;
  /**
   * The words of the scored trace that this one has too and that weigh most, at most ten, the heaviest first. The weights of all shared words
   * add up to `lexical`. Null with `novelty: 'prefix'`, and with a store, which has hashes of words alone.
   */
  sharedWords: ExplainedWord[] | null;
  /**
   * The words of the scored trace that this one lacks, likewise. The weights of all of them add up to 1 minus `contained`. Null where
   * `sharedWords` is.
   */
  newWords: ExplainedWord[] | null;
}

/** A word of a scored trace. */
export interface ExplainedWord {
  /** The word as it is compared: normalised, in lower case, and cut to 64 characters. */
  word: string;
  /** How much it weighs: see {@link NearestTrace.sharedWords} and {@link NearestTrace.newWords}. */
  weight: number;
  /** How many remembered traces contain it. */
  traces: number;
}

/**
 * Embeds texts as the scorer does, to add them to a {@link VectorCache} or to search there. All instances of a process share one
 * model.
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
   * After how many milliseconds a vector expires, by a monotonic clock: 0 or more.
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
  /** Its position in the cache: how many vectors are older. */
  index: number;
}

/** A vector of a {@link VectorCache}, as its iterator gives it. */
export interface VectorCacheEntry {
  /** A copy in single precision. */
  vector: Float32Array;
  /** The label that it was added with, if any. */
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
 * A bounded first-in-first-out memory of vectors. It finds the vectors that are most similar to a query by looking at all of
 * them, so the answer is exact. It can be saved to a file and loaded again.
 *
 * A scorer compares with it away from the event loop. Meanwhile, whatever reads or changes the vectors (`add`, `size`, `nearest`,
 * iteration and so on) waits until the comparison of that trace is done. That is one scan; of 200,000 vectors it takes about 10 ms.
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
   * @throws `Error` with `code` `ERR_MEMORY_NOT_FOUND`, as a rejection, if there is no such file.
   * @throws `Error` with `code` `ERR_MEMORY_DAMAGED`, as a rejection, if the file is not what a cache was saved as. The
   * message says what is wrong.
   * @throws `Error` with `code` `ERR_MEMORY_OTHER_METHOD`, as a rejection, if the file is that of a {@link TraceMemory}.
   * @throws `Error` with `code` `ERR_MEMORY_OTHER_MODEL`, as a rejection, if its vectors do not compare with those of the
   * embedder: see {@link VectorCacheLoadOptions.model}.
   * @throws `Error` with `code` `ERR_MEMORY_IO`, as a rejection, if the system does not let it be read.
   * @throws `RangeError` with `code` `ERR_OUT_OF_MEMORY`, as a rejection, if there is no room for it.
   */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<VectorCache>;

  /**
   * Adds a copy of `vector`. If the cache is full, the oldest vector leaves it.
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
   * Adds many vectors, as one {@link VectorCache.add} after another does, but all of them or none: if one vector or
   * label is refused, nothing is added.
   *
   * @param vectors - the vectors
   * @param labels - a label for each vector, or `undefined` for a vector without one
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
   * The `k` vectors that are most similar to `query`, or all vectors if the cache holds fewer. The most similar comes first, and of
   * equally similar ones the older. The similarity of the first is {@link VectorCache.maxCosineSimilarity}.
   *
   * @param query - finite numbers, as many as the cache has dimensions
   * @param k - a safe integer of at least 0; 1 by default
   * @throws `RangeError` or `TypeError` as {@link VectorCache.add}; with `code` `ERR_INVALID_OPTION` for a wrong `k`.
   */
  nearest(query: ArrayLike<number>, k?: number): Neighbour[];

  /**
   * Iterates over the vectors that are in the cache when the iterator is made, oldest first. Vectors that leave the cache before
   * their turn are left out, and those that are added later do not appear.
   *
   * A vector comes as it was added, in single precision. If its largest component is not between 2^-40 and 2^40, it comes multiplied by
   * a power of two, which changes no similarity.
   */
  [Symbol.iterator](): IterableIterator<VectorCacheEntry>;

  /** How many vectors the cache holds, without those that have expired. */
  get size(): number;

  /** How many vectors the cache keeps at most. */
  get maxElements(): number;

  /** The length of every vector. */
  get dimensions(): number;

  /** After how many milliseconds a vector expires, to a nanosecond; `Infinity` means never. */
  get ttlMs(): number;

  /**
   * The model that the vectors come from, if the scorer or a {@link LocalStore} added any: its name, and what its weights are stored in.
   * Vectors of different models do not compare, so the scorer refuses a cache with those of another one.
   */
  get model(): { model: string; dtype: string } | null;

  /**
   * The name of the method by which the vectors were made from traces: `prefix` if a scorer added them, or the method of the entries
   * of a {@link LocalStore}. A scorer refuses a cache with vectors of another method, because they cannot be compared. It is `undefined`
   * while the cache has only vectors that were added with {@link VectorCache.add}; these are
   * compared all the same.
   */
  get method(): string | undefined;

  /** Frees the memory of expired vectors. They do not count in any case. Does nothing without `ttlMs`. */
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
   * @throws `Error` with `code` `ERR_MEMORY_IO`, as a rejection, if the system does not let it be written: the disk is
   * full, the directory is missing or may not be written to. The old file is as it was.
   */
  save(path: string, options?: CallOptions): Promise<void>;
}

/** Options of {@link TraceMemory}. */
export interface TraceMemoryOptions {
  /**
   * What traces are compared by: `lexical` by their words, which needs no model, `full` also by the embeddings of their
   * {@link TraceMemory.digest}.
   *
   * @defaultValue `lexical`
   */
  novelty?: 'lexical' | 'full';
  /**
   * How many traces are kept: a safe integer; 0 keeps none.
   *
   * @defaultValue 1,000
   */
  maxElements?: number;
  /**
   * The length of every embedding: a safe integer of at least 1. Words alone need none.
   *
   * @defaultValue 384
   */
  dimensions?: number;
  /**
   * After how many milliseconds a trace is forgotten, by a monotonic clock: 0 or more.
   *
   * @defaultValue `Infinity`: never
   */
  ttlMs?: number;
}

/** Options of a call on a {@link TraceMemory}. */
export interface TraceOptions extends CallOptions {
  /**
   * The embedding of {@link TraceMemory.digest} of the trace, which a memory with `novelty: 'full'` needs. Others do not look at it.
   */
  vector?: ArrayLike<number>;
}

/** A remembered trace that is similar to another one. */
export interface SimilarTrace {
  /** The `id` that it was added with, if any. */
  label: string | undefined;
  /** Its position in the memory: how many traces are older. */
  index: number;
  /** How similar it is, 0 to 1: with C for `contained`, the larger of C⁴ and `lexical`, or 0.7 `lexical` + 0.3 `embedded`. */
  similarity: number;
  /** The cosine of the two traces' weighted words, 0 to 1. */
  lexical: number;
  /** Which part of the trace's words the remembered one contains, by their weights, 0 to 1. */
  contained: number;
  /** The cosine of the two embeddings, without what the remembered ones have in common, 0 to 1; only with `novelty: 'full'`. */
  embedded: number | undefined;
}

/** What {@link TraceMemory} tells of a trace. */
export interface TraceComparison {
  /** 1 less the similarity of the nearest trace, 0 for a duplicate to 1; 0.5 if nothing is remembered. */
  novelty: number;
  /** The most similar trace, of equally similar ones the oldest; null if nothing is remembered. */
  nearest: SimilarTrace | null;
}

/** A trace of a {@link TraceMemory}, as its iterator gives it. */
export interface TraceMemoryEntry {
  /** The `id` that it was added with, if any. */
  label: string | undefined;
  /** How many traces were older when the iterator was made. */
  index: number;
  /** How much each word counts, by the XXH3-64 of the word in 16 hexadecimal digits. At most 480 words are kept. */
  words: Map<string, number>;
  /** A copy of the embedding in single precision; only with `novelty: 'full'`. */
  vector: Float32Array | undefined;
}

/**
 * A bounded first-in-first-out memory of traces that tells how new another one is by what all of it says, not only its beginning: by its
 * words, and with `novelty: 'full'` also by an embedding. The answer is exact, and does not depend on the order in which traces came.
 * `docs/novelty.md` has the formula and what it was measured to tell apart.
 *
 * Traces are read at the call; the rest is done away from the event loop, in the order of the calls. Each call sees all of the calls before
 * or nothing. A trace is remembered by hashes of its words, not by its text: real ones take about 4 KB each, and with an embedding 6 KB.
 *
 * @example
 * ```ts
 * const memory = new TraceMemory({ maxElements: 10_000 });
 * await memory.add(trace);
 * const { novelty, nearest } = await memory.compareAndAdd(another);
 * await memory.save('traces.safetensors');
 * ```
 */
export class TraceMemory implements Iterable<TraceMemoryEntry> {
  /**
   * Makes an empty memory.
   *
   * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
   * @throws `RangeError` with the same code if it is outside its range.
   */
  constructor(options?: TraceMemoryOptions);

  /**
   * The memory in a file that {@link TraceMemory.save} wrote: its traces, labels, method, model and bounds. As {@link VectorCache.load}, with
   * the same options and errors. A file of a {@link VectorCache} is refused with `ERR_MEMORY_OTHER_METHOD`.
   *
   * @param path - the file; relative to the directory in which the process is at the call
   */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<TraceMemory>;

  /**
   * The memory that has this {@link TraceMemory.handle} in another thread of the process: the same one, not a copy.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION` if it is no handle, or if no thread has the memory any more. In
   * WebAssembly each thread has only its own memories.
   * @example
   * ```ts
   * new Worker('./worker.js', { workerData: memory.handle });
   * const memory = TraceMemory.fromHandle(workerData); // in worker.js
   * ```
   */
  static fromHandle(handle: number): TraceMemory;

  /**
   * The text whose embedding stands for a trace in a memory with `novelty: 'full'`: the objective and the contents of all steps, each cut to
   * its first characters, as many as fit 1,900 together.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_TRACE`, naming the path, if the trace is malformed.
   */
  static digest(trace: ReadonlyReasoningTrace): string;

  /**
   * Remembers a trace under its `id` without comparing it. If the memory is full, the oldest trace leaves it.
   *
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if the trace is malformed.
   * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_VECTOR`, as a rejection, if the memory needs an embedding and it is missing,
   * has another length, or a component that is not finite.
   * @throws the reason of the signal, as a rejection, if it aborts before the trace is remembered.
   */
  add(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<void>;

  /** How new a trace is, and which remembered one it is nearest to. Remembers nothing. Rejects as {@link TraceMemory.add}. */
  compare(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<TraceComparison>;

  /** Compares a trace, then remembers it, as one step. Rejects as {@link TraceMemory.add}. */
  compareAndAdd(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<TraceComparison>;

  /**
   * The `k` traces that are most similar, or all if fewer are remembered. The most similar comes first, and of equally similar ones the
   * older. Rejects as {@link TraceMemory.add}, and with `ERR_INVALID_OPTION` for a wrong `k`.
   *
   * @param k - a safe integer of at least 0; 1 by default
   */
  nearest(trace: ReadonlyReasoningTrace, k?: number, options?: TraceOptions): Promise<SimilarTrace[]>;

  /**
   * Iterates over the traces that are remembered when the iterator is made, oldest first. Traces that are forgotten before their turn are left
   * out, and those that come later do not appear.
   */
  [Symbol.iterator](): IterableIterator<TraceMemoryEntry>;

  /** How many traces are remembered, without those that have expired. */
  get size(): number;

  /** How many traces are kept at most. */
  get maxElements(): number;

  /** After how many milliseconds a trace is forgotten; `Infinity` means never. */
  get ttlMs(): number;

  /** What traces are compared by. */
  get novelty(): 'lexical' | 'full';

  /** The model that the embeddings come from, if that is known. */
  get model(): { model: string; dtype: string } | null;

  /**
   * A number by which {@link TraceMemory.fromHandle} finds the memory in another thread, such as a worker. The memory lives as long as one
   * of these threads has it; a number does not keep it.
   */
  get handle(): number;

  /** How many bytes of memory the traces take, beside their labels. */
  get bytes(): number;

  /** Frees the memory of expired traces. They do not count in any case. */
  evictExpired(): void;

  /** Forgets every trace, and the model. */
  clear(): void;

  /** Writes the memory to a file, as {@link VectorCache.save} does, with the same errors. */
  save(path: string, options?: CallOptions): Promise<void>;
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

/** A text without what {@link cleanPii} has found. */
export interface CleanedText {
  /** The text, in which each match is replaced by `[REDACTED:<type>]`. */
  cleaned: string;
  /** What was replaced, in the order in which the types were first found; empty if nothing was. */
  redactions: Redaction[];
}

/** A trace without what {@link cleanTrace} has found. */
export interface CleanedTrace {
  /** A copy of the trace with clean texts. */
  trace: ReasoningTrace;
  /** What was replaced in all of its texts. */
  redactions: Redaction[];
}

/** Options of {@link cleanPii}, {@link cleanPiiAsync} and {@link cleanTrace}. */
export interface CleanOptions {
  /**
   * What is replaced: at `aggregated` and `federated` secrets and identifiers, at `private` only secrets. E-mail addresses, telephone
   * numbers, IP addresses and home directories are identifiers.
   *
   * @defaultValue `'aggregated'`
   */
  level?: PrivacyLevel;
  /**
   * Whether what the SDK misses is found too: keys of some eighty providers, private keys, JSON Web Tokens, webhooks, what is assigned to names
   * like `DB_PASS`, cookies, passwords in URLs and in arguments of commands, numbers of cards, bank accounts and social security, telephone
   * numbers in groups, IPv6 addresses, and more forms of home directories. The page
   * {@link https://github.com/openknowledgepulse/native/blob/main/docs/cleaning.md | Cleaning} lists them.
   *
   * @defaultValue `false`
   */
  strict?: boolean;
}

/**
 * Replaces secrets and personal data in a text. Without `strict`, the result is that of the SDK's `cleanPii`, to the character. The time
 * grows linearly with the text, whatever that is: a megabyte takes some milliseconds. For larger ones there is
 * {@link cleanPiiAsync}, which leaves the event loop free.
 *
 * A pattern cannot know every secret: what is not found is not safe to share because of that.
 *
 * @param text - the text; lone surrogates stay as they are
 * @param level - the level, as for the SDK, or options
 * @returns the clean text and what was replaced
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
 * Does what {@link cleanPii} does on another thread. The text is copied before the call returns, and that is all that the event loop
 * waits for.
 *
 * @throws as {@link cleanPii}, as a rejection; or the signal's reason if that aborts before the text is clean
 */
export function cleanPiiAsync(
  text: string,
  level?: PrivacyLevel | (CleanOptions & CallOptions),
): Promise<CleanedText>;

/**
 * Copies a trace and replaces secrets and personal data in all of its texts, as {@link cleanPii} does in one: the objective, the
 * steps with their inputs and summaries, the outcome, the knowledge graph's delta, the metadata, and whatever else the trace has, with
 * its structure and the names of properties cleaned too. These strings stay as they are: `@context`, `@type`, `id`, `source_skill`; of the
 * metadata `created_at`, `task_domain`, `visibility` and `privacy_level`; the `type` of steps and entities, and `valid_from`.
 *
 * With `strict`, strings and numbers are also replaced if the name of a property that they are under says that they are secrets, as in
 * `{ password: ['…'] }` and `{ name: 'X-Api-Key', value: '…' }`.
 *
 * The level is that of the options. What the trace says in `metadata.privacy_level` does not change it: a trace that is labelled
 * `private` loses its identifiers too, unless `level` is `private`.
 *
 * @param trace - the trace; it is copied before the call returns, and never changed. It need not be one that can be scored.
 * @returns the copy, which is plain data, and what was replaced
 * @throws `TypeError` with `code` `ERR_INVALID_TRACE`, as a rejection, if the trace is not an object, if it contains itself, if a getter
 * throws, or if it holds what JSON has not, such as a function, a bigint, a `Map` or a typed array. The message names the path.
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

/** A number of traces, or a percentage of all, rounded up: `'10%'`. */
export type TraceCount = number | `${number}%`;

/** Options of {@link select}. */
export interface SelectOptions extends CallOptions {
  /** How many traces are chosen; all if there are fewer. */
  count: TraceCount;
  /**
   * What traces are compared by: see {@link TraceMemoryOptions.novelty}. `full` needs a model.
   *
   * @defaultValue `lexical`
   */
  novelty?: 'lexical' | 'full';
  /** What is shared already: traces are chosen beside these. It must compare by the same `novelty`, and is not changed. */
  known?: TraceMemory;
  /** How much of `count` is kept for failures of tasks that no trace has solved. They come last; where they are too few, others follow. */
  quota?: { failures?: TraceCount };
  /** Called now and then while traces are compared, which takes most of the time. If it throws, the call rejects with that. */
  onProgress?: (progress: BatchProgress) => void;
}

/** A trace of {@link select} that is similar to another one. */
export interface SimilarCandidate {
  /** Its index among the traces. */
  index: number;
  /** Its `id`, if it has one. */
  id: string | undefined;
  /** How similar it is, 0 to 1. */
  similarity: number;
}

/** A trace that {@link select} has chosen. */
export interface ChosenTrace {
  /** Its index among the traces. */
  index: number;
  /** Its `id`, if it has one. */
  id: string | undefined;
  /** 1 for the most valuable trace. */
  rank: number;
  /** Why it was chosen: it covers others, or it is a failure for which a quota was kept. */
  reason: 'coverage' | 'failure';
  /** How much the set gained with it. */
  gain: number;
  /** The part of what all traces cover that the set covers up to this one, 0 to 1. */
  covered: number;
  /** For how many traces it stands that were not chosen. */
  standsFor: number;
  /** These, the most similar first, at most 16. */
  similar: SimilarCandidate[];
  /** The most similar trace that was not chosen, whichever stands for it; null if none is similar. */
  nearestLeft: SimilarCandidate | null;
}

/** A trace that {@link select} has not chosen. */
export interface LeftTrace {
  /** Its index among the traces. */
  index: number;
  /** Its `id`, if it has one. */
  id: string | undefined;
  /** The chosen trace that stands for it; null if none is among its 32 nearest, or if a known trace does. */
  chosen: SimilarCandidate | null;
  /** The trace of `known` that stands for it, by its index in the memory. */
  known: { index: number; similarity: number } | null;
}

/** What {@link select} has chosen. */
export interface Selection {
  /** The chosen traces, the most valuable first. A smaller `count` gives the beginning of the list. */
  chosen: ChosenTrace[];
  /** The other traces, in their order. */
  left: LeftTrace[];
  /** How they were chosen: with their outcomes, or without, where most are not known. */
  rule: 'outcomes' | 'unknown-outcomes';
  /** A sentence that says so, and why. */
  explanation: string;
  /** The part of what all traces cover that `known` covers by itself, 0 to 1. */
  coveredBefore: number;
}

/**
 * Chooses the traces that are worth sharing: not those with the highest scores, but a set that stands for all others, successes first.
 * The same traces give the same set; of equally valuable traces the earlier is chosen.
 *
 * Nobody knows how a trace ended whose `metadata.imported.known.success` is false, as `toTraces` writes it.
 *
 * @param traces - the traces; they are read some at a time, so do not change them before the call settles
 * @returns the chosen traces, and what stands for each of the others
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
   * A directory with the model: `model.safetensors` for the built-in engine, or `model.onnx` (or `onnx/model.onnx`) for ONNX
   * Runtime, or both; `tokenizer.json`, `tokenizer_config.json`, `config.json`. A model with other pooling than the mean of the tokens is
   * refused (`ERR_MODEL_UNSUPPORTED`), as far as there is a `1_Pooling/config.json` that says so.
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
   * The model itself, in place of a directory: for programs that are one file. The built-in engine computes it. The bytes are
   * copied, and of the weights about half is kept, beside what is made of them.
   */
  model?: {
    /** `model.safetensors`, of either model package. */
    weights: Uint8Array;
    /** `tokenizer.json`. */
    tokenizer: Uint8Array;
  };
  /**
   * What computes the embeddings. `builtin` reads `model.safetensors`, and `onnxruntime` reads `model.onnx`. `auto` takes the
   * built-in engine, and ONNX Runtime for a model that has only `model.onnx`, and on arm64 where the platform's package carries it.
   *
   * @defaultValue the environment variable `KNOWLEDGEPULSE_ENGINE`, then `auto`
   */
  engine?: 'auto' | 'builtin' | 'onnxruntime';
  /**
   * The library of the engine `onnxruntime`: ONNX Runtime 1.24.1 or newer. It does not choose the engine.
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
 * Says where the embedder comes from and what it may use, for the whole process. Call it before the first
 * {@link evaluateValue} or {@link embedderStatus}, which load the embedder. A {@link Scorer} with `embedder: null` or with
 * `novelty: 'lexical'` loads none.
 *
 * @throws `TypeError` with `code` `ERR_INVALID_OPTION` if an option has the wrong type.
 * @throws `RangeError` with the same code if an option is outside its range.
 * @throws `Error` with `code` `ERR_ALREADY_CONFIGURED` if the embedder has been configured or loaded already.
 * @example
 * ```ts
 * configureEmbedder({ dtype: 'q8', threads: 1 });
 * ```
 */
export function configureEmbedder(options: EmbedderOptions): void;

/** The result of loading the embedder. A field that is not known is null. */
export interface EmbedderStatus {
  /** Whether there is an embedder that works. If not, novelty is 0.5. */
  available: boolean;
  /** Why it is not available; null if it is. */
  code: EmbedderErrorCode | null;
  /** The same for people: what is wrong with which file, and what to do. */
  reason: string | null;
  /** The directory of the model. */
  modelDirectory: string | null;
  /** The name of the model, from its configuration; `sha256:` and its checksum if it has no name. */
  model: string | null;
  /**
   * SHA-256 of the file with the weights, in hexadecimal: what the model's manifest states, which `kp-score doctor` compares with
   * the file, or that of the file where there is no manifest.
   */
  modelSha256: string | null;
  /** The type that the weights are stored in. */
  dtype: 'fp32' | 'q8' | null;
  /** The length of an embedding: 384. */
  dimensions: number | null;
  /** What computes the embeddings; null if there is no model. */
  engine: 'builtin' | 'onnxruntime' | null;
  /** The instructions that the built-in engine computes with; null for ONNX Runtime. `simd128` is WebAssembly. */
  kernel: 'avx512-vnni' | 'avx512' | 'avx-vnni' | 'avx2' | 'neon-dot' | 'neon' | 'simd128' | 'portable' | null;
  /** The ONNX Runtime library, if that is the engine. */
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
  /** The engine is ONNX Runtime, and the platform has none, or the library of its package or the configured one does not exist. */
  | 'ERR_RUNTIME_NOT_FOUND'
  /** The library is there, and the system refuses to read it: a permission is missing, or the disk fails. */
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
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/errors.md | Errors} says what each of them means.
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
 * Loads the embedder, unless an earlier call has, and says whether it works. Never rejects.
 *
 * @example
 * ```ts
 * const { available, reason } = await embedderStatus();
 * if (!available) console.warn(`Novelty is 0.5: ${reason}`);
 * ```
 */
export function embedderStatus(): Promise<EmbedderStatus>;
