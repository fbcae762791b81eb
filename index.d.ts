/**
 * Scores KnowledgePulse reasoning traces natively: the functions of `@knowledgepulse/sdk`, scorers with a memory and weights of
 * their own, selection and cleaning of traces. Errors have a `code`: see
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/errors.md | Errors}.
 *
 * @packageDocumentation
 */

import type { PostgresStore } from './postgres.js';

/**
 * The record of an agent's work on one task. The scorer reads only `task.objective`, `steps[].type`, `steps[].content`,
 * `steps[].tool.name`, `metadata.success`, `metadata.task_domain`, `outcome.confidence` and, as the label in its memory, `id`.
 */
export interface ReasoningTrace {
  /** The JSON-LD context. Any other is accepted at run time, as that of older documents. */
  '@context': 'https://openknowledgepulse.org/schema/v1';
  '@type': 'ReasoningTrace';
  /** `kp:trace:<uuid>` */
  id: string;
  /** `kp:skill:<name>:<version>` */
  source_skill?: string;
  metadata: KnowledgeUnitMeta;
  /** The objective is the first part of the text that is embedded. */
  task: { objective: string; input_schema?: Record<string, unknown> };
  /** In order; may be empty. */
  steps: ReasoningTraceStep[];
  /** `confidence`: how sure the agent is of its result, 0 to 1. */
  outcome: { result_summary: string; confidence: number };
  knowledge_graph_delta?: {
    entities: Array<{ name: string; type: string }>;
    relationships: Array<{ fact: string; valid_from: string }>;
  };
}

/** A {@link ReasoningTrace} that may be frozen or declared `as const`, because it is only read. */
export type ReadonlyReasoningTrace = DeepReadonly<ReasoningTrace>;

/** `T` with all properties read-only, at every depth. */
type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** One step of a {@link ReasoningTrace}. */
export interface ReasoningTraceStep {
  step_id: number;
  /** Other types are accepted at run time; each distinct type counts towards complexity. */
  type: 'thought' | 'tool_call' | 'observation' | 'error_recovery';
  /** Part of the text that is embedded. */
  content?: string;
  /** Distinct names count towards tool diversity. */
  tool?: { name: string; mcp_server?: string };
  /** Never read, however large. */
  input?: Record<string, unknown>;
  output_summary?: string;
  /** Milliseconds. */
  latency_ms?: number;
}

/** The metadata of a trace. */
export interface KnowledgeUnitMeta {
  /** ISO 8601. */
  created_at: string;
  agent_id?: string;
  framework?: string;
  /** Selects the profile of {@link ScoringWeights}. */
  task_domain: string;
  /** A failure multiplies the outcome dimension by 0.3. */
  success: boolean;
  /** 0 to 1; not read by the scorer. */
  quality_score: number;
  visibility: Visibility;
  privacy_level: PrivacyLevel;
  validated_by?: string[];
}

/** Who may see a trace. */
export type Visibility = 'private' | 'org' | 'network';

/** How a trace may be processed. */
export type PrivacyLevel = 'aggregated' | 'federated' | 'private';

/** How much each dimension counts: 0 to 1, and the four sum to 1 within 1e-9. */
export interface ScoringWeights {
  /** Distinct step types, error recovery and the number of steps. */
  complexity: number;
  /** The distance to the traces scored before. */
  novelty: number;
  /** Distinct tools per step. */
  toolDiversity: number;
  /** Confidence and success. */
  outcomeConfidence: number;
}

/**
 * Scores a trace by complexity, novelty, tool diversity and outcome. Novelty compares it with the last 1,000 traces that this process
 * scored, and the trace is then remembered. Calls that overlap give the scores of one call after another.
 *
 * Novelty is 0.5 without a model. If one is installed but does not work, the process emits one `KnowledgePulseWarning`.
 *
 * @param trace - read before the call returns
 * @param options - a number is ignored, so that `traces.map(evaluateValue)` works
 * @returns the score, 0 to 1
 * @throws `TypeError` or `RangeError` with `ERR_INVALID_TRACE` and the path of the field, as a rejection; nothing is remembered
 * @throws `TypeError` with `ERR_INVALID_OPTION`, as a rejection
 * @throws `Error` with `ERR_MEMORY_OTHER_MODEL` or `ERR_MEMORY_OTHER_METHOD`, as a rejection, if the memory holds other vectors
 */
export function evaluateValue(
  trace: ReadonlyReasoningTrace,
  options?: CallOptions | number | null,
): Promise<number>;

/**
 * Scores many traces, on all cores, with the scores of one {@link evaluateValue} after another. At most 64 traces are in flight, and the
 * others are read later: do not change them before the promise settles.
 *
 * @returns the scores, in the order of the traces
 * @throws as {@link evaluateValue}, as a rejection, for the first invalid trace; earlier traces are remembered
 */
export function evaluateValues(
  traces: readonly ReadonlyReasoningTrace[],
  options?: BatchOptions | number | null,
): Promise<number[]>;

/** Scores a trace as {@link evaluateValue} does, and returns the parts of the score. */
export function explain(
  trace: ReadonlyReasoningTrace,
  options?: ExplainOptions | number | null,
): Promise<ScoreBreakdown>;

/** Options of a call that can be cancelled. */
export interface CallOptions {
  /**
   * Cancels the call, which rejects with the signal's `reason` and leaves memory and files unchanged. An abort has no effect once the
   * trace is remembered or given to a store.
   */
  signal?: Signal | null;
}

/** An `AbortSignal`, of which programs without its type have this part. */
interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
}

/** Options of a call on many traces or texts. */
export interface BatchOptions extends CallOptions {
  /**
   * Called after each trace or text is embedded, in their order. If it throws, the call rejects with that error, and the memory has no
   * trace of the batch. A store keeps the traces that it was given.
   */
  onProgress?: (progress: BatchProgress) => void;
}

/** How many traces or texts of `total` are done: 1 or more. */
export interface BatchProgress {
  done: number;
  total: number;
}

/** Options of {@link explain}. */
export interface ExplainOptions extends CallOptions {
  /** Whether the memory remembers the trace; `true` by default. */
  remember?: boolean;
  /** A known novelty, 0 to 2. The trace is neither compared nor remembered, and no model is needed. */
  novelty?: number;
}

/**
 * How traces are compared: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/memory.md | Memory}.
 *
 * - `prefix`: the embeddings of the first 512 tokens, as the SDK does, in a {@link VectorCache}.
 * - `lexical`: the words of the whole trace, in a {@link TraceMemory}; needs no model.
 * - `full`: the words and the embedding of a digest, in a {@link TraceMemory}.
 */
export type NoveltyMethod = 'prefix' | 'lexical' | 'full';

/** Options of {@link Scorer}. */
export interface ScorerOptions<
  Memory extends VectorCache | TraceMemory | PostgresStore = VectorCache | TraceMemory | PostgresStore,
> {
  /** The memory to compare with and to add to, which scorers may share; by default a new {@link VectorCache} for 1,000 traces. */
  memory?: Memory;
  /**
   * The memory to use while a store fails, of the same method. At most 10,000 missed traces wait for the store: call
   * {@link Scorer.flush} before the process ends. Without a fallback, calls reject with the store's error.
   */
  fallback?: VectorCache | TraceMemory;
  /** `null` scores without a model: novelty is 0.5 and nothing is remembered, unless the memory is `lexical`. */
  embedder?: 'default' | null;
  /** Profiles by `metadata.task_domain`, beside or instead of the SDK's five. Domains without one use `default`. */
  weights?: Readonly<Record<string, ScoringWeights>>;
}

/**
 * Scores traces with a memory and weights of its own. Calls take effect, and settle, in the order in which they were made.
 *
 * @example
 * ```ts
 * const scorer = new Scorer({
 *   memory: await VectorCache.load('memory.safetensors'),
 *   weights: { legal: { complexity: 0.1, novelty: 0.2, toolDiversity: 0.1, outcomeConfidence: 0.6 } },
 * });
 * const score = await scorer.evaluateValue(trace);
 * await scorer.memory.save('memory.safetensors');
 * ```
 */
export class Scorer<Memory extends VectorCache | TraceMemory | PostgresStore = VectorCache> {
  /**
   * @throws `TypeError` or `RangeError` with `ERR_INVALID_OPTION` for wrong options, weights, or a memory of other dimensions than 384
   * @throws `Error` with `ERR_MEMORY_OTHER_METHOD` if the memory was filled by another method, or the fallback has another one
   */
  constructor(options?: ScorerOptions<Memory>);
  /** The memory itself, not a copy. */
  get memory(): Memory;
  /** Scores a trace: see {@link evaluateValue}. */
  evaluateValue(trace: ReadonlyReasoningTrace, options?: CallOptions): Promise<number>;
  /** Scores many traces: see {@link evaluateValues}. They are compared and remembered together at the end. */
  evaluateValues(traces: readonly ReadonlyReasoningTrace[], options?: BatchOptions): Promise<number[]>;
  /** Scores a trace and returns the parts of the score. */
  explain(trace: ReadonlyReasoningTrace, options?: ExplainOptions): Promise<ScoreBreakdown>;
  /**
   * Sends the traces that the store has missed; resolves when it has every trace that was scored before the call.
   *
   * @throws the error of the store, as a rejection; `Error` with `ERR_STORE_DROPPED` if traces were dropped since the last `flush`
   */
  flush(options?: CallOptions): Promise<void>;
}

/** The model that vectors come from. Vectors of different models cannot be compared. */
export interface VectorModel {
  /** As in {@link EmbedderStatus.model}. */
  model: string;
  /** `fp32` or `q8`. */
  dtype: string;
}

/** A number for each dimension of a score. */
export type ScoreDimensions = Record<keyof ScoringWeights, number>;

/** A score and its parts. `contributions` are `dimensions` times `weights`, and `composite` is their sum, to the last bit. */
export interface ScoreBreakdown {
  /** 0 to 1. */
  score: number;
  /** 0 to 1 each; novelty 0 to 2, because a similarity can be negative, and slightly below 0 for a duplicate. */
  dimensions: ScoreDimensions;
  /** The profile of the weights: a task domain, or `default`. */
  profile: string;
  weights: ScoringWeights;
  contributions: ScoreDimensions;
  composite: number;
  /** The rules that changed `composite` to `score`, in their order. */
  overrides: ScoreOverride[];
  /** Where the novelty comes from; with `empty-…` and `no-embedder` it is 0.5. */
  noveltyBasis: 'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder' | 'given';
  /** The most similar remembered trace; null without a comparison or with an empty memory. */
  nearest: NearestTrace | null;
  /** The number of embedded tokens, special tokens included; null if nothing was embedded. */
  tokens: number | null;
  /** Whether the text was longer than the compared part; null if nothing was compared. */
  truncated: boolean | null;
}

/** A rule that changed a score: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/scoring.md | Scoring}. */
export interface ScoreOverride {
  rule: 'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp';
  before: number;
  after: number;
}

/** A remembered trace. Its last five fields are null with `prefix`, and words are null with a store. */
export interface NearestTrace {
  /** Its `id`; null if that was not a string, or was longer than 1,024 bytes of UTF-8. */
  label: string | null;
  /** Novelty is 1 minus this: -1 to 1 with `prefix`, otherwise 0 to 1. */
  similarity: number;
  /** The cosine of the weighted words, 0 to 1. */
  lexical: number | null;
  /** The weighted share of the scored trace's words that it contains, 0 to 1. */
  contained: number | null;
  /** The cosine of the embedded digests, 0 to 1; only with `full`. */
  embedded: number | null;
  /** The heaviest words that both traces have, at most ten. The weights of all such words add up to `lexical`. */
  sharedWords: ExplainedWord[] | null;
  /** The heaviest words that it lacks, at most ten. The weights of all such words add up to 1 minus `contained`. */
  newWords: ExplainedWord[] | null;
}

/** A word of a scored trace. */
export interface ExplainedWord {
  /** In the compared form: normalised, in lower case, at most 64 characters. */
  word: string;
  weight: number;
  /** The number of remembered traces that contain it. */
  traces: number;
}

/**
 * Embeds the first 512 tokens of each text as the scorer does, on all cores, to add them to a {@link VectorCache} or to search it.
 *
 * @returns for each text 384 numbers whose squares add up to 1
 * @throws `TypeError` with `ERR_INVALID_TEXT`, as a rejection
 * @throws `Error` with an {@link EmbedderErrorCode}, as a rejection, if there is no model or it does not work
 */
export function embed(texts: readonly string[], options?: BatchOptions): Promise<Float32Array[]>;

/** Options of {@link VectorCache}. */
export interface VectorCacheOptions {
  /** The maximum number of vectors or traces, 1,000 by default; 0 keeps none. */
  maxElements?: number;
  /** The length of every vector, 384 by default. */
  dimensions?: number;
  /** The time to live of a vector or trace in milliseconds, by a monotonic clock; `Infinity` by default. */
  ttlMs?: number;
}

/** A vector of a {@link VectorCache} that is similar to a query. */
export interface Neighbour {
  /** The label that it was added with, if any. */
  label: string | undefined;
  /** The cosine similarity, -1 to 1 within 1e-6. */
  similarity: number;
  /** The number of older vectors. */
  index: number;
}

/** A vector that the iterator of a {@link VectorCache} yields. */
export interface VectorCacheEntry {
  /** A copy in single precision. */
  vector: Float32Array;
  label: string | undefined;
  /** The number of older vectors when the iterator was made. */
  index: number;
}

/** Options of {@link VectorCache.load}. */
export interface VectorCacheLoadOptions extends CallOptions {
  /** The maximum number of vectors, of which the newest are kept; by default as saved. */
  maxElements?: number;
  /** The time to live in milliseconds since a vector was added; by default as saved. */
  ttlMs?: number;
  /** `check`, the default, refuses a file with vectors of another model than the embedder's; `any` does not. */
  model?: 'check' | 'any';
}

/** The members that {@link VectorCache} and {@link TraceMemory} share. */
declare abstract class BoundedMemory {
  /** The number of vectors or traces that have not expired. */
  get size(): number;
  get maxElements(): number;
  /** Milliseconds; `Infinity` means for ever. */
  get ttlMs(): number;
  /** The model of the vectors, if a scorer added any. */
  get model(): VectorModel | null;
  /** Frees the memory of expired vectors or traces, which are ignored in any case. */
  evictExpired(): void;
  /** Removes every vector or trace. */
  clear(): void;
  /**
   * Writes the memory as it is at the call to a file in the safetensors format, which is replaced in one step.
   *
   * @throws `Error` with `ERR_MEMORY_IO`, as a rejection, if the system refuses it; the old file is unchanged
   */
  save(path: string, options?: CallOptions): Promise<void>;
}

/**
 * A bounded first-in-first-out memory of vectors. Queries compare with every vector, so their results are exact.
 *
 * Vectors are finite numbers, as many as `dimensions`; others throw `ERR_INVALID_VECTOR`, as in `Expected 384 dimensions, got 3`.
 */
export class VectorCache extends BoundedMemory implements Iterable<VectorCacheEntry> {
  /** @throws `TypeError` or `RangeError` with `ERR_INVALID_OPTION` */
  constructor(options?: VectorCacheOptions);
  /**
   * Loads a file that {@link VectorCache.save} wrote. The time to live goes on while no process runs.
   *
   * @throws `Error` with `ERR_MEMORY_NOT_FOUND`, `ERR_MEMORY_DAMAGED`, `ERR_MEMORY_OTHER_METHOD`, `ERR_MEMORY_OTHER_MODEL`,
   * `ERR_MEMORY_IO` or `ERR_OUT_OF_MEMORY`, as a rejection
   */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<VectorCache>;
  /**
   * Adds a copy of `vector`, and evicts the oldest if the cache is full.
   *
   * @param label - the name by which {@link VectorCache.nearest} returns it: at most 1,024 bytes of UTF-8, else `ERR_INVALID_LABEL`
   */
  add(vector: ArrayLike<number>, label?: string): void;
  /** Returns the largest cosine similarity to a vector in the cache, -1 to 1 within 1e-6; 0 if it is empty or `query` is zero. */
  maxCosineSimilarity(query: ArrayLike<number>): number;
  /** Returns the `k` vectors (1 by default) that are most similar, the most similar first, of equal ones the older. */
  nearest(query: ArrayLike<number>, k?: number): Neighbour[];
  /** Iterates over the vectors that the cache holds when the iterator is made, oldest first. */
  [Symbol.iterator](): IterableIterator<VectorCacheEntry>;
  get dimensions(): number;
  /** The method by which the vectors were made; `undefined` while all were added with {@link VectorCache.add}. */
  get method(): string | undefined;
}

/** Options of {@link TraceMemory}. */
export interface TraceMemoryOptions extends VectorCacheOptions {
  /** `lexical`, the default, compares words and needs no model; `full` also compares embeddings. */
  novelty?: 'lexical' | 'full';
}

/** Options of a call on a {@link TraceMemory}. */
export interface TraceOptions extends CallOptions {
  /** The embedding of the trace's {@link TraceMemory.digest}; required with `full`. */
  vector?: ArrayLike<number>;
}

/** A remembered trace that is similar to another one. */
export interface SimilarTrace {
  /** The `id` that it was added with, if any. */
  label: string | undefined;
  /** The number of older traces. */
  index: number;
  /** 0 to 1: the larger of `contained`⁴ and `lexical`, or with `full` of `contained`⁴ and 0.7 `lexical` + 0.3 `embedded`. */
  similarity: number;
  /** The cosine of the two traces' weighted words, 0 to 1. */
  lexical: number;
  /** The weighted share of the trace's words that the remembered one contains, 0 to 1. */
  contained: number;
  /** The cosine of the two projected embeddings, 0 to 1; only with `full`. */
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
  label: string | undefined;
  /** The number of older traces when the iterator was made. */
  index: number;
  /** The count of each word, by its XXH3-64 in 16 hexadecimal digits; at most 480 words. */
  words: Map<string, number>;
  /** A copy of the embedding in single precision; only with `full`. */
  vector: Float32Array | undefined;
}

/**
 * A bounded first-in-first-out memory that compares whole traces by their words, and with `novelty: 'full'` also by an embedding. It keeps
 * hashes of words, no text. Calls reject with `ERR_INVALID_TRACE` for a malformed trace, and with `ERR_INVALID_VECTOR` for a missing or
 * malformed embedding.
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
  /** @throws `TypeError` or `RangeError` with `ERR_INVALID_OPTION` */
  constructor(options?: TraceMemoryOptions);
  /** Loads a file that {@link TraceMemory.save} wrote, with the errors of {@link VectorCache.load}. */
  static load(path: string, options?: VectorCacheLoadOptions): Promise<TraceMemory>;
  /**
   * Returns the memory that has this {@link TraceMemory.handle} in another thread of the process, not a copy.
   *
   * @throws `TypeError` or `RangeError` with `ERR_INVALID_OPTION` if no thread holds it any more
   */
  static fromHandle(handle: number): TraceMemory;
  /** Returns the text to embed for a memory with `full`: the beginnings of the objective and of all steps, 1,900 characters in all. */
  static digest(trace: ReadonlyReasoningTrace): string;
  /** Adds a trace under its `id` without comparing it, and evicts the oldest if the memory is full. */
  add(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<void>;
  /** Compares a trace without adding it. */
  compare(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<TraceComparison>;
  /** Compares a trace, then adds it, in one atomic step. */
  compareAndAdd(trace: ReadonlyReasoningTrace, options?: TraceOptions): Promise<TraceComparison>;
  /** Returns the `k` traces (1 by default) that are most similar, the most similar first, of equal ones the older. */
  nearest(trace: ReadonlyReasoningTrace, k?: number, options?: TraceOptions): Promise<SimilarTrace[]>;
  /** Iterates over the traces that the memory holds when the iterator is made, oldest first. */
  [Symbol.iterator](): IterableIterator<TraceMemoryEntry>;
  get novelty(): 'lexical' | 'full';
  /** A number by which {@link TraceMemory.fromHandle} finds the memory in a worker. It does not keep the memory alive. */
  get handle(): number;
  /** The memory that the traces take without their labels, in bytes. */
  get bytes(): number;
}

/**
 * The memory of {@link evaluateValue} itself, not a copy.
 *
 * @internal
 */
export function _getLocalCache(): VectorCache;

/** A type of secret or personal data, as it stands in `[REDACTED:<type>]`, and how often it was replaced. */
export interface Redaction {
  type: string;
  /** At least 1. */
  count: number;
}

/** The result of {@link cleanPii}: the text with its replacements, and their types in the order of the first match. */
export interface PiiCleanResult {
  cleaned: string;
  redactions: Redaction[];
}

/** The result of {@link cleanTrace}: a copy of the trace with clean texts, and the replacements in all of them. */
export interface CleanedTrace<Trace = ReasoningTrace> {
  trace: Trace;
  redactions: Redaction[];
}

/** Options of {@link cleanPii}, {@link cleanPiiAsync} and {@link cleanTrace}. */
export interface CleanOptions {
  /** `aggregated`, the default, and `federated` replace secrets and identifiers, `private` only secrets. */
  level?: PrivacyLevel;
  /**
   * Whether to find more than the SDK: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/cleaning.md | Cleaning}.
   * `false` by default.
   */
  strict?: boolean;
}

/**
 * Replaces secrets and personal data in a text; without `strict`, with the SDK's result to the character. A text without matches is not
 * necessarily safe to share.
 *
 * @param level - the level, as for the SDK, or options
 * @throws `TypeError` with `ERR_INVALID_TEXT` if the text is not a string
 * @throws `TypeError` or `RangeError` with `ERR_INVALID_OPTION`, also for a third argument
 */
export function cleanPii(text: string, level?: PrivacyLevel | CleanOptions): PiiCleanResult;

/** Does the same as {@link cleanPii} on another thread. */
export function cleanPiiAsync(
  text: string,
  level?: PrivacyLevel | (CleanOptions & CallOptions),
): Promise<PiiCleanResult>;

/**
 * Copies a trace, as `JSON.stringify` reads it, and replaces secrets and personal data in all of its texts and names of properties, but not
 * in `@context`, `@type`, `id`, `source_skill`, dates, domains, levels and types. `metadata.privacy_level` does not change the level.
 *
 * @param trace - copied before the call returns, and never changed
 * @throws `TypeError` or `RangeError` with `ERR_INVALID_TRACE`, as a rejection, if it has no JSON, is nested deeper than 256 levels or
 * has more than ten million values
 */
export function cleanTrace<Trace extends ReadonlyReasoningTrace>(
  trace: Trace,
  options?: CleanOptions & CallOptions,
): Promise<CleanedTrace<Trace>>;

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
 * @throws with `novelty: 'full'` also as {@link embed}, as a rejection
 * @example
 * ```ts
 * const { chosen } = await select(traces, { count: 50 });
 * const shared = chosen.map(({ index }) => traces[index]);
 * ```
 */
export function select(traces: readonly ReadonlyReasoningTrace[], options: SelectOptions): Promise<Selection>;

/** Options of {@link configureEmbedder}; {@link https://github.com/openknowledgepulse/native/blob/main/docs/encoder.md | Encoder} explains them. */
export interface EmbedderOptions {
  /** The model's directory; by default `KNOWLEDGEPULSE_MODEL_DIR`, then the installed model package. */
  modelDirectory?: string;
  /** Selects an installed model: `fp32` has the SDK's numbers, `q8` is faster and a quarter of the size. Or `KNOWLEDGEPULSE_DTYPE`. */
  dtype?: 'fp32' | 'q8';
  /** `model.safetensors` and `tokenizer.json` in memory instead of a directory, for programs that are one file. */
  model?: { weights: Uint8Array; tokenizer: Uint8Array };
  /** `builtin` reads `model.safetensors`, `onnxruntime` reads `model.onnx`. By default `KNOWLEDGEPULSE_ENGINE`, then `auto`. */
  engine?: 'auto' | 'builtin' | 'onnxruntime';
  /** The library of `onnxruntime`, 1.24.1 or newer; by default `KNOWLEDGEPULSE_ONNXRUNTIME`, then that of a package. */
  runtimePath?: string;
  /** Threads of one inference, 1 to 1024; by default `KNOWLEDGEPULSE_THREADS`, then as many as the process may use. */
  threads?: number;
}

/**
 * Configures the embedder of the process, before the first call that loads it.
 *
 * @throws `TypeError` or `RangeError` with `ERR_INVALID_OPTION`
 * @throws `Error` with `ERR_ALREADY_CONFIGURED` if it has been configured or loaded already
 */
export function configureEmbedder(options: EmbedderOptions): void;

/** The state of the embedder. Unknown fields are null. */
export interface EmbedderStatus {
  /** Whether the embedder works. If not, novelty is 0.5. */
  available: boolean;
  /** Why it is not available. */
  code: EmbedderErrorCode | null;
  /** The reason as a sentence: the file, the problem, and what to do. */
  reason: string | null;
  modelDirectory: string | null;
  /** The name of the model, from its configuration; `sha256:` and its checksum if it has no name. */
  model: string | null;
  /** SHA-256 of the weights' file in hexadecimal, as in the model's manifest if it has one. */
  modelSha256: string | null;
  dtype: 'fp32' | 'q8' | null;
  /** The length of an embedding: 384. */
  dimensions: number | null;
  engine: 'builtin' | 'onnxruntime' | null;
  /** The instructions of the built-in engine. `simd128` is WebAssembly. */
  kernel:
    | ('avx512-amx' | 'avx512-vnni' | 'avx512' | 'avx-vnni' | 'avx2')
    | ('neon-i8mm' | 'neon-dot' | 'neon')
    | ('simd128' | 'portable')
    | null;
  /** The ONNX Runtime library, if that is the engine. */
  runtimePath: string | null;
  runtimeVersion: string | null;
  /** Threads that one inference computes on. */
  threads: number;
}

/** Why there is no embedder. */
export type EmbedderErrorCode =
  | ('ERR_MODEL_NOT_FOUND' | 'ERR_MODEL_DAMAGED' | 'ERR_MODEL_UNREADABLE' | 'ERR_MODEL_UNSUPPORTED')
  | ('ERR_RUNTIME_NOT_FOUND' | 'ERR_RUNTIME_UNREADABLE' | 'ERR_RUNTIME_UNUSABLE' | 'ERR_RUNTIME_TOO_OLD')
  | ('ERR_TOKENIZER' | 'ERR_INFERENCE' | 'ERR_INVALID_OPTION' | 'ERR_OUT_OF_MEMORY' | 'ERR_INTERNAL');

/**
 * The `code` of every error of this package, and of every problem that `kp-score doctor` reports: see
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/errors.md | Errors}.
 */
export type ErrorCode =
  | EmbedderErrorCode
  // Arguments. ERR_INVALID_OPTION is above.
  | (
      | 'ERR_INVALID_TRACE'
      | 'ERR_INVALID_VECTOR'
      | 'ERR_INVALID_LABEL'
      | 'ERR_INVALID_TEXT'
      | 'ERR_INVALID_INPUT'
    )
  | ('ERR_INVALID_RECORD' | 'ERR_ALREADY_CONFIGURED')
  // Memories and their files. ERR_OUT_OF_MEMORY is above.
  | ('ERR_MEMORY_NOT_FOUND' | 'ERR_MEMORY_DAMAGED' | 'ERR_MEMORY_IO')
  | ('ERR_MEMORY_OTHER_MODEL' | 'ERR_MEMORY_OTHER_METHOD')
  // Stores.
  | ('ERR_STORE_UNAVAILABLE' | 'ERR_STORE_DROPPED' | 'ERR_STORE_SCHEMA' | 'ERR_STORE')
  // The package, and the doctor alone. ERR_INTERNAL is above.
  | ('ERR_ADDON_LOAD' | 'ERR_VERSION_MISMATCH' | 'ERR_EMBEDDING_WRONG' | 'ERR_CRASHED' | 'ERR_TIMEOUT')
  | 'ERR_NO_PROCESS';

/** Loads the embedder if necessary, and returns its state. Never rejects. */
export function embedderStatus(): Promise<EmbedderStatus>;

// biome-ignore lint/complexity/noUselessEmptyExport: without it, a file of declarations exports BoundedMemory too.
export {};
