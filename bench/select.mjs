// `npm run bench:select`: how many solved tasks are among K chosen runs, on labelled runs of agents: the tables in crates/score/DESIGN.md. Needs the
// labelled traces, which are not part of the repository.
//
// Each repetition has the runs of four fifths of the tasks, in a random order. "Solved" is the number of different tasks
// with a successful run among the K. Outcomes are known, or a quarter of them is wrong, or all are hidden.

import path from 'node:path';

import { runScript, setup } from '../scripts/setup.mjs';
import { labelledSets, readLabelled } from './labelled.mjs';
import { mean } from './measure.mjs';
import { generator } from './random.mjs';
import { semhash } from './semhash.mjs';

/** @typedef {import('../index.js').ReasoningTrace} ReasoningTrace */

/** @typedef {{ trace: ReasoningTrace, task: string, success: boolean }} Run */

/** @typedef {(runs: Run[], shown: ReasoningTrace[], random: () => number) => Promise<number[]>} Method indices, the first chosen first */

const REPETITIONS = 40;

const SIZES = [10, 25, 50];

await runScript(main);

async function main() {
  const sets = labelledSets(process.argv.slice(2));
  await setup();
  /** @type {Map<ReasoningTrace, Float32Array>} */
  const digests = new Map();
  const { Scorer, TraceMemory, embed, select } = await import('../index.js');

  const scoresOf = (/** @type {ReasoningTrace[]} */ traces) =>
    new Scorer({ memory: new TraceMemory({ maxElements: traces.length }) }).evaluateValues(traces);

  /** @type {Record<string, Method>} */
  const methods = {
    random: async (runs, _, random) => shuffled([...runs.keys()], random),
    'random successes': async (runs, shown, random) => {
      const isSuccess = (/** @type {number} */ index) => Number(shown[index].metadata.success);
      return shuffled([...runs.keys()], random).sort((one, other) => isSuccess(other) - isSuccess(one));
    },
    '--top, lexical': async (_, shown) => {
      const scores = await scoresOf(shown);
      return [...shown.keys()].sort((one, other) => scores[other] - scores[one]);
    },
    QDIT: async (_, shown) => qdit(shown, await similarities(shown)),
    'select, lexical': (_, shown) => chosen(shown, 'lexical'),
    'select, window 50': (_, shown) => chosen(shown, 'lexical', 50),
  };
  const python = semhash();
  if (python) {
    // Its representatives of the successes, then its representatives of the failures.
    methods.semhash = async (runs, shown) => {
      const order = [];
      for (const success of [true, false]) {
        const some = [...shown.keys()].filter((index) => shown[index].metadata.success === success);
        const vectors = some.map((index) => /** @type {Float32Array} */ (digests.get(runs[index].trace)));
        const count = Math.min(some.length, Math.max(...SIZES));
        if (count > 0) order.push(...(await python.represent(vectors, count)).map((at) => some[at]));
      }
      return order;
    };
  } else console.log('without semhash: KNOWLEDGEPULSE_SEMHASH names no Python that has it');

  for (const file of sets) {
    const runs = readLabelled(file);
    if (python) {
      const found = await embed(runs.map(({ trace }) => TraceMemory.digest(trace)));
      for (const [index, { trace }] of runs.entries()) digests.set(trace, found[index]);
    }
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
  python?.end();

  /**
   * @param {ReasoningTrace[]} shown
   * @param {'lexical' | 'full'} novelty
   * @param {number} [window]
   */
  async function chosen(shown, novelty, window) {
    const { chosen } = await select(shown, { count: Math.max(...SIZES), novelty, window });
    return chosen.map(({ index }) => index);
  }

  /** @param {ReasoningTrace[]} traces */
  async function similarities(traces) {
    const memory = new TraceMemory({ maxElements: traces.length });
    for (const trace of traces) await memory.add(trace);
    return Promise.all(
      traces.map(async (trace) => {
        const row = new Float64Array(traces.length);
        for (const { index, similarity } of await memory.nearest(trace, traces.length))
          row[index] = similarity;
        return row;
      }),
    );
  }
}

/**
 * Greedy by the mean of a trace's quality and its gain in Σ max similarity, each from 0 to 1, as QDIT does with α = 0.5.
 *
 * @param {ReasoningTrace[]} shown
 * @param {Float64Array[]} similarity
 */
function qdit(shown, similarity) {
  const quality = shown.map(({ metadata, outcome }) => outcome.confidence * (metadata.success ? 1 : 0.3));
  const cover = new Float64Array(shown.length);
  /** @type {number[]} */
  const order = [];
  while (order.length < Math.min(shown.length, Math.max(...SIZES))) {
    let best = -1;
    let most = Number.NEGATIVE_INFINITY;
    const gains = shown.map((_, j) =>
      cover.reduce((sum, covered, i) => sum + Math.max(0, similarity[i][j] - covered), 0),
    );
    const largest = Math.max(...gains) || 1;
    for (const [j, gain] of gains.entries()) {
      const value = gain / largest + quality[j];
      if (!order.includes(j) && value > most) [best, most] = [j, value];
    }
    order.push(best);
    for (const i of cover.keys()) cover[i] = Math.max(cover[i], similarity[i][best]);
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
 * @template T
 * @param {T[]} list
 * @param {() => number} random
 */
function shuffled(list, random) {
  const drawn = list.map((value) => ({ value, at: random() }));
  return drawn.sort((one, other) => one.at - other.at).map(({ value }) => value);
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
 * Prints the means with 95 % intervals, and the ratio to `--top`.
 *
 * @param {string} outcomes
 * @param {Record<string, number[][]>} solved
 */
function print(outcomes, solved) {
  console.log(`\n| outcomes ${outcomes} | ${SIZES.map((size) => `K = ${size} | × top`).join(' | ')} |`);
  console.log(`| --- |${' ---: | ---: |'.repeat(SIZES.length)}`);
  for (const [name, repetitions] of Object.entries(solved)) {
    const cells = SIZES.flatMap((_, column) => {
      const values = repetitions.map((each) => each[column]);
      const middle = mean(values);
      const deviation = Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
      const top = mean(solved['--top, lexical'].map((each) => each[column]));
      return [
        `${middle.toFixed(1)} ± ${((1.96 * deviation) / Math.sqrt(values.length)).toFixed(1)}`,
        (middle / top).toFixed(2),
      ];
    });
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}
