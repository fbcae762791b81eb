// A program with either package: traces, scores and cleaned texts go from one to the other.

import {
  clean,
  type ReasoningTrace,
  readTraces,
  type ScorableTrace,
  traceFromMessages,
} from '@knowledgepulse/native';
import * as sdk from './index.js';
import type { Cache, CleanResult, PrivacyLevel, Procedure, Trace, Weights } from './types.js';

interface Modules {
  evaluateValue(trace: Trace): Promise<number>;
  _getLocalCache(): Cache;
  VectorCache: new (options?: { maxElements?: number; dimensions?: number; ttlMs?: number }) => Cache;
  cleanPii(text: string, level?: PrivacyLevel): CleanResult;
}
export const modules: Modules = sdk;
/** Where the SDK's own type of the function stands. */
export const evaluate: (trace: Trace) => Promise<number> = sdk.evaluateValue;

/** Where traces go. */
declare function contribute(unit: Trace | Procedure): Promise<string>;
declare const theirs: Trace;
declare const weights: Weights;
declare const result: CleanResult;
export const ours: ReasoningTrace = theirs;
export const back: Trace = ours;
export const readable: ScorableTrace = theirs;
export const ourWeights: sdk.ScoringWeights = weights;
export const theirWeights: Weights = ourWeights;
export const ourResult: sdk.PiiCleanResult = result;
export const theirResult: CleanResult = ourResult;

export async function share(): Promise<string[]> {
  const sent = [await contribute(ours)];
  const cleaned: Trace = (await clean(theirs)).cleaned;
  sent.push(await contribute(cleaned));
  sent.push(await contribute(traceFromMessages([], { success: true })));
  for await (const { trace } of readTraces('')) {
    if (trace) sent.push(await contribute((await clean(trace)).cleaned));
  }
  const scores: number[] = await Promise.all([theirs].map(sdk.evaluateValue));
  return [...sent, ...scores.map(String)];
}

// @ts-expect-error: the SDK has one context
export const older: Trace['@context'] = 'https://knowledgepulse.dev/schema/v1';
// @ts-expect-error: and so have we
export const ourOlder: ReasoningTrace['@context'] = 'https://knowledgepulse.dev/schema/v1';
// @ts-expect-error: the SDK's name is longer
export const shortName: sdk.ScoringWeights = { complexity: 1, novelty: 0, toolDiversity: 0, outcome: 0 };
