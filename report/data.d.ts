// The figures of a report, as crates/command/src/desk writes them into its page. Texts of traces are cut to a length
// there, and are text to the page, never markup.

import type { NoveltyMethod, Score, ScoringWeights, Selection } from '../index.js';

/** The figures of a run. */
export interface Report {
  /** Traces that score as much or more are kept; `null` without a threshold. */
  threshold: number | null;
  /** The names of the first 50 inputs. */
  sources: string[];
  sourceCount: number;
  noveltyMode: NoveltyMethod;
  /** The type of the model's weights; `null` without an embedder. */
  dtype: 'fp32' | 'q8' | null;
  version: string;
  /** When scoring ended, in ISO 8601. */
  finishedAt: string;
  seconds: number;
  /** Whether scoring was ended before everything was read. */
  interrupted: boolean;
  count: number;
  /** How many of them score the threshold or more. */
  kept: number;
  /** How many of them have a known outcome. */
  known: number;
  /** How many of those succeeded. */
  succeeded: number;
  /** How many of them were scored without an embedder. */
  notCompared: number;
  /** The spread of the scores; `null` without traces. */
  scores: Summary | null;
  scoreBins: Bins;
  /** The domains, the largest first: the first 40 that occurred, and `(others)`. */
  domains: Domain[];
  /** The profiles in the order of their first use: the first 40, and `(others)`. */
  profiles: Profile[];
  rules: Partial<Record<Score['overrides'][number]['rule'], number>>;
  duplicates: Duplicates;
  /** The set that was chosen; `null` if none was. */
  selection: ChosenSet | null;
  /** The chosen traces, those that they stand for, and the others by their scores, the highest first: as many as fit into 6 MB. */
  traces: ListedTrace[];
  /** Records that could not be scored: the first 100. */
  errors: {
    count: number;
    first: Array<Pick<ListedTrace, 'source' | 'line' | 'element'> & { message: string }>;
  };
}

/** The quantiles of the scores. */
export type Summary = Record<'min' | 'p10' | 'p25' | 'median' | 'p75' | 'p90' | 'max', number>;

/** A histogram of scores. */
export interface Bins {
  /** How many bins there are from 0 to 1; a multiple of 100. */
  bins: number;
  /** The bins that are not empty, in ascending order. A score of 1 is in the bin with the number `bins`. */
  filled: Array<[bin: number, count: number]>;
}

/** The traces of a domain, with the means of their scores and dimensions. */
export interface Domain {
  /** The `task_domain`; empty if nothing of it can be seen. */
  name: string;
  count: number;
  score: number;
  dimensions: Numbers;
}

/** A profile of weights that was used. */
export interface Profile {
  /** Its name; `null` if nothing of it can be seen. */
  name: string | null;
  weights: ScoringWeights;
  count: number;
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
  size: number;
  /** The lowest similarity of a trace to its nearest. */
  minSimilarity: number;
  /** The highest similarity of a trace to its nearest. */
  maxSimilarity: number;
  /** The first 8 traces. */
  members: Member[];
}

/** A set of traces that was chosen. */
export interface ChosenSet {
  /** How it was chosen, and why it may have fewer traces than were asked for. */
  explanation: string;
  chosen: number;
  /** The coverage before the run, as a part of the coverage by all traces, 0 to 1. */
  coveredBefore: number;
  /** The part that the first chosen trace covers, the first two and so on; beyond the set, to four times its size. */
  curve: number[];
  /** After how many traces the curve bends most; `null` if it hardly bends. */
  knee: number | null;
  /** The first 2000 chosen traces. */
  traces: ChosenTrace[];
}

/** A trace that was chosen. */
export interface ChosenTrace extends Pick<Selection['chosen'][number], 'rank' | 'reason' | 'standsFor'> {
  position: number;
  /** The most similar of the traces that it stands for, at most 4, the most similar first. */
  similar: Array<{ position: number; similarity: number }>;
}

/** Numbers for complexity, novelty, tool diversity and outcome. */
export type Numbers = [complexity: number, novelty: number, toolDiversity: number, outcome: number];

/** A trace, and how its score was made. */
export interface ListedTrace {
  /** How many traces were scored before it. */
  position: number;
  /** Its `id`; `null` if nothing of it can be seen. */
  id: string | null;
  source: string;
  /** The line on which it begins, from 1. */
  line: number;
  /** Its position in the array that it is an element of, from 0; `null` if it is in none. */
  element: number | null;
  /** The beginning of its objective. */
  excerpt: string;
  /** The agent: the format in which it was recorded at first. */
  agent: string;
  /** Its `task_domain`; `null` if nothing of it can be seen. */
  domain: string | null;
  /** Its `metadata.created_at`. */
  createdAt: string | null;
  /** Whether it succeeded; `null` if that is not known. */
  success: boolean | null;
  stepCount: number;
  /** How many places of it a person should look at; `null` if its text was not given. */
  toReview: number | null;
  score: number;
  dimensions: Numbers;
  contributions: Numbers;
  /** The name of its profile of weights; `null` if nothing of it can be seen. */
  profile: string | null;
  overrides: Score['overrides'];
  basis: 'cache' | 'empty-cache' | 'store' | 'empty-store' | 'no-embedder' | 'given';
  /** Whether it had more text than was compared. */
  truncated: boolean;
  nearest: Nearest | null;
  /** Its first 200 steps. Missing where the steps of traces before it in the list fill 8 MB. */
  steps?: Step[];
}

/** The trace that another one resembles most. */
export interface Nearest {
  label: string | null;
  similarity: number;
  lexical?: number;
  contained?: number;
  embedded?: number | null;
  /** The words that weigh most in the similarity, and those of the trace alone. */
  shared?: string[];
  new?: string[];
}

/** A step. */
export interface Step {
  type: string | null;
  tool?: string;
  /** Its first 2000 UTF-16 code units. */
  text: string;
  /** The summary of a call's result. */
  output?: string;
  /** How long the text was, if it was cut. */
  length?: number;
}

/** A trace of a group. One of an earlier run, and one that began a group, has its id alone. */
export interface Member {
  position: number | null;
  id: string | null;
  /** The label of the trace that it resembles most; missing from the trace that began the group. */
  nearest?: string | null;
  similarity?: number;
}
