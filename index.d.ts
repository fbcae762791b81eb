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
 * (`finance`, `code`, `medical`, `customer_service`; any other name gets the default profile).
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
 * @example
 * ```ts
 * const score = await evaluateValue(trace);
 * if (score > 0.75) await share(trace);
 * ```
 */
export function evaluateValue(trace: ReasoningTrace): Promise<number>;

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
export function evaluateValues(traces: readonly ReasoningTrace[]): Promise<number[]>;

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
export interface VectorCacheLoadOptions {
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
   * The cache in a file that {@link VectorCache.save} wrote: its vectors, labels, model and bounds. Vectors are as
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
   * The model that the vectors come from, if the scorer added any: its name, and what its weights are stored in.
   * Vectors of different models do not compare, so the scorer refuses a cache with those of another one.
   */
  get model(): { model: string; dtype: string } | null;

  /** Returns the memory of expired vectors, which no longer count anyway. A no-op without `ttlMs`. */
  evictExpired(): void;

  /** Removes every vector, and forgets the model. */
  clear(): void;

  /**
   * Writes the cache to a file, in the safetensors format: its vectors, labels, model and bounds, as they are at the
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
  save(path: string): Promise<void>;
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
  /** A model file is truncated, altered or unreadable. */
  | 'ERR_MODEL_DAMAGED'
  /** The model is another one than the scorer can use. */
  | 'ERR_MODEL_UNSUPPORTED'
  /** The platform has no ONNX Runtime, or the configured library does not exist. */
  | 'ERR_RUNTIME_NOT_FOUND'
  /** The library is no ONNX Runtime for this platform. */
  | 'ERR_RUNTIME_UNUSABLE'
  /** The library is older than 1.24.1. */
  | 'ERR_RUNTIME_TOO_OLD'
  /** `tokenizer.json` is malformed or describes another kind of tokenizer. */
  | 'ERR_TOKENIZER'
  /** ONNX Runtime failed. */
  | 'ERR_INFERENCE'
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
