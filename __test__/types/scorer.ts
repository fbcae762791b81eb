// The scorer and what goes with it. This file is compiled, never run.

import {
  type BatchProgress,
  type CallOptions,
  embed,
  evaluateValue,
  evaluateValues,
  explain,
  type ReadonlyReasoningTrace,
  type ReasoningTrace,
  type ScoreBreakdown,
  type ScoreOverride,
  Scorer,
  type ScorerOptions,
  TraceMemory,
  VectorCache,
} from '@knowledgepulse/native';

declare const signal: NonNullable<CallOptions['signal']>;

const equal = { complexity: 0.25, novelty: 0.25, toolDiversity: 0.25, outcomeConfidence: 0.25 };
const options: ScorerOptions<VectorCache> = {
  memory: new VectorCache(),
  embedder: null,
  weights: { legal: equal },
};

export async function use(trace: ReasoningTrace): Promise<number> {
  const scorer: Scorer = new Scorer(options);
  const onProgress = ({ done, total }: BatchProgress): number => done / total;
  const scores: number[] = await scorer.evaluateValues([trace], { signal, onProgress });
  const more: number[] = await evaluateValues([trace] as const, { signal });
  const score: number = await scorer.evaluateValue(trace, { signal });
  const breakdown: ScoreBreakdown = await scorer.explain(trace, { signal, remember: false });
  const rules: ScoreOverride['rule'][] = breakdown.overrides.map(({ rule }) => rule);
  const label: string | null | undefined = (await explain(trace)).nearest?.label;
  const cache: VectorCache = scorer.memory;
  const [first]: Float32Array[] = await embed(['text'], { signal, onProgress });
  if (first) cache.add(first);
  return scores.length + more.length + score + rules.length + (label?.length ?? 0) + (first?.length ?? 0);
}

/** The functions take options, or are handed to `map`, which passes an index. */
export async function map(traces: ReasoningTrace[]): Promise<number> {
  const options = { signal };
  const [trace] = traces;
  if (trace === undefined) return 0;
  const one: number = await evaluateValue(trace, options);
  const more: number[] = await evaluateValues(traces, options);
  const explained: ScoreBreakdown = await explain(trace, { ...options, remember: false });
  const scores: number[] = await Promise.all(traces.map(evaluateValue));
  const breakdowns: ScoreBreakdown[] = await Promise.all(traces.map(explain));
  const batches: number[][] = await Promise.all([traces, traces].map(evaluateValues));
  // Wrappers see the options.
  const again: Parameters<typeof evaluateValue> = [trace, options];
  const twice: (trace: ReasoningTrace) => Promise<number> = evaluateValue;
  return [one, more, explained, scores, breakdowns, batches, again, twice].length;
}

/** What is only read may be frozen. */
export async function useFrozen(trace: ReasoningTrace): Promise<number> {
  const frozen = {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id: 'kp:trace:1',
    metadata: {
      created_at: '2025-01-01T00:00:00Z',
      task_domain: 'code',
      success: true,
      quality_score: 0,
      visibility: 'private',
      privacy_level: 'private',
      validated_by: ['kp:agent:1'],
    },
    task: { objective: 'none', input_schema: { type: 'object' } },
    steps: [{ step_id: 0, type: 'tool_call', content: 'c', tool: { name: 'grep' }, input: { lines: [1] } }],
    outcome: { result_summary: 'none', confidence: 1 },
    knowledge_graph_delta: {
      entities: [{ name: 'a', type: 'b' }],
      relationships: [{ fact: 'c', valid_from: 'd' }],
    },
  } as const;
  const traces: readonly ReadonlyReasoningTrace[] = Object.freeze([
    frozen,
    { ...trace, steps: Object.freeze(trace.steps) },
  ]);
  const vectors: readonly (readonly number[])[] = [[1, 0]];
  const cache = new VectorCache(Object.freeze({ dimensions: 2 } as const));
  cache.add(vectors[0] ?? [], 'a');
  cache.nearest([1, 0] as const, 1);
  const texts: readonly string[] = ['a'];
  await embed(texts, { signal } as const);
  const scorer = new Scorer({ weights: { legal: equal } } as const);
  const method: string | undefined = cache.method;
  const scores = await Promise.all([evaluateValue(frozen), scorer.evaluateValue(frozen), explain(frozen)]);
  const memory = new TraceMemory();
  await memory.add(frozen);
  const { novelty } = await memory.compareAndAdd(frozen, { signal } as const);
  const near = [...(await memory.nearest(frozen)), (await memory.compare(frozen)).nearest];
  const digest = TraceMemory.digest(frozen);
  return [scores, await evaluateValues(traces), method, novelty, near, digest].length;
}

/** What a scorer remembers in depends on how it compares. */
export async function compareWords(trace: ReasoningTrace): Promise<number> {
  const memory = await TraceMemory.load('traces.safetensors');
  const lexical = new Scorer({ memory, embedder: null });
  const full: Scorer<TraceMemory> = new Scorer({ memory: new TraceMemory({ novelty: 'full' }) });
  const remembered: TraceMemory = full.memory;
  const { nearest } = await full.explain(trace);
  const parts: Array<number | null | undefined> = [nearest?.lexical, nearest?.contained, nearest?.embedded];
  const words: string[] = (nearest?.newWords ?? []).map(({ word }) => word);
  return words.length + lexical.memory.size + remembered.size + parts.length;
}

// What must not compile.
// @ts-expect-error: an unknown option
evaluateValue({} as ReasoningTrace, { sginal: signal });
// @ts-expect-error: an index is a number
evaluateValue({} as ReasoningTrace, '1');
// @ts-expect-error: one trace is not asked about
evaluateValue({} as ReasoningTrace, { remember: false });
// @ts-expect-error: methods take options alone
[{} as ReasoningTrace].map(new Scorer().evaluateValue);
// @ts-expect-error: the memory of a scorer is that which it was made with
new Scorer().memory = new VectorCache();
// @ts-expect-error: weights are complete
new Scorer({ weights: { legal: { complexity: 1 } } });
// @ts-expect-error: the memory says how traces are compared
new Scorer({ novelty: 'full' });
// @ts-expect-error: words are not remembered in a cache
new Scorer({ memory: new TraceMemory() }).memory.maxCosineSimilarity;
