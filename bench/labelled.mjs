// The labelled runs of agents, which are not part of the repository.

import fs from 'node:fs';
import path from 'node:path';

import { readTraces, sharedTraces } from '../__test__/support/paths.js';

const SETS = ['tau-airline', 'hotpot'];

/**
 * Returns the sets that there are, as paths without an ending.
 *
 * @param {string[]} [named] paths of other sets
 */
export function labelledSets(named = []) {
  const all = named.length > 0 ? named : SETS.map((name) => path.join(path.dirname(sharedTraces), name));
  const sets = all.filter((file) => fs.existsSync(`${file}.labels.jsonl`));
  if (sets.length > 0) return sets;
  throw new Error('there are no labelled traces: KNOWLEDGEPULSE_TRACES names a file beside them');
}

/** @type {WeakMap<import('../index.js').ReasoningTrace, Map<string, number>>} */
const frequencies = new WeakMap();

/**
 * Returns the words of a trace with 1 + ln of their counts.
 *
 * @param {import('../index.js').ReasoningTrace} trace
 */
function frequenciesOf(trace) {
  const known = frequencies.get(trace);
  if (known !== undefined) return known;
  /** @type {Map<string, number>} */
  const counts = new Map();
  const text = [trace.task.objective, ...trace.steps.map(({ content }) => content ?? '')].join('\n');
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}_]+/gu))
    counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) counts.set(word, 1 + Math.log(count));
  frequencies.set(trace, counts);
  return counts;
}

/**
 * @param {string} file without its ending
 * @returns {Array<{ trace: import('../index.js').ReasoningTrace, task: string, success: boolean }>}
 */
export function readLabelled(file) {
  const labels = fs.readFileSync(`${file}.labels.jsonl`, 'utf8').trim().split('\n');
  const byId = new Map(labels.map((line) => JSON.parse(line)).map((label) => [label.id, label]));
  return readTraces(`${file}.jsonl`).map((trace) => {
    const { task, success } = byId.get(trace.id);
    return { trace, task: String(task), success };
  });
}

/**
 * Returns the cosines of (1 + ln tf) idf of each query with each remembered trace.
 *
 * @param {import('../index.js').ReasoningTrace[]} remembered
 * @param {import('../index.js').ReasoningTrace[]} queries
 * @param {(traces: number) => number} idf of a word that so many of the remembered traces have
 */
export function cosines(remembered, queries, idf) {
  const counts = remembered.map(frequenciesOf);
  /** @type {Map<string, number[]>} */
  const holders = new Map();
  for (const [at, words] of counts.entries())
    for (const word of words.keys()) holders.set(word, [...(holders.get(word) ?? []), at]);
  const weigh = (/** @type {string} */ word) => idf(holders.get(word)?.length ?? 0);
  const norm = (/** @type {Map<string, number>} */ words) =>
    Math.sqrt([...words].reduce((sum, [word, count]) => sum + (count * weigh(word)) ** 2, 0)) || 1;
  const norms = counts.map(norm);
  return queries.map((query) => {
    const words = frequenciesOf(query);
    const row = new Float64Array(remembered.length);
    for (const [word, count] of words)
      for (const at of holders.get(word) ?? [])
        row[at] += count * (counts[at].get(word) ?? 0) * weigh(word) ** 2;
    const own = norm(words);
    return row.map((product, at) => product / (own * norms[at]));
  });
}

/**
 * Returns values in a random order.
 *
 * @template T
 * @param {readonly T[]} values
 * @param {() => number} random
 */
export function shuffled(values, random) {
  const left = [...values];
  const chosen = [];
  while (left.length > 0) chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  return chosen;
}
