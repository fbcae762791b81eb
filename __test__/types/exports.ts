// The declared types in use. This file is compiled, never run.

import * as native from '@knowledgepulse/native';
import {
  type Cleaned,
  type CleanOptions,
  type EmbedderOptions,
  type EmbedderStatus,
  type ErrorCode,
  type FormatName,
  type Manifest,
  type NearestTrace,
  type NoveltyMethod,
  type PrivacyLevel,
  type ReadInput,
  type ReadOptions,
  type ReadResult,
  type ReasoningTrace,
  type ScorableTrace,
  type Score,
  Scorer,
  type ScorerOptions,
  type ScoringWeights,
  type Selection,
  type SelectOptions,
  type SessionResult,
  type SessionsOptions,
  type ShareOptions,
  TraceMemory,
  type Visibility,
} from '@knowledgepulse/native';
import { type PgPool, PostgresStore } from '@knowledgepulse/native/postgres';

// The package needs no types but the language's own.
declare const console: { log(...values: unknown[]): void };
declare const trace: ReasoningTrace;
declare const pool: PgPool;

export const visibility: Visibility = trace.metadata.visibility;
export const privacy: PrivacyLevel = trace.metadata.privacy_level;

/** What is only read may be frozen, and need have no more than what is read. */
const frozen = {
  task: { objective: 'none' },
  steps: [{ type: 'tool_call', content: undefined, tool: { name: 'grep' } }, { type: 'dream' }],
  metadata: { success: true },
  outcome: { confidence: 1 },
} as const;

export async function score(traces: ReasoningTrace[]): Promise<number> {
  const equal: ScoringWeights = {
    complexity: 0.25,
    novelty: 0.25,
    toolDiversity: 0.25,
    outcomeConfidence: 0.25,
  };
  const method: NoveltyMethod = 'lexical';
  const memory: TraceMemory = new TraceMemory({ method, maxElements: 10, ttlMs: 1000 });
  const options: ScorerOptions = { memory, weights: { legal: equal }, embed: false };
  const scorer: Scorer = new Scorer(options);
  const scores: Score[] = await scorer.scoreAll(traces, {
    onProgress: ({ done, total }) => console.log(done / total),
  });
  const one: Score = await scorer.score(frozen, { remember: false, signal: null });
  const nearest: NearestTrace | null = one.nearest;
  const words: string[] = (nearest?.newWords ?? []).map(({ word }) => word);
  const values: number[] = await Promise.all(traces.map(native.evaluateValue));
  const scorable: ScorableTrace = trace;
  await memory.add(scorable);
  const { novelty } = await memory.compare(frozen);
  const [first]: NearestTrace[] = await memory.nearest(frozen, 2);
  await memory.save('memory.safetensors');
  const loaded: TraceMemory = await TraceMemory.load('memory.safetensors');
  loaded.clear();
  const again: TraceMemory = await TraceMemory.fromBytes(await loaded.toBytes(), { signal: null });
  await again.save('memory.safetensors', { signal: null });
  return (
    scores.length +
    one.value +
    words.length +
    values.length +
    novelty +
    (first?.similarity ?? 0) +
    loaded.size
  );
}

export async function others(text: string): Promise<unknown> {
  const select: SelectOptions = { count: '10%', failures: 2, labels: { a: true }, method: 'full' };
  const selection: Selection = await native.select([trace, frozen], select);
  const id: string | null | undefined = selection.chosen[0]?.id;
  const reading: ReadOptions = { format: 'atif', success: true, signal: null };
  const format: FormatName = 'otel';
  const machine: SessionsOptions = { since: new Date(), agent: ['codex'], project: 'shop', ignore: 'a' };
  for await (const { file, error, trace } of native.sessions(machine)) console.log(file, error ?? trace.id);
  const found: SessionResult[] = [];
  for await (const session of native.sessions()) found.push(session);
  const results: ReadResult[] = [];
  const inputs: ReadInput[] = [
    text,
    new Uint8Array(),
    new DataView(new ArrayBuffer(1)),
    [text],
    trace,
    frozen,
  ];
  inputs.push({ href: 'file:///a', protocol: 'file:' }, { messages: [] }, native.readTraces(text) as never);
  for (const input of inputs) native.readTraces(input);
  for await (const result of native.readTraces(text, { format })) results.push(result);
  for await (const { trace, outcome, error } of native.readTraces(text, reading)) {
    if (error) console.log(error.code satisfies ErrorCode, error.message);
    else console.log(trace.steps.length, outcome.success satisfies boolean | null);
  }
  const cleaning: CleanOptions = {
    level: 'private',
    strict: false,
    allow: ['a', /b/],
    rules: { c: /d/ },
  };
  const sharing: ShareOptions = { as: 'messages', clean: cleaning };
  const manifest: Manifest = await native.share([trace, frozen, 'a.jsonl'], 'shared', sharing);
  const known: boolean | undefined = trace.metadata.imported?.known?.success;
  console.log(
    known,
    manifest.sessions[0]?.standsFor,
    manifest.sessions[0]?.review[0]?.line,
    manifest.leftOut.length,
  );
  const cleaned: Cleaned<string> = await native.clean(text, { ...cleaning, signal: null });
  const copy: ReasoningTrace = (await native.clean(trace)).cleaned;
  const made: ReasoningTrace = native.traceFromMessages([{ role: 'user' }], { success: true });
  const [vector]: Float32Array[] = await native.embed(['text'], { signal: null });
  const cache = new native.VectorCache({ maxElements: 10, dimensions: 384, ttlMs: 1000 });
  cache.add(vector ?? [1]);
  const embedder: EmbedderOptions = { modelDirectory: '/models', threads: 2 };
  native.configureEmbedder(embedder);
  const status: EmbedderStatus = await native.embedderStatus();
  const code: ErrorCode | null = status.code;
  const store = new PostgresStore({ pool, method: 'prefix', table: 'memory', hnsw: true });
  const size: number = await store.size();
  await store.flush();
  const scorer = new Scorer({ memory: store });
  return [
    id,
    format,
    found,
    results,
    cleaned,
    copy,
    made,
    code,
    size,
    scorer,
    cache.maxCosineSimilarity([1]),
  ];
}

// What must not compile.
// @ts-expect-error: a format that there is not
native.readTraces('', { format: 'csv' });
// @ts-expect-error: a promise is no input
native.readTraces(Promise.resolve(''));
// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = native.evaluateValue;
// @ts-expect-error: of the class too
export const untypedClass: string = native.VectorCache;
// @ts-expect-error: of the store too
export const untypedStore: string = PostgresStore;
// @ts-expect-error: a function of traces is no array of them
native.select(() => [trace], { count: 1 });
// @ts-expect-error: a trace is needed
native.evaluateValue({});
// @ts-expect-error: it has no options
native.evaluateValue(trace, { remember: false });
// @ts-expect-error: strings are no vectors
new native.VectorCache().add(['a']);
// @ts-expect-error: the size cannot be set
new native.VectorCache().size = 3;
// @ts-expect-error: the level is a string, as the SDK's
native.cleanPii('text', { level: 'private' });
// @ts-expect-error: a method is needed
new TraceMemory({});
// @ts-expect-error: loading takes a while
export const notYet: TraceMemory = TraceMemory.load('memory.safetensors');
// @ts-expect-error: vectors are no memory of a scorer
new Scorer({ memory: new native.VectorCache() });
// @ts-expect-error: weights are complete
new Scorer({ weights: { legal: { complexity: 1 } } });
// @ts-expect-error: an unknown option
new Scorer().score(trace, { sginal: null });
// @ts-expect-error: a pool is needed
new PostgresStore({ method: 'lexical' });
// @ts-expect-error: nobody makes one
new native.KnowledgePulseError();
