// `npm run bench:novelty`: how well novelty tells new tasks from seen ones, on labelled runs of agents: the tables in
// crates/index/DESIGN.md. Needs the labelled traces, which are not part of the repository.
//
// The first run of each task is what a memory remembers, and the other runs are asked. recall@1: the nearest remembered trace is of the
// same task. AUC: how often a run of a task that is not remembered is newer than one of a remembered task, over 40 random halves of the
// tasks.

import path from 'node:path';
import { random as generator } from '../__test__/support/random.js';
import { runScript, setup, WITHOUT } from '../scripts/setup.mjs';
import { cosines, labelledSets, readLabelled, shuffled } from './labelled.mjs';
import { mean, median } from './measure.mjs';

/** @typedef {{ trace: import('../index.js').ReasoningTrace, task: string }} Run */

/** @typedef {{ novelty: number, nearest: Run }} Judgement */

/** @typedef {(memory: Run[], queries: Run[]) => Promise<Judgement[]>} Method */

const SPLITS = 40;

await runScript(main);

async function main() {
  const sets = labelledSets();
  await setup(WITHOUT.benchmarks);
  const { TraceMemory } = await import('../index.js');

  /** @type {Record<string, Method>} */
  const methods = {
    'TF-IDF': async (memory, queries) => compareByFrequency(memory, queries),
    prefix: (memory, queries) => compareWith('prefix', memory, queries),
    lexical: (memory, queries) => compareWith('lexical', memory, queries),
    full: (memory, queries) => compareWith('full', memory, queries),
  };

  for (const file of sets) {
    const runs = readLabelled(file);
    console.log(
      `\n${path.basename(file)}: ${runs.length} runs of ${new Set(runs.map(({ task }) => task)).size} tasks\n`,
    );
    await printAccuracy(runs);
  }

  /**
   * @param {import('../index.js').NoveltyMethod} method
   * @param {Run[]} memory
   * @param {Run[]} queries
   */
  async function compareWith(method, memory, queries) {
    const traces = new TraceMemory({ method, maxElements: memory.length });
    for (const [index, { trace }] of memory.entries()) await traces.add({ ...trace, id: `${index}` });
    return Promise.all(
      queries.map(async ({ trace }) => {
        const { novelty, nearest } = await traces.compare(trace);
        return { novelty, nearest: memory[Number(nearest?.id ?? 0)] };
      }),
    );
  }

  /** @param {Run[]} runs */
  async function printAccuracy(runs) {
    const first = firstRuns(runs);
    const queries = runs.filter((run) => first.get(run.task) !== run);
    const columns = ['recall@1', 'AUC', 'seen', 'unseen'];
    console.log(`| | ${columns.join(' | ')} |\n| --- |${' ---: |'.repeat(columns.length)}`);
    for (const [name, method] of Object.entries(methods)) {
      const judged = await method([...first.values()], queries);
      const recall =
        judged.filter(({ nearest }, index) => nearest.task === queries[index].task).length / queries.length;
      const { aucs, seen, unseen } = await splitsOf(method, first, queries);
      const figures = [recall, mean(aucs)].map((figure) => figure.toFixed(3));
      const medians = [seen, unseen].map((novelties) => median(novelties).toFixed(2));
      console.log(`| ${name} | ${[...figures, ...medians].join(' | ')} |`);
    }
  }

  /**
   * Remembers random halves of the tasks.
   *
   * @param {Method} method
   * @param {Map<string, Run>} first
   * @param {Run[]} queries
   */
  async function splitsOf(method, first, queries) {
    const tasks = [...first.keys()];
    const [aucs, seen, unseen] = [[], [], []].map((empty) => /** @type {number[]} */ (empty));
    for (let split = 0; split < SPLITS; split++) {
      const half = new Set(shuffled(tasks, generator(split + 1)).slice(0, tasks.length >> 1));
      const memory = [...first.values()].filter(({ task }) => half.has(task));
      const judged = await method(memory, queries);
      const novelties = judged.map(({ novelty }) => novelty);
      const known = novelties.filter((_, index) => half.has(queries[index].task));
      const unknown = novelties.filter((_, index) => !half.has(queries[index].task));
      aucs.push(aucOf(unknown, known));
      seen.push(...known);
      unseen.push(...unknown);
    }
    return { aucs, seen, unseen };
  }
}

/**
 * TF-IDF over the whole trace, with the idf of {@link import('../index.js').TraceMemory}, which is better on these sets than a smoothed idf.
 *
 * @param {Run[]} memory
 * @param {Run[]} queries
 * @returns {Judgement[]}
 */
function compareByFrequency(memory, queries) {
  const tracesOf = (/** @type {Run[]} */ runs) => runs.map(({ trace }) => trace);
  const idf = (/** @type {number} */ traces) => Math.log((memory.length + 1) / Math.max(1, traces));
  return cosines(tracesOf(memory), tracesOf(queries), idf).map((similarities) => {
    const similarity = Math.max(...similarities);
    return { novelty: 1 - similarity, nearest: memory[similarities.indexOf(similarity)] };
  });
}

/** @param {Run[]} runs */
function firstRuns(runs) {
  /** @type {Map<string, Run>} */
  const first = new Map();
  for (const run of runs) if (!first.has(run.task)) first.set(run.task, run);
  return first;
}

/**
 * Returns how often a number of `larger` is larger than one of `smaller`.
 *
 * @param {number[]} larger
 * @param {number[]} smaller
 */
function aucOf(larger, smaller) {
  let wins = 0;
  for (const a of larger) for (const b of smaller) wins += a > b ? 1 : a === b ? 0.5 : 0;
  return wins / (larger.length * smaller.length);
}
