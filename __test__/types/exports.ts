// The declared types in use. This file is compiled, never run.

import type {
  EmbedderOptions,
  EmbedderStatus,
  KnowledgeUnitMeta,
  Neighbour,
  PrivacyLevel,
  ReasoningTrace,
  ReasoningTraceStep,
  ScoringWeights,
  VectorCacheEntry,
  VectorCacheLoadOptions,
  VectorCacheOptions,
  Visibility,
} from '@knowledgepulse/native';
import * as native from '@knowledgepulse/native';
import { type FormatName, type ImportedTrace, toTraces } from '@knowledgepulse/native/formats';

// The package needs no types but the language's own.
declare const console: { log(...values: unknown[]): void };

declare const ours: ReasoningTrace;
export const step: ReasoningTraceStep | undefined = ours.steps[0];
export const meta: KnowledgeUnitMeta = ours.metadata;
export const visibility: Visibility = ours.metadata.visibility;
export const privacy: PrivacyLevel = ours.metadata.privacy_level;

export const literal: ReasoningTrace = {
  '@context': 'https://openknowledgepulse.org/schema/v1',
  '@type': 'ReasoningTrace',
  id: 'kp:trace:0b0e7a0c-6a3e-4f3a-9d6e-2f1f3f8a1c11',
  source_skill: 'kp:skill:triage:1.0.0',
  metadata: {
    created_at: '2026-01-01T00:00:00.000Z',
    task_domain: 'code',
    success: true,
    quality_score: 0.5,
    visibility: 'network',
    privacy_level: 'aggregated',
    validated_by: ['agent-7'],
  },
  task: { objective: 'Fix the build' },
  steps: [
    { step_id: 0, type: 'thought', content: 'Read the log first.' },
    {
      step_id: 1,
      type: 'tool_call',
      tool: { name: 'read_file' },
      input: { path: 'build.log' },
      latency_ms: 3,
    },
  ],
  outcome: { result_summary: 'fixed', confidence: 0.9 },
};

export async function use(): Promise<void> {
  const score: number = await native.evaluateValue(literal);
  const options: VectorCacheOptions = { maxElements: 10, dimensions: 3, ttlMs: 1000 };
  const cache: native.VectorCache = new native.VectorCache(options);
  cache.add(new Float32Array(3));
  cache.add([score, 0, 1]);
  const similarity: number = cache.maxCosineSimilarity(new Float64Array(3));
  cache.add(Float64Array.of(score, 0, 1), 'kp:trace:1');
  const [nearest]: Neighbour[] = cache.nearest([0, 0, 1], 2);
  console.log(nearest?.label?.length, nearest?.similarity, nearest?.index);
  for (const entry of cache) {
    const { vector, label, index }: VectorCacheEntry = entry;
    console.log(vector[index], label?.length);
  }
  const load: VectorCacheLoadOptions = { maxElements: cache.maxElements, ttlMs: cache.ttlMs, model: 'any' };
  await cache.save('memory.safetensors');
  const loaded: native.VectorCache = await native.VectorCache.load('memory.safetensors', load);
  console.log(loaded.dimensions, loaded.model?.model, loaded.model?.dtype satisfies string | undefined);
  const embedder: EmbedderOptions = { modelDirectory: '/models', threads: 2 };
  native.configureEmbedder(embedder);
  const status: EmbedderStatus = await native.embedderStatus();
  if (!status.available) console.log(status.code satisfies string | null, status.reason, similarity);
  const weights: ScoringWeights = {
    complexity: 0.25,
    novelty: 0.35,
    toolDiversity: 0.15,
    outcomeConfidence: 0.25,
  };
  console.log(weights, cache.size);
}

export const cleaned: native.PiiCleanResult = native.cleanPii('text', { level: 'private', strict: true });
export const later: Promise<native.PiiCleanResult> = native.cleanPiiAsync('text', 'federated');

/** As docs/formats.md does it. */
export async function convert(text: string): Promise<number> {
  let failures = 0;
  for await (const { trace, known, format, error } of toTraces(text, { format: 'atif', success: true })) {
    if (error) {
      failures += error.message.length;
      continue;
    }
    const name: FormatName = format;
    const imported = (trace as ImportedTrace).metadata.imported.left_out?.[name] ?? 0;
    failures += (await native.evaluateValue(trace)) + Number(known.success) + imported;
  }
  return failures;
}

// What must not compile.
// @ts-expect-error: a format that there is not
toTraces('', { format: 'csv' });
// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = native.evaluateValue;
// @ts-expect-error: of the class too
export const untypedClass: string = native.VectorCache;
// @ts-expect-error: a function of traces is no array of them
native.select(() => [ours], { count: 1 });
// @ts-expect-error: a trace is needed
native.evaluateValue({});
// @ts-expect-error: an unknown step type
export const badStep: ReasoningTraceStep = { step_id: 0, type: 'dream' };
// @ts-expect-error: strings are no vectors
new native.VectorCache().add(['a']);
// @ts-expect-error: the size cannot be set
new native.VectorCache().size = 3;
// @ts-expect-error: a label is a string
new native.VectorCache().add([1], null);
// @ts-expect-error: there is no such level
native.cleanPii('text', 'public');
// @ts-expect-error: nothing can abort it while it runs
native.cleanPii('text', { signal: new AbortController().signal });
// @ts-expect-error: loading takes a while
export const notYet: native.VectorCache = native.VectorCache.load('memory.safetensors');
// @ts-expect-error: nothing else can be asked of the model
native.VectorCache.load('memory.safetensors', { model: 'none' });
