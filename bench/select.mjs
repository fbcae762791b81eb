// `npm run bench:select [SET...]`: how many solved tasks are among K chosen runs, on labelled runs of agents: the tables in
// crates/score/DESIGN.md. Needs labelled traces, which are not part of the repository: SET.jsonl and SET.labels.jsonl.
//
// Each repetition has the runs of four fifths of the tasks, in a random order. "Solved" is the number of different tasks
// with a successful run among the K. Outcomes are known, or a quarter of them is wrong, or all are hidden.

import path from 'node:path';
import { random as generator } from '../__test__/support/random.js';
import { runScript, setup, WITHOUT } from '../scripts/setup.mjs';
import { cosines, labelledSets, readLabelled, shuffled } from './labelled.mjs';
import { mean } from './measure.mjs';

/** @typedef {import('../index.js').ReasoningTrace} ReasoningTrace */

/** @typedef {{ trace: ReasoningTrace, task: string, success: boolean }} Run */

/** @typedef {(runs: Run[], shown: ReasoningTrace[], random: () => number) => Promise<number[]>} Method indices, the first chosen first */

const REPETITIONS = 40;

const SIZES = [10, 20, 50];

/** The row that the others are compared with. */
const PLAIN = 'TF-IDF facility location';

await runScript(main);

async function main() {
  const sets = labelledSets(process.argv.slice(2));
  await setup(WITHOUT.benchmarks);
  const { Scorer, TraceMemory, select } = await import('../index.js');

  /** @type {Record<string, Method>} */
  const methods = {
    random: async (runs, _, random) => shuffled([...runs.keys()], random),
    'random successes': async (runs, shown, random) => {
      const isSuccess = (/** @type {number} */ index) => Number(shown[index].metadata.success);
      return shuffled([...runs.keys()], random).sort((one, other) => isSuccess(other) - isSuccess(one));
    },
    '--top, lexical': async (_, shown) => {
      const memory = new TraceMemory({ method: 'lexical', maxElements: shown.length });
      const scores = await new Scorer({ memory }).scoreAll(shown);
      return [...shown.keys()].sort((one, other) => scores[other].value - scores[one].value);
    },
    [PLAIN]: async (runs, shown) => {
      const traces = runs.map(({ trace }) => trace);
      const smooth = (/** @type {number} */ holders) => Math.log((1 + runs.length) / (1 + holders)) + 1;
      return facilityLocation(shown, cosines(traces, traces, smooth));
    },
    select: async (_, shown) => {
      const { chosen } = await select(shown, { count: Math.max(...SIZES) });
      return chosen.map(({ index }) => index);
    },
  };
  for (const file of sets) {
    const runs = readLabelled(file);
    console.log(
      `\n${path.basename(file)}: ${runs.length} runs of ${new Set(runs.map(({ task }) => task)).size} tasks`,
    );
    for (const outcomes of ['known', 'a quarter wrong', 'hidden']) {
      const names = ['possible', ...Object.keys(methods)];
      /** @type {Record<string, number[][]>} */
      const solved = Object.fromEntries(names.map((name) => [name, []]));
      for (let repetition = 0; repetition < REPETITIONS; repetition++) {
        const random = generator(repetition * 7919 + 17);
        const tasks = shuffled([...new Set(runs.map(({ task }) => task))], random);
        const kept = new Set(tasks.slice(0, Math.round(0.8 * tasks.length)));
        const part = shuffled(
          runs.filter(({ task }) => kept.has(task)),
          random,
        );
        const shown = part.map((run) => show(run, outcomes, random));
        const solvable = new Set(part.filter(({ success }) => success).map(({ task }) => task)).size;
        solved.possible.push(SIZES.map((size) => Math.min(size, solvable)));
        for (const [name, method] of Object.entries(methods)) {
          const order = await method(part, shown, random);
          solved[name].push(SIZES.map((size) => solvedBy(order.slice(0, size), part)));
        }
      }
      print(outcomes, solved);
    }
  }
}

/** @param {ReasoningTrace} trace */
function qualityOf({ metadata, outcome }) {
  return outcome.confidence * (metadata.success ? 1 : 0.3);
}

/**
 * Greedy by the gain in Σ q(i) max q(j) s(i, j).
 *
 * @param {ReasoningTrace[]} shown
 * @param {Float64Array[]} similarity
 */
function facilityLocation(shown, similarity) {
  const quality = shown.map(qualityOf);
  const cover = new Float64Array(shown.length);
  const left = new Set(shown.keys());
  /** @type {number[]} */
  const order = [];
  while (left.size > 0 && order.length < Math.max(...SIZES)) {
    const gainOf = (/** @type {number} */ j) =>
      cover.reduce(
        (sum, before, i) => sum + quality[i] * Math.max(0, quality[j] * similarity[i][j] - before),
        0,
      );
    const gains = [...left].map((j) => /** @type {const} */ ([j, gainOf(j)]));
    const [best] = gains.reduce((one, other) => (other[1] > one[1] ? other : one));
    left.delete(best);
    order.push(best);
    for (const i of cover.keys()) cover[i] = Math.max(cover[i], quality[best] * similarity[i][best]);
  }
  return order;
}

/**
 * Returns a run as a method sees it.
 *
 * @param {Run} run
 * @param {string} outcomes
 * @param {() => number} random
 * @returns {ReasoningTrace}
 */
function show({ trace, success }, outcomes, random) {
  const isWrong = outcomes === 'a quarter wrong' && random() < 0.25;
  const isHidden = outcomes === 'hidden';
  const told = !isHidden && success !== isWrong;
  const imported = isHidden ? { imported: { known: { success: false, confidence: false } } } : {};
  return {
    ...trace,
    metadata: { ...trace.metadata, success: told, ...imported },
    outcome: { ...trace.outcome, confidence: isHidden ? 0.5 : told ? 0.9 : 0.4 },
  };
}

/**
 * @param {number[]} indices
 * @param {Run[]} runs
 */
function solvedBy(indices, runs) {
  return new Set(
    indices
      .map((index) => runs[index])
      .filter(({ success }) => success)
      .map(({ task }) => task),
  ).size;
}

/**
 * Prints the means, and the mean differences from the plain method in the same repetitions, with 95 % intervals.
 *
 * @param {string} outcomes
 * @param {Record<string, number[][]>} solved
 */
function print(outcomes, solved) {
  console.log(`\n| outcomes ${outcomes} | ${SIZES.map((size) => `K = ${size} | − TF-IDF`).join(' | ')} |`);
  console.log(`| --- |${' ---: | ---: |'.repeat(SIZES.length)}`);
  for (const [name, repetitions] of Object.entries(solved)) {
    const cells = SIZES.flatMap((_, column) => {
      const differences = repetitions.map((each, at) => each[column] - solved[PLAIN][at][column]);
      const middle = mean(differences);
      const deviation = Math.sqrt(mean(differences.map((value) => (value - middle) ** 2)));
      return [
        mean(repetitions.map((each) => each[column])).toFixed(1),
        `${middle.toFixed(1)} ± ${((1.96 * deviation) / Math.sqrt(differences.length)).toFixed(1)}`,
      ];
    });
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}
