/**
 * Turns what agents write into reasoning traces: trajectories, conversations, session files and spans. `docs/formats.md` has what each
 * format becomes.
 *
 * @packageDocumentation
 */

import type { KnowledgeUnitMeta, ReasoningTrace } from './index.js';

/**
 * A format that can be read:
 *
 * - `trace`: {@link ReasoningTrace}s, which stay as they are.
 * - `atif`: trajectories of the Agent Trajectory Interchange Format, versions 1.0 to 1.8.
 * - `openai-chat`: conversations of chat APIs: those of OpenAI (Chat Completions and Responses), of Anthropic, of Bedrock (Converse), of
 *   Gemini, and of Vercel's AI SDK.
 * - `claude-code`: session files of Claude Code.
 * - `otel`: spans in OTLP JSON, with the attributes of OpenTelemetry's GenAI conventions, of OpenInference or of Vercel's AI SDK.
 * - `swe-agent`: `.traj` files of SWE-agent and mini-SWE-agent.
 */
export type FormatName = 'trace' | 'atif' | 'openai-chat' | 'claude-code' | 'otel' | 'swe-agent';

/** Options of {@link toTraces}. */
export interface ReadOptions {
  /** The format of every record. Without it, each record is recognised by what is in it. */
  format?: FormatName;
  /** Whether the agents succeeded. It goes before what the format says; traces that are read as they are keep theirs. */
  success?: boolean;
  /** How sure the agents are of their results, 0 to 1. It goes before what the format says. */
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
  /** The line on which it begins, from 1; null if the input is no text. */
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
 * @throws `TypeError` with `code` `ERR_INVALID_INPUT`, when it is read, if a stream is neither of bytes nor of text, if the bytes are
 * compressed or in UTF-16 BE, or if the input is a promise, or a path in place of the contents. What the stream throws is thrown as it is.
 * @example
 * ```ts
 * for await (const { trace, error } of toTraces(createReadStream('trajectory.json'), { success: true })) {
 *   if (trace) console.log(await evaluateValue(trace));
 *   else console.error(error.message);
 * }
 * ```
 */
export function toTraces(input: unknown, options?: ReadOptions): AsyncGenerator<ReadResult, void, undefined>;
