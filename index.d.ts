/**
 * Scores, selects, cleans and reads KnowledgePulse reasoning traces natively. {@link https://github.com/openknowledgepulse/native/blob/main/docs/api.md | API}
 * has the rules and a program; {@link https://github.com/openknowledgepulse/native/blob/main/docs/errors.md | Errors} explains the codes.
 * Wherever one is given, a wrong option throws `ERR_INVALID_OPTION`, a wrong trace `ERR_INVALID_TRACE` and another wrong argument
 * `ERR_INVALID_INPUT`, at once or as the rejection of a promise: `@throws` names other codes.
 *
 * @packageDocumentation
 */

import type { PostgresStore } from './postgres.js';

/** The record of an agent's work on one task. */
export interface ReasoningTrace {
  /** The JSON-LD context. At run time any other is accepted, as that of older documents. */
  '@context': 'https://openknowledgepulse.org/schema/v1';
  '@type': 'ReasoningTrace';
  /** `kp:trace:<uuid>` */
  id: string;
  /** `kp:skill:<name>:<version>` */
  source_skill?: string;
  metadata: {
    /** ISO 8601. */
    created_at: string;
    agent_id?: string;
    framework?: string;
    /** Selects the weights: see {@link ScorerOptions.weights}. */
    task_domain: string;
    success: boolean;
    /** 0 to 1; not read by the scorer. */
    quality_score: number;
    visibility: Visibility;
    privacy_level: PrivacyLevel;
    validated_by?: string[];
    /** What a reader of logs notes. Keep it in copies: without `known`, an unknown success is taken for a failure. */
    imported?: {
      /** The format of the log. */
      format?: FormatName;
      /** Which parts the log told; without them the outcome is `false` and 0.5, and the time is that of the reading. */
      known?: { success: boolean; confidence: boolean; time?: false };
      /** The log's own names and figures, as far as it has them: `session_id`, `cwd`, `model` and others. */
      [name: string]: unknown;
    };
  };
  task: { objective: string; input_schema?: Record<string, unknown> };
  steps: Array<{
    step_id: number;
    type: 'thought' | 'tool_call' | 'observation' | 'error_recovery';
    content?: string;
    tool?: { name: string; mcp_server?: string };
    input?: Record<string, unknown>;
    output_summary?: string;
    /** Milliseconds. */
    latency_ms?: number;
  }>;
  /** `confidence`: how sure the agent is of its result, 0 to 1. */
  outcome: { result_summary: string; confidence: number };
  knowledge_graph_delta?: {
    entities: Array<{ name: string; type: string }>;
    relationships: Array<{ fact: string; valid_from: string }>;
  };
}

/** Who may see a trace. */
export type Visibility = 'private' | 'org' | 'network';

/** How a trace may be processed. */
export type PrivacyLevel = 'aggregated' | 'federated' | 'private';

/** A number for each dimension: of weights 0 to 1 each, and 1 together. */
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
 * Returns the score of a trace, 0 to 1. Its novelty is against the last 1,000 traces that this process scored with this function;
 * then the trace is remembered, unless a field is wrong. Without a model novelty is 0.5. The trace is read before the call returns.
 */
export function evaluateValue(trace: ScorableTrace): Promise<number>;

/** The memory of {@link evaluateValue} itself, not a copy; for tests. */
export function _getLocalCache(): VectorCache;

/** A bounded first-in-first-out memory of vectors, compared exactly. */
export class VectorCache {
  /** @param options - `maxElements`, 1,000 by default; `dimensions`, 384 by default; `ttlMs`, the time to live in milliseconds */
  constructor(options?: { maxElements?: number; dimensions?: number; ttlMs?: number });
  /** Adds a copy of `vector`, and evicts the oldest if the cache is full. */
  add(vector: ArrayLike<number>): void;
  /** Returns the largest cosine similarity to a vector in the cache, -1 to 1; 0 if it is empty or `query` is zero. */
  maxCosineSimilarity(query: ArrayLike<number>): number;
  /** The number of vectors that have not expired. */
  get size(): number;
  /** Frees the memory of expired vectors, which are ignored in any case. */
  evictExpired(): void;
  /** Removes every vector. */
  clear(): void;
}

/** The result of {@link cleanPii}: the types of what was replaced are in the order of their first match. */
export type PiiCleanResult = Cleaned<string>;

/** Replaces secrets in a text, and unless `level` is `private` personal data, as the SDK does to the character. {@link clean} finds more. */
export function cleanPii(text: string, level?: PrivacyLevel): PiiCleanResult;

/** What is read of a trace to score it; a {@link ReasoningTrace} is one. It may be frozen. */
export interface ScorableTrace {
  /** The name of the trace in a memory. One that is no string, or longer than 1,024 bytes of UTF-8, is ignored. */
  readonly id?: string;
  readonly task: { readonly objective: string };
  readonly steps: ReadonlyArray<{
    /** Each distinct type counts towards complexity, also one that the schema does not have. */
    readonly type: string;
    readonly content?: string | null | undefined;
    readonly tool?: { readonly name: string } | null | undefined;
  }>;
  readonly metadata: {
    readonly success: boolean;
    readonly task_domain?: string | null | undefined;
    /** Scoring ignores it; {@link select} and {@link share} take a success that is not `known` for unknown. */
    readonly imported?: { readonly known?: { readonly success?: boolean } } | null | undefined;
  };
  /** 0 to 1. */
  readonly outcome: { readonly confidence: number };
}

/**
 * How traces are compared: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/memory.md | Memory}.
 *
 * - `prefix`: by embeddings of the first 512 tokens, as the SDK does.
 * - `lexical`: by the words of the whole trace; needs no model.
 * - `full`: by the words, and the embedding of a digest.
 */
export type NoveltyMethod = 'prefix' | 'lexical' | 'full';

/** Options of {@link Scorer}. */
export interface ScorerOptions {
  /** The memory to compare with and to add to, which scorers may share; by default a new one, `prefix`, for 1,000 traces. */
  memory?: TraceMemory | PostgresStore;
  /** Weights by `metadata.task_domain`, beside or instead of the SDK's five profiles. Domains without one use `default`. */
  weights?: Readonly<Record<string, Readonly<ScoringWeights>>>;
  /** `false` scores without a model: novelty is 0.5 and nothing is remembered, unless the memory is `lexical`. Default: true. */
  embed?: boolean;
}

/** A score and its parts. */
export interface Score {
  /** 0 to 1: the sum of dimensions times weights, then changed by the overrides. */
  value: number;
  /** 0 to 1 each; novelty 0 to 2, because a similarity can be negative. */
  dimensions: ScoringWeights;
  weights: ScoringWeights;
  /** The rules that changed the value, in their order. */
  overrides: Array<{
    rule: 'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp';
    before: number;
    after: number;
  }>;
  /** The most similar remembered trace; null without one. */
  nearest: NearestTrace | null;
  /** What the novelty was compared with. With an empty one, and without an embedder, it is 0.5. */
  basis: 'memory' | 'empty-memory' | 'store' | 'empty-store' | 'no-embedder';
}

/** A remembered trace that is similar to another one. All but the first two fields are null with `prefix`. */
export interface NearestTrace {
  /** Its `id`; null if it has none. */
  id: string | null;
  /** Novelty is 1 minus this: -1 to 1 with `prefix`, otherwise 0 to 1. */
  similarity: number;
  /** The cosine of the weighted words, 0 to 1. */
  lexical: number | null;
  /** The weighted share of the other trace's words that it contains, 0 to 1. */
  contained: number | null;
  /** The cosine of the embedded digests, 0 to 1; null but with `full`. */
  embedded: number | null;
  /** The heaviest words that both have, at most ten; `traces` is how many remembered traces have one. Null with a store. */
  sharedWords: Array<{ word: string; weight: number; traces: number }> | null;
  /** The heaviest words that it lacks, at most ten. Null with a store. */
  newWords: NearestTrace['sharedWords'];
}

/** Scores traces. Calls take effect, and settle, in the order in which they were made. */
export class Scorer {
  constructor(options?: ScorerOptions);
  /**
   * Scores a trace.
   *
   * @param options - `remember: false` leaves the memory unchanged; `signal` cancels the call, which then has no effect
   * @throws `ERR_MEMORY_MISMATCH` or a code of the store
   */
  score(trace: ScorableTrace, options?: CallOptions & { remember?: boolean }): Promise<Score>;
  /**
   * Scores traces on all cores, with the scores of one {@link Scorer.score} after another, in their order. They are read as it goes:
   * do not change them before the promise settles. What was scored before an abort or the first trace with an error is remembered.
   */
  scoreAll(traces: readonly ScorableTrace[], options?: LongCallOptions): Promise<Score[]>;
}

/** Options of calls that take long. */
export interface CallOptions {
  /** Cancels the call, which rejects with its reason then and has no effect: an `AbortSignal`, or this part of one. */
  signal?: {
    readonly aborted: boolean;
    readonly reason: unknown;
    addEventListener(type: 'abort', listener: () => void): void;
  } | null;
}

export interface LongCallOptions extends CallOptions {
  /** Called now and then, by {@link Scorer.scoreAll} after each trace, with how many of them are done. If it throws, the call rejects with that. */
  onProgress?: (progress: { done: number; total: number }) => void;
}

/**
 * A bounded first-in-first-out memory of traces, which embeds them by itself. It keeps embeddings and hashes of words, no text. Calls on
 * traces reject with `ERR_INVALID_TRACE`, and but for `lexical` with the code of {@link EmbedderStatus} where there is no embedder.
 */
export class TraceMemory {
  /**
   * @param options - `method` says how traces are compared; `maxElements` is 1,000 by default; `ttlMs` is the time to live in
   * milliseconds, by default for ever
   */
  constructor(options: { method: NoveltyMethod; maxElements?: number; ttlMs?: number });
  /**
   * Loads a file that {@link TraceMemory.save} wrote, with its bounds. The time to live goes on while no process runs.
   *
   * @throws `ERR_MEMORY_NOT_FOUND`, `ERR_MEMORY_DAMAGED`, `ERR_MEMORY_MISMATCH`, `ERR_IO`, `ERR_OUT_OF_MEMORY`
   */
  static load(path: string, options?: CallOptions): Promise<TraceMemory>;
  /** Loads what {@link TraceMemory.toBytes} gave, or the bytes of a file. They must not change meanwhile. */
  static fromBytes(bytes: Uint8Array, options?: CallOptions): Promise<TraceMemory>;
  /**
   * Writes the memory as it is at the call to a file in the safetensors format, which is replaced in one step.
   *
   * @throws `ERR_IO`; an old file stays
   */
  save(path: string, options?: CallOptions): Promise<void>;
  /** Returns the bytes of such a file. */
  toBytes(): Promise<Uint8Array>;
  /** Adds a trace under its `id`, and evicts the oldest if the memory is full. */
  add(trace: ScorableTrace, options?: CallOptions): Promise<void>;
  /** Compares a trace without adding it. `novelty` is 0 for a duplicate, and 0.5 with an empty memory. */
  compare(
    trace: ScorableTrace,
    options?: CallOptions,
  ): Promise<{ novelty: number; nearest: NearestTrace | null }>;
  /** Returns the `count` most similar traces, 1 by default: the most similar first, of equal ones the older. */
  nearest(trace: ScorableTrace, count?: number, options?: CallOptions): Promise<NearestTrace[]>;
  /** The number of traces that have not expired. */
  get size(): number;
  get method(): NoveltyMethod;
  /** Removes every trace. */
  clear(): void;
}

/** A number of traces, or a percentage of them that is rounded up. */
export type Count = number | `${number}%`;

/** Options of {@link select}. */
export interface SelectOptions extends LongCallOptions {
  /** How many traces are chosen; fewer if there are fewer that are fit to be shared. */
  count: Count;
  /** Whether runs succeeded, by the `id` of their traces; takes precedence over `metadata.success`. */
  labels?: Readonly<Record<string, boolean>>;
  /** The traces that are shared already, which the set complements: a memory of the same method, which is not changed. */
  known?: TraceMemory;
  /** How many of `count` are kept for failures of tasks that no trace has solved. */
  failures?: Count;
  /** How traces are compared, `lexical` by default. */
  method?: 'lexical' | 'full';
}

/** A trace of {@link select}, by its index among the traces. */
export interface Candidate {
  index: number;
  id: string | null;
}

/** The result of {@link select}. */
export interface Selection {
  /** The chosen traces, the most valuable first. A smaller `count` gives the beginning of the list. */
  chosen: Array<
    Candidate & {
      /** 1 for the most valuable trace. */
      rank: number;
      /** Why it was chosen: it covers others, or it is a failure for which a place was kept. */
      reason: 'coverage' | 'failure';
      /** How much the set gained with it. */
      gain: number;
      /** The coverage by the set up to this trace, as a part of the coverage by all traces, 0 to 1. */
      covered: number;
      /** Its similarity to the most similar trace that was chosen before it or is known, 0 to 1. From .9 on it adds nothing new. */
      nearestBefore: number;
      /** For how many traces it stands that were not chosen. */
      standsFor: number;
      /** These, the most similar first, at most 16. `similarity` is 0 to 1. */
      similar: Array<Candidate & { similarity: number }>;
      /** The most similar trace that was not chosen; null if no trace is similar. */
      nearestLeft: (Candidate & { similarity: number }) | null;
    }
  >;
  /** The other traces, in their order. Of more than 100,000 traces a uniform sample is compared, and `left` has its traces alone. */
  left: Array<
    Candidate & {
      /** The chosen trace that stands for it; null if there is none. */
      chosen: (Candidate & { similarity: number }) | null;
      /** The trace of `known` that stands for it; null if there is none. */
      known: { id: string | null; similarity: number } | null;
      /** Why nobody can learn from it, so that it is never chosen; null if somebody can. */
      unfit: 'no-agent-step' | 'one-step' | 'no-objective' | 'sub-agent' | null;
    }
  >;
  /** A sentence that says how they were chosen, and why they may be fewer than `count`. */
  explanation: string;
  /** The coverage by `known` alone, as a part of the coverage by all traces, 0 to 1. */
  coveredBefore: number;
}

/**
 * Chooses the traces that are worth sharing: a set that stands for all others, successes first. The same traces give the same set. They
 * are read as it goes: do not change them before the promise settles.
 *
 * @throws with `method: 'full'` as {@link embed}
 */
export function select(traces: readonly ScorableTrace[], options: SelectOptions): Promise<Selection>;

/** A format of agents' logs: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/formats.md | Formats}. */
export type FormatName =
  | ('claude-code' | 'codex' | 'cursor' | 'copilot-cli' | 'copilot-chat' | 'opencode' | 'cline')
  | ('qwen-code' | 'gemini-cli' | 'goose' | 'droid' | 'hermes' | 'kimi' | 'grok' | 'crush' | 'kiro')
  | ('antigravity' | 'continue' | 'zed' | 'vibe' | 'codebuddy' | 'codewhale' | 'forge' | 'aider' | 'gptme')
  | ('amp' | 'letta' | 'pi' | 'openhands' | 'swe-agent' | 'atif' | 'inspect' | 'pydantic-ai' | 'google-adk')
  | ('smolagents' | 'strands' | 'autogen' | 'tau2' | 'otel' | 'langsmith' | 'langfuse' | 'opik' | 'phoenix')
  | ('mlflow' | 'weave' | 'braintrust' | 'logfire' | 'openai-agents' | 'mastra' | 'streams' | 'langchain')
  | ('sharegpt' | 'openai-chat' | 'trace');

/**
 * What {@link readTraces} reads: the path of a file or folder, as a line or a `file:` URL; text or bytes of JSON Lines, arrays or single
 * objects, or a stream of either; or a parsed value. A line that does not begin with `{`, `[` or `"` is a path: give others as bytes.
 */
export type ReadInput =
  | (string | { readonly href: string; readonly protocol: string })
  | (Uint8Array | ArrayBuffer | DataView)
  | (AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>)
  | (ScorableTrace | Readonly<Record<string, unknown>> | readonly unknown[]);

/** Options of {@link readTraces}. */
export interface ReadOptions extends CallOptions {
  /** The format of every record. Without it, each record is recognised by its content. */
  format?: FormatName;
  /** Whether the agents succeeded; takes precedence over the format's own outcome, but not over that of `ReasoningTrace`s. */
  success?: boolean;
}

/**
 * A result of {@link readTraces}: a trace, which the scorer validates, or why there is none, after which reading goes on: `ERR_INVALID_RECORD`
 * with the line of a record, or `ERR_IO` for a file of a folder. In the outcome, null is what nobody knows: the trace has no success then, and
 * a confidence of 0.5.
 */
export type ReadResult =
  | {
      trace: ReasoningTrace;
      outcome: { success: boolean | null; confidence: number | null };
      error?: undefined;
    }
  | { error: KnowledgePulseError; trace?: undefined; outcome?: undefined };

/**
 * Reads the traces in agents' logs, in their order and away from the event loop. Files may be compressed, databases or Parquet; of a folder
 * those of a known format are read. A stream is read as it arrives, and closed when the iteration ends; a row of messages comes with the next
 * one, of which it may be the beginning.
 *
 * @throws `ERR_IO` for a path that cannot be read, `ERR_INVALID_INPUT` for compressed bytes or a promise, when it is read
 */
export function readTraces(
  input: ReadInput,
  options?: ReadOptions,
): AsyncGenerator<ReadResult, void, undefined>;

/** Options of {@link sessions}: those for which all hold. What the user's file `ignore` names is left out in any case. */
export interface SessionsOptions extends CallOptions {
  /** Those that began then or later. */
  since?: Date | string;
  /** Those of this agent, or of these. */
  agent?: FormatName | readonly FormatName[];
  /** Those that worked in a folder of this name, in any case. */
  project?: string;
  /** Not those with these ids, of these projects, or that are in or worked in these files and folders. */
  ignore?: string | readonly string[];
}

/** What is observed in a session. It is no outcome: facts tell success little better than chance. */
export interface Fact {
  name:
    | ('tests passed' | 'tests failed' | 'tests ran' | 'build passed' | 'build failed')
    | ('lint passed' | 'lint failed' | 'committed' | 'pushed' | 'pull request')
    | ('thanked' | 'corrected' | 'interrupted' | 'gave up' | 'late errors' | 'answered');
  /** The step where it is seen last, from 0. */
  step: number;
  /** How often: runs of tests, commits, errors. */
  count: number;
}

/** A result of {@link sessions}: a session, or why a record in its file has none; reading goes on after that. */
export type SessionResult = { file: string } & (
  | Extract<ReadResult, { trace?: undefined }>
  | (Extract<ReadResult, { error?: undefined }> & {
      /** The format in which it was recorded. */
      agent: string;
      /** The name of the folder that it worked in. */
      project: string | null;
      /** When it began, in ISO 8601. */
      createdAt: string | null;
      facts: Fact[];
    })
);

/**
 * Reads the sessions that agents have left on this machine, each once, where
 * {@link https://github.com/openknowledgepulse/native/blob/main/docs/formats.md | they keep them}, away from the event loop.
 */
export function sessions(options?: SessionsOptions): AsyncGenerator<SessionResult, void, undefined>;

/**
 * Makes a trace of the messages of one conversation with OpenAI, Anthropic or the AI SDK.
 *
 * @param options - `success`: whether the agent succeeded; unknown without it
 */
export function traceFromMessages(
  messages: readonly unknown[],
  options?: { success?: boolean },
): ReasoningTrace;

/** Options of {@link clean}. */
export interface CleanOptions {
  /** `aggregated`, the default, and `federated` replace secrets and identifiers, `private` only secrets. */
  level?: PrivacyLevel;
  /** Whether to find more than the SDK, and to number what is replaced: `[REDACTED:email-1]`; `true` by default. */
  strict?: boolean;
  /** Values that stay: texts, and expressions for whole values. */
  allow?: ReadonlyArray<string | RegExp>;
  /** What else is replaced, by the type of the replacement: the expression's first group, or its whole match. */
  rules?: Readonly<Record<string, RegExp>>;
}

/** A clean copy, and how much of each type was replaced in it. */
export interface Cleaned<T> {
  cleaned: T;
  redactions: Array<{ type: string; count: number }>;
}

/**
 * Replaces secrets and personal data in a text, or in all texts and names of a trace, away from the event loop; `@context`, `id`, dates,
 * levels and the like stay. What has no matches is not necessarily safe to share. Expressions are of ASCII, without look-around.
 *
 * @param textOrTrace - copied before the call returns, a trace as `JSON.stringify` reads it
 */
export function clean<T extends string | object>(
  textOrTrace: T,
  options?: CleanOptions & CallOptions,
): Promise<Cleaned<T extends string ? string : T>>;

/** Options of {@link share}, which leaves the folder as it is if it is cancelled. */
export interface ShareOptions extends CallOptions {
  /** `native` by default: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/where-to-share.md | Where to share}. */
  as?: 'native' | 'messages' | 'atif' | 'knowledgepulse';
  clean?: CleanOptions;
}

/**
 * The set after {@link share}: of each session its line of `manifest.jsonl`, whose names are those of Python there (`session_id`); and what
 * was left out, as `trace-3` the third trace.
 */
export interface Manifest {
  sessions: Array<{
    /** The file in the folder. */
    file: string;
    /** The SHA-256 of it, or of its line where it has several sessions, in hexadecimal. */
    sha256: string;
    /** Its sub-agents, each a row of its own. */
    subagents: Array<Pick<Manifest['sessions'][number], 'file' | 'sha256' | 'sessionId' | 'qualityScore'>>;
    /** From 1, in the order in which sessions were added; why; and how many others it stands for. */
    rank: number;
    reason: string;
    standsFor: number;
    id: string | null;
    /** The `session_id` of its row, of a unit the `id`; and the log's own name for it. */
    sessionId: string;
    session: string | null;
    agent: FormatName;
    model: string | null;
    /** The name of the folder that it worked in. */
    project: string | null;
    createdAt: string | null;
    /** Four digits of a digest of its first words, by which a named session without a time is known again. */
    beginning?: string;
    objective: string;
    /** What the user writes, as ISO 639-1 has it, if the words tell it. */
    language: string | null;
    steps: number;
    /** Turns of the user; tokens, a quarter of the bytes, with sub-agents; calls of tools. */
    userTurns: number;
    tokens: number;
    calls: number;
    failedCalls: number;
    callsWithoutResult: number;
    endsWithAnswer: boolean;
    /** Pictures that its trace lacks. */
    pictures: number;
    facts: Fact[];
    /** Whether definitions of its tools were in the log. */
    tools: 'recorded' | 'inferred' | null;
    success: boolean | null;
    confidence: number | null;
    outcomeFrom: 'user' | 'log' | null;
    /** The score of a unit. */
    qualityScore?: number;
    linesLeftOut: number;
    redactions: Record<string, number>;
    /** The places that a person should look at: the line of a file, or its row where it has several sessions, and the field in it. */
    review: Array<{ file: string; line?: number; sessionId?: string; field: string }>;
  }>;
  leftOut: Array<{ name: string; reason: string }>;
}

/**
 * Adds traces, or the sessions in files, cleaned to a folder that others load. A session that it has is added again only if it has grown.
 *
 * @param tracesOrFiles - traces, copied before the call returns, and paths of files, compressed ones, databases and folders; null stands for
 * the sessions of this machine
 * @throws `ERR_IO` if the system refuses a path
 */
export function share(
  tracesOrFiles: ReadonlyArray<ScorableTrace | string> | null,
  folder: string,
  options?: ShareOptions,
): Promise<Manifest>;

/**
 * Embeds the first 512 tokens of each text as the scorer does, on all cores.
 *
 * @returns for each text 384 numbers whose squares add up to 1
 * @throws the code of {@link EmbedderStatus}
 */
export function embed(texts: readonly string[], options?: CallOptions): Promise<Float32Array[]>;

/** Options of {@link configureEmbedder}; {@link https://github.com/openknowledgepulse/native/blob/main/docs/engines.md | Engines} explains them. */
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

/** Configures the embedder of the process, once and before the first call that loads it: after that it throws `ERR_INVALID_OPTION`. */
export function configureEmbedder(options: EmbedderOptions): void;

/** The state of the embedder. Unknown fields are null. */
export interface EmbedderStatus {
  /** Whether the embedder works. */
  available: boolean;
  /** Why not: what to do about it, and a sentence with the file, the problem and the remedy. */
  code: ErrorCode | null;
  reason: string | null;
  modelDirectory: string | null;
  /** The name of the model, from its configuration; `sha256:` and its checksum if it has no name. */
  model: string | null;
  /** SHA-256 of the weights' file in hexadecimal. */
  modelSha256: string | null;
  dtype: 'fp32' | 'q8' | null;
  /** The length of an embedding: 384. */
  dimensions: number | null;
  engine: 'builtin' | 'onnxruntime' | null;
  /** The instructions of the built-in engine, such as `avx512-vnni`, `neon-dot`, `simd128` (WebAssembly) or `portable`. */
  kernel: string | null;
  /** The ONNX Runtime library and its version, if that is the engine. */
  runtimePath: string | null;
  runtimeVersion: string | null;
  /** Threads that one inference computes on. */
  threads: number;
}

/** Loads the embedder if necessary, and returns its state. Never rejects. */
export function embedderStatus(): Promise<EmbedderStatus>;

/** What a caller can do about an error: see {@link https://github.com/openknowledgepulse/native/blob/main/docs/errors.md | Errors}. */
export type ErrorCode =
  | ('ERR_INVALID_TRACE' | 'ERR_INVALID_INPUT' | 'ERR_INVALID_OPTION' | 'ERR_INVALID_RECORD')
  | ('ERR_MODEL_NOT_FOUND' | 'ERR_MODEL_UNUSABLE' | 'ERR_RUNTIME_UNUSABLE')
  | ('ERR_MEMORY_NOT_FOUND' | 'ERR_MEMORY_DAMAGED' | 'ERR_MEMORY_MISMATCH')
  | ('ERR_IO' | 'ERR_OUT_OF_MEMORY')
  | ('ERR_STORE_UNAVAILABLE' | 'ERR_STORE_SCHEMA' | 'ERR_STORE_DROPPED' | 'ERR_STORE')
  | ('ERR_ADDON_LOAD' | 'ERR_INTERNAL');

/**
 * The class of every error of this package, for `instanceof`. A wrong type is a `TypeError` too, a value out of range a `RangeError`. An
 * aborted call rejects with the reason of its signal instead.
 */
export class KnowledgePulseError extends Error {
  private constructor();
  readonly code: ErrorCode;
}
