// The figures of a report, as crates/command/src/report writes them into its page. Texts of traces are cut to a length
// there, and are text to the page, never markup.

import type { ExplainedWord, ScoreBreakdown } from '../index.js';

/** The figures of a run. */
export interface Report {
  /** Traces that score as much or more are kept. */
  threshold: number;
  /** The names of the first 50 inputs. */
  sources: string[];
  /** How many inputs there were. */
  sourceCount: number;
  /** How traces were compared. */
  noveltyMode: 'prefix' | 'lexical' | 'full';
  /** The type of the model's weights; `null` without an embedder. */
  dtype: 'fp32' | 'q8' | null;
  /** The version of this package. */
  version: string;
  /** When scoring ended, in ISO 8601. */
  finishedAt: string;
  /** How long scoring took. */
  seconds: number;
  /** Whether scoring was ended before everything was read. */
  interrupted: boolean;
  /** How traces were cleaned; `null` if they were not. */
  cleaned: Cleaning | null;
  /** How many traces were scored. */
  count: number;
  /** How many of them score the threshold or more. */
  kept: number;
  /** How many of them succeeded. */
  succeeded: number;
  /** How many of them had more text than was read. */
  truncated: number;
  /** The spread of the scores; `null` without traces. */
  scores: Summary | null;
  /** The histogram of the scores. */
  scoreBins: Bins;
  /** The domains, the largest first: the first 40 that occurred, and `(others)`. */
  domains: Domain[];
  /** The profiles in the order of their first use: the first 40, and `(others)`. */
  profiles: Profile[];
  /** How many traces each rule applied to. */
  rules: Partial<Record<Override['rule'], number>>;
  /** How many traces have each kind of novelty. */
  bases: Partial<Record<Basis, number>>;
  /** The novelty of the traces in the order of scoring. */
  novelty: Sequence;
  /** Where the first 50 inputs begin, in the order of scoring. */
  starts: Start[];
  /** Traces that resemble an earlier one. */
  duplicates: Duplicates;
  /** The set that was chosen; `null` if none was. */
  selection: ChosenSet | null;
  /** The 10 traces with the highest scores, the highest first. */
  best: Trace[];
  /** The 10 traces with the lowest scores, the lowest first, without the best traces. */
  worst: Trace[];
  /** Records that could not be scored. */
  errors: Errors;
}

/** The cleaning level and the replacements. */
export interface Cleaning {
  /** The SDK's level of privacy. */
  level: 'aggregated' | 'federated' | 'private';
  /** Whether kinds were replaced that the SDK does not know. */
  strict: boolean;
  /** How many texts were replaced, by their types. */
  redactions: Record<string, number>;
}

/** The spread of some values. Quantiles are exact to a bin: 0.0001 of scores, 0.001 of dimensions. */
export interface Summary {
  /** The least value. */
  min: number;
  /** The 10th percentile. */
  p10: number;
  /** The 25th percentile. */
  p25: number;
  /** The 50th percentile. */
  median: number;
  /** The 75th percentile. */
  p75: number;
  /** The 90th percentile. */
  p90: number;
  /** The largest value. */
  max: number;
  /** The arithmetic mean. */
  mean: number;
}

/** A histogram of scores. */
export interface Bins {
  /** How many bins there are from 0 to 1; a multiple of 100. */
  bins: number;
  /** The bins that are not empty, in ascending order. A score of 1 is in the bin with the number `bins`. */
  filled: Array<[bin: number, count: number]>;
}

/** The traces of a domain. */
export interface Domain {
  /** The `task_domain`; empty if nothing of it can be seen. */
  name: string;
  /** How many traces there are. */
  count: number;
  /** How many of them score the threshold or more. */
  kept: number;
  /** The spread of the scores. */
  score: Summary;
  /** The spread of the complexity. */
  complexity: Summary;
  /** The spread of the novelty. */
  novelty: Summary;
  /** The spread of the tool diversity. */
  toolDiversity: Summary;
  /** The spread of the outcome. */
  outcome: Summary;
  /** The histogram of the scores. */
  scoreBins: Bins;
}

/** A profile of weights that was used. */
export interface Profile {
  /** Its name; `null` if nothing of it can be seen. */
  name: string | null;
  /** How much each dimension counts. */
  weights: ScoreBreakdown['weights'];
  /** How many traces were scored with it. */
  count: number;
}

/** The basis of novelty; a memory in the process and one in a store count alike. */
export type Basis = 'memory' | 'empty-memory' | 'no-embedder' | 'given';

/** A long sequence of values in buckets of equal width. */
export interface Sequence {
  /** How many values a bucket takes; the last one may have fewer. */
  width: number;
  /** The buckets in order, 2000 at most, with values to four decimals. */
  buckets: Array<[mean: number, min: number, max: number, count: number]>;
}

/** Where an input begins. */
export interface Start {
  /** The name of the input. */
  source: string;
  /** How many traces were scored before its first one. */
  position: number;
}

/** Traces that resemble an earlier one. */
export interface Duplicates {
  /** The similarity from which on traces count as near-duplicates. */
  similarity: number;
  /** How many traces have that similarity to an earlier one. */
  count: number;
  /** In how many groups they are. */
  groupCount: number;
  /** The 30 largest groups, the largest first. */
  groups: Group[];
}

/** Traces that are linked by their similarity. */
export interface Group {
  /** How many traces it has. */
  size: number;
  /** The lowest similarity of a trace to its nearest. */
  minSimilarity: number;
  /** The highest similarity of a trace to its nearest. */
  maxSimilarity: number;
  /** The first 8 traces. Traces of earlier runs come first. */
  members: Member[];
  /** The positions of its traces, ascending; of many traces at most 256, spread over all. */
  positions: number[];
}

/** A set of traces that was chosen. */
export interface ChosenSet {
  /** By which rule, and why. */
  explanation: string;
  /** How many traces were chosen. */
  chosen: number;
  /** The coverage before the run, as a part of the coverage by all traces, 0 to 1. */
  coveredBefore: number;
  /** The part that the first chosen trace covers, the first two and so on; beyond the set, to four times its size. */
  curve: number[];
  /** After how many traces the curve bends most; `null` if it hardly bends. */
  knee: number | null;
  /** The first 200 chosen traces. */
  traces: ChosenTrace[];
}

/** A trace on the map, where similar traces are near each other. */
export interface MappedTrace extends ListedTrace {
  /** From -1 to 1. */
  x: number;
  /** From -1 to 1. */
  y: number;
}

/** A trace that was chosen. */
export interface ChosenTrace extends MappedTrace {
  /** Its place in the set, from 1. */
  rank: number;
  /** Why it was chosen. */
  reason: 'coverage' | 'failure';
  /** For how many traces it stands. */
  standsFor: number;
  /** The most similar of these, at most 16, the most similar first. */
  similar: Array<
    MappedTrace & {
      /** The similarity to the chosen trace. */
      similarity: number;
    }
  >;
}

/** The place of a trace on the map, and its task. */
export interface ListedTrace {
  /** How many traces were scored before it. */
  position: number;
  /** The same as `position`. */
  index: number;
  /** Its `id`; `null` if nothing of it can be seen. */
  id: string | null;
  /** The name of its input. */
  source: string;
  /** The line on which it begins, from 1. */
  line: number;
  /** Its position in the array that it is an element of, from 0; `null` if it is in none. */
  element: number | null;
  /** Its score. */
  score: number;
  /** The beginning of its objective. */
  excerpt: string;
}

/** A trace of a group. One of an earlier run has its id alone. */
export type Member = (
  | ListedTrace
  | ({ id: string; position: null } & Partial<Omit<ListedTrace, 'id' | 'position'>>)
) & {
  /** The label of the trace that it resembles most; missing from the trace that began the group. */
  nearest?: string | null;
  /** The similarity to that trace. */
  similarity?: number;
};

/** A trace with all that explains its score. */
export interface Trace extends ListedTrace {
  /** Its `task_domain`; `null` if nothing of it can be seen. */
  domain: string | null;
  /** Whether it succeeded. */
  success: boolean;
  /** The numbers from which its score was computed. */
  breakdown: Breakdown;
}

/** The numbers from which a score was computed, with names that are cut to a length. */
export type Breakdown = Omit<ScoreBreakdown, 'profile' | 'nearest'> & {
  /** The name of the profile; `null` if nothing of it can be seen. */
  profile: string | null;
  /** The trace that resembles it most; `null` if nothing was remembered. */
  nearest: Nearest | null;
};

/** A rule that changed a score. */
export type Override = ScoreBreakdown['overrides'][number];

/** The remembered trace that resembles a trace most. */
export interface Nearest {
  /** How similar it is. */
  similarity: number;
  /** The similarity of the words; `null` if words were not compared. */
  lexical: number | null;
  /** The share of the trace's words, by weight, that are in it; `null` if words were not compared. */
  contained: number | null;
  /** The similarity of the embeddings of their digests; `null` if these were not compared. */
  embedded: number | null;
  /** The words of both that weigh most; `null` if words were not compared. */
  sharedWords: ExplainedWord[] | null;
  /** The words of the trace alone that weigh most; `null` if words were not compared. */
  newWords: ExplainedWord[] | null;
  /** Its label; `null` if nothing of it can be seen. */
  label: string | null;
}

/** Records that could not be scored. */
export interface Errors {
  /** How many there were. */
  count: number;
  /** The first 100. */
  first: BadRecord[];
}

/** A record that could not be scored. */
export interface BadRecord {
  /** The name of its input. */
  source: string;
  /** The line on which it begins, from 1. */
  line: number;
  /** Its position in the array that it is an element of, from 0; `null` if it is in none. */
  element: number | null;
  /** Why it could not be scored. */
  message: string;
}
