// The declared types in use. This file is compiled, never run.

import * as native from '@knowledgepulse/native';
import {
  type Cleaned,
  type CleanOptions,
  type ErrorCode,
  type FormatName,
  type Manifest,
  type ReadInput,
  type ReadResult,
  type ReasoningTrace,
  type ScorableTrace,
  type Score,
  Scorer,
  type ScoringWeights,
  type Selection,
  TraceMemory,
} from '@knowledgepulse/native';
import { type PgPool, PostgresStore } from '@knowledgepulse/native/postgres';

// The package needs no types but the language's own.
declare const console: { log(...values: unknown[]): void };
declare const trace: ReasoningTrace;
declare const pool: PgPool;

/** The types of options and results that no program below names. */
export type Named = [
  native.EmbedderOptions,
  native.EmbedderStatus,
  native.NearestTrace,
  native.NoveltyMethod,
  native.PrivacyLevel,
  native.ReadOptions,
  native.ScorerOptions,
  native.SelectOptions,
  native.SessionResult,
  native.SessionsOptions,
  native.ShareOptions,
  native.Visibility,
];

/** What is only read may be frozen, and need have no more than what is read. */
const frozen = {
  task: { objective: 'none' },
  steps: [{ type: 'tool_call', content: undefined, tool: { name: 'grep' } }, { type: 'dream' }],
  metadata: { success: true },
  outcome: { confidence: 1 },
} as const satisfies ScorableTrace;

export async function score(traces: ReasoningTrace[]): Promise<unknown> {
  const equal: ScoringWeights = { complexity: 1, novelty: 0, toolDiversity: 0, outcomeConfidence: 0 };
  const memory = new TraceMemory({ method: 'lexical', maxElements: 10, ttlMs: 1000 });
  const scorer = new Scorer({ memory, weights: { legal: equal }, embed: false });
  const onProgress = ({ done, total }: { done: number; total: number }) => console.log(done / total);
  const scores: Score[] = await scorer.scoreAll(traces, { onProgress });
  const one: Score = await scorer.score(frozen, { remember: false, signal: null });
  const words: string[] = (one.nearest?.newWords ?? []).map(({ word }) => word);
  const values: number[] = await Promise.all(traces.map(native.evaluateValue));
  await memory.add(trace);
  const { novelty } = await memory.compare(frozen);
  const again: TraceMemory = await TraceMemory.fromBytes(await memory.toBytes(), { signal: null });
  await again.save('memory.safetensors', { signal: null });
  const store = new PostgresStore({ pool, method: 'prefix', table: 'memory', hnsw: true });
  const size: number = await store.size();
  return [scores, words, values, novelty, size, new Scorer({ memory: store })];
}

export async function others(text: string): Promise<unknown> {
  const selection: Selection = await native.select([trace, frozen], {
    ...{ count: '10%', failures: 2, labels: { a: true }, method: 'full' },
  });
  const machine = { since: new Date(), agent: ['codex'], project: 'shop', ignore: 'a' } as const;
  for await (const { file, error, trace } of native.sessions(machine)) console.log(file, error ?? trace.id);
  const inputs: ReadInput[] = [
    text,
    new Uint8Array(),
    new DataView(new ArrayBuffer(1)),
    [text],
    trace,
    frozen,
  ];
  inputs.push({ href: 'file:///a', protocol: 'file:' }, { messages: [] }, native.readTraces(text) as never);
  const format: FormatName = 'otel';
  const results: ReadResult[] = [];
  for await (const result of native.readTraces(text, { format, success: true })) results.push(result);
  for await (const { trace, outcome, error } of native.readTraces(text)) {
    if (error) console.log(error.code satisfies ErrorCode, error.message);
    else console.log(trace.steps.length, outcome.success satisfies boolean | null);
  }
  const cleaning: CleanOptions = { level: 'private', strict: false, allow: ['a', /b/], rules: { c: /d/ } };
  const cleaned: Cleaned<string> = await native.clean(text, { ...cleaning, signal: null });
  const copy: ReasoningTrace = (await native.clean(trace)).cleaned;
  const shared: Manifest = await native.share([trace, frozen, 'a.jsonl'], 'shared', { clean: cleaning });
  const review: number | undefined = shared.sessions[0]?.review[0]?.line;
  const [vector]: Float32Array[] = await native.embed(['text'], { signal: null });
  const similarity: number = new native.VectorCache().maxCosineSimilarity(vector ?? [1]);
  return [selection, results, cleaned, copy, review, similarity];
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
