// The sub-path exports stand in for the SDK's modules of the same names. This file is compiled, never run.

import type * as native from '@knowledgepulse/native';
import { type FormatName, type ImportedTrace, toTraces } from '@knowledgepulse/native/formats';
import { type CleanedText, cleanPii, cleanPiiAsync, cleanTrace } from '@knowledgepulse/native/pii';
import {
  _getLocalCache,
  evaluateValue,
  evaluateValues,
  type ReasoningTrace,
  type ScoringWeights,
} from '@knowledgepulse/native/scoring';
import {
  type Neighbour,
  VectorCache,
  type VectorCacheEntry,
  type VectorCacheLoadOptions,
  type VectorCacheOptions,
} from '@knowledgepulse/native/vector-cache';

export const sameClass: typeof native.VectorCache = VectorCache;
export const sameFunction: typeof native.evaluateValue = evaluateValue;
export const sameClean: typeof native.cleanPii = cleanPii;
export const cleaned: CleanedText = cleanPii('text', { level: 'private', strict: true });
export const later: Promise<CleanedText> = cleanPiiAsync('text', 'federated');
export const cache: VectorCache = _getLocalCache();
export const options: VectorCacheOptions = { maxElements: 1 };
export const loadOptions: VectorCacheLoadOptions = { model: 'check' };
export const nearest: Neighbour[] = cache.nearest([1]);
export const entries: VectorCacheEntry[] = Array.from(cache);
export const weights: ScoringWeights = {
  complexity: 0.25,
  novelty: 0.35,
  toolDiversity: 0.15,
  outcome: 0.25,
};

export async function share(trace: ReasoningTrace): Promise<ReasoningTrace> {
  return (await cleanTrace(trace, { strict: true })).trace;
}

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
    failures += (await evaluateValue(trace)) + Number(known.success) + imported;
  }
  return failures;
}

export async function use(trace: ReasoningTrace): Promise<number> {
  const [first = 0] = await evaluateValues([trace]);
  return first;
}

// What must not compile.
// @ts-expect-error: a format that there is not
toTraces('', { format: 'csv' });
// @ts-expect-error: types that were not found would be `any`, and take anything
export const untyped: string = evaluateValue;
// @ts-expect-error: of the class too
export const untypedClass: string = VectorCache;
