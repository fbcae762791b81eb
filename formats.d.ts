/**
 * Converts logs of agents to reasoning traces: trajectories, conversations, session files and spans. See `docs/formats.md`.
 *
 * @packageDocumentation
 */

import type { KnowledgeUnitMeta, ReasoningTrace } from './index.js';

/**
 * A format that can be read:
 *
 * - `trace`: {@link ReasoningTrace}s, which stay as they are.
 * - `atif`: trajectories of the Agent Trajectory Interchange Format, versions 1.0 to 1.8.
 * - `openai-chat`: conversations of chat APIs: OpenAI (Chat Completions and Responses), Anthropic, Bedrock (Converse),
 *   Gemini, and Vercel's AI SDK.
 * - `claude-code`: session files of Claude Code.
 * - `codex`: rollouts of Codex, the files of its sessions, and the output of `codex exec --json`.
 * - `gemini-cli`: sessions and checkpoints of Gemini CLI.
 * - `pi`: sessions of Pi, and of the Session Trace Simple Format of the Hub of Hugging Face.
 * - `qwen-code`: sessions of Qwen Code.
 * - `cursor`: transcripts of Cursor's CLI, and composers of its IDE.
 * - `copilot-cli`, `copilot-chat`: sessions of GitHub Copilot CLI, and chat sessions of VS Code.
 * - `opencode`: sessions of opencode and its forks.
 * - `cline`: sessions of Cline, Roo Code and Kilo Code.
 * - `goose`, `droid`, `hermes`, `kimi`, `grok`, `crush`, `kiro`, `antigravity`, `continue`, `zed`, `amp`, `letta`, `aider`: sessions of these agents.
 * - `openhands`: events of OpenHands, of its server and its SDK, and the output of its evaluations.
 * - `inspect`: logs of Inspect, in JSON and as archives (`.eval`).
 * - `langchain`: messages of LangChain, and states of LangGraph.
 * - `sharegpt`: conversations of data sets for fine-tuning, in the form of ShareGPT.
 * - `langsmith`, `langfuse`, `phoenix`: runs of LangSmith, traces and observations of Langfuse, and spans of Arize Phoenix, as these export them.
 * - `mlflow`, `weave`, `braintrust`, `logfire`: traces of MLflow, calls of Weave, spans of Braintrust, and rows of Logfire.
 * - `otel`: spans in OTLP JSON, with the attributes of OpenTelemetry's GenAI conventions, of OpenInference or of Vercel's AI SDK.
 * - `swe-agent`: `.traj` files of SWE-agent and mini-SWE-agent.
 * - `map`: any other format, which a {@link TraceMap} describes.
 */
export type FormatName =
  | 'trace'
  | 'atif'
  | 'openai-chat'
  | 'langchain'
  | 'sharegpt'
  | 'claude-code'
  | 'codex'
  | 'gemini-cli'
  | 'qwen-code'
  | 'pi'
  | 'cursor'
  | 'copilot-cli'
  | 'copilot-chat'
  | 'opencode'
  | 'cline'
  | 'goose'
  | 'droid'
  | 'hermes'
  | 'kimi'
  | 'grok'
  | 'crush'
  | 'kiro'
  | 'antigravity'
  | 'continue'
  | 'zed'
  | 'amp'
  | 'letta'
  | 'aider'
  | 'openhands'
  | 'inspect'
  | 'langsmith'
  | 'langfuse'
  | 'phoenix'
  | 'mlflow'
  | 'weave'
  | 'braintrust'
  | 'logfire'
  | 'otel'
  | 'swe-agent'
  | 'map';

/** Where a value is: names with dots between them (`run.steps`), or a JSON Pointer (`/run/steps`). `*` is every element or member. */
export type MapPath = string;

/** Whether something holds: the path finds something that is neither false, 0 nor empty, or the value, or one of a list of them. */
export type MapTest = MapPath | { at: MapPath; is: unknown };

/** Says where things are in records of a format that has no reader. `docs/formats.md` has examples. */
export interface TraceMap {
  /** The messages of a record. */
  messages: MapPath;
  /** The record's id. */
  id?: MapPath;
  /** The agent's task, in the record. */
  task?: MapPath;
  /** When the record began. */
  time?: MapPath;
  /** Whether the agent succeeded, in the record. */
  success?: MapTest;
  /** A verifier's reward, in the record. */
  reward?: MapPath;
  /** Who speaks, in a message. Without it, the agent does. */
  role?: MapPath;
  /** The format's own words for these roles. */
  roles?: Record<string, 'system' | 'user' | 'assistant' | 'reasoning' | 'tool' | 'skip'>;
  /** The text of a message. */
  text?: MapPath;
  /** The agent's reasoning, in a message. */
  reasoning?: MapPath;
  /** The calls of a message; an empty path where the message is one. */
  calls?: MapPath;
  /** The parts of a call, and of its result if that is there too. */
  call?: { id?: MapPath; name: MapPath; input?: MapPath; result?: MapPath; failed?: MapTest };
  /** The parts of a message with the role `tool`. Without `text`, it has that of messages. */
  result?: { id?: MapPath; text?: MapPath; failed?: MapTest };
}

/** Options of {@link toTraces}. */
export interface ReadOptions {
  /** The format of every record. Without it, each record is recognised by its content. */
  format?: Exclude<FormatName, 'map'>;
  /** How to read records of any other format; it is taken for every record that is no trace. */
  map?: TraceMap;
  /**
   * Whether the agents succeeded. Takes precedence over the format's own outcome, except in `ReasoningTrace`s, which keep
   * theirs.
   */
  success?: boolean;
  /** How sure the agents are of their results, 0 to 1. Takes precedence as `success` does. */
  confidence?: number;
  /** `metadata.task_domain` of the traces, which selects the weights. By default `code` for coding agents, else `default`. */
  domain?: string;
  /**
   * The path of the input: beside it there may be a file with the outcome, as `result.json` of Harbor, and in its directory or below
   * files of sub-agents that a trajectory refers to. They are read synchronously.
   */
  file?: string;
}

/** Whether success and confidence of a trace are known, from the format or from the options. */
export interface Known {
  /** If not known, `metadata.success` is false. */
  success: boolean;
  /** If not known, `outcome.confidence` is 0.5. */
  confidence: boolean;
}

/** Details of the original of a converted trace. */
export interface Imported {
  format: FormatName;
  known: Known;
  /** The number of parts that became no step, by kind: system messages, images, unknown fields. */
  left_out?: Record<string, number>;
  /** Other details of the format: ids, the model, metrics. */
  [detail: string]: unknown;
}
/** A trace that was converted from another format. */
export interface ImportedTrace extends ReasoningTrace {
  metadata: KnowledgeUnitMeta & { imported: Imported };
}

/** A trace that was read. */
export interface ReadTrace {
  /** The line on which it begins, from 1, or the number of a sample in an archive; null if the input is no text. */
  line: number | null;
  /** The position in the array that it is an element of, from 0; otherwise null. */
  index: number | null;
  /** The format of the record. */
  format: FormatName;
  /** A trace of the format `trace` is not validated; the scorer does that. */
  trace: ReasoningTrace | ImportedTrace;
  known: Known;
  error?: undefined;
}

/** A record that cannot be read, or a conversation without a step. Reading goes on after it. */
export interface ReadError {
  line: number | null;
  index: number | null;
  /** Has the `code` `ERR_INVALID_RECORD`; the message names the line. */
  error: Error;
  trace?: undefined;
  format?: undefined;
  known?: undefined;
}

/** A result of {@link toTraces}. */
export type ReadResult = ReadTrace | ReadError;

/**
 * Reads the traces in logs of agents. A stream is read as it arrives: one record of at most 64 MB is held at a time, and at most 256 MB of
 * unfinished traces in formats that spread a trace over several records. The stream is closed when the iteration ends.
 *
 * @param input - text, bytes or a stream (also any iterable but an array) of either, which hold JSON Lines, arrays or single objects;
 * or a value that is parsed already. Bytes are UTF-8 or UTF-16 LE.
 * @param options - details of the input
 * @returns the traces in the order of the input, and an error for each bad record
 * @throws `TypeError` or `RangeError` with `code` `ERR_INVALID_OPTION`, at once, if an option has the wrong type or value, or if the
 * call has no such option.
 * @throws `TypeError` with `code` `ERR_INVALID_INPUT`, when it is read, if a stream is neither of bytes nor of text, if the
 * bytes are compressed or in UTF-16 BE, or if the input is a promise, or a path in place of the contents. Errors of the
 * stream are passed on unchanged.
 * @example
 * ```ts
 * for await (const { trace, error } of toTraces(createReadStream('trajectory.json'), { success: true })) {
 *   if (trace) console.log(await evaluateValue(trace));
 *   else console.error(error.message);
 * }
 * ```
 */
export function toTraces(input: unknown, options?: ReadOptions): AsyncGenerator<ReadResult, void, undefined>;
