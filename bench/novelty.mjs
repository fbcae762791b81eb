// `npm run bench:novelty`: how well novelty tells new tasks from seen ones, on labelled runs of agents: the tables in
// crates/index/DESIGN.md. Needs the labelled traces, which are not part of the repository.
//
// The first run of each task is what a memory remembers, and the other runs are asked. recall@1: the nearest remembered trace is of the
// same task. AUC: how often a run of a task that is not remembered is newer than one of a remembered task, over 40 random halves of the
// tasks. With users apart, whole users are remembered or not.

import path from 'node:path';
import { random as generator } from '../__test__/support/random.js';
import { runScript, setup, WITHOUT } from '../scripts/setup.mjs';
import { cosines, labelledSets, readLabelled } from './labelled.mjs';
import { mean, median } from './measure.mjs';

/** @typedef {import('../index.js').ReasoningTrace} ReasoningTrace */

/** @typedef {{ trace: ReasoningTrace, task: string, user?: string }} Run */

/** @typedef {{ novelty: number, nearest: Run }} Judgement */

/** @typedef {(memory: Run[], queries: Run[]) => Promise<Judgement[]>} Method */

const SPLITS = 40;

const PREFIX = 2_600;

await runScript(main);

async function main() {
  const sets = labelledSets();
  await setup(WITHOUT.benchmarks);
  const { TraceMemory } = await import('../index.js');

  /** @type {Record<string, Method>} */
  const methods = {
    prefix: (memory, queries) => compareWith('prefix', memory, queries),
    'TF-IDF': async (memory, queries) => compareByFrequency(memory, queries),
    lexical: (memory, queries) => compareWith('lexical', memory, queries),
    full: (memory, queries) => compareWith('full', memory, queries),
  };

  for (const file of sets) {
    const runs = [];
    for (const { trace, task, user } of readLabelled(file)) runs.push({ trace, task, user });
    console.log(
      `\n${path.basename(file)}: ${runs.length} runs of ${new Set(runs.map(({ task }) => task)).size} tasks\n`,
    );
    await printAccuracy(runs);
    await printEdits(runs);
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
    const users = runs[0].user !== undefined;
    const columns = [
      'recall@1',
      'AUC',
      'better than TF-IDF',
      ...(users ? ['users apart'] : []),
      'seen',
      'unseen',
    ];
    console.log(`| | ${columns.join(' | ')} |\n| --- |${' ---: |'.repeat(columns.length)}`);
    /** @type {number[]} */
    let baseline = [];
    for (const name of ['TF-IDF', 'prefix', 'lexical', 'full']) {
      const method = methods[name];
      const judged = await method([...first.values()], queries);
      const recall =
        judged.filter(({ nearest }, index) => nearest.task === queries[index].task).length / queries.length;
      const byTask = await splitsOf(method, first, queries, ({ task }) => task);
      if (name === 'TF-IDF') baseline = byTask.aucs;
      const gains = byTask.aucs.map((auc, split) => auc - baseline[split]);
      const gain = `${mean(gains).toFixed(3)} (${gains.filter((gain) => gain > 0).length} of ${SPLITS})`;
      const apart = users
        ? [mean((await splitsOf(method, first, queries, ({ user }) => user)).aucs).toFixed(3)]
        : [];
      const figures = [recall.toFixed(3), mean(byTask.aucs).toFixed(3), gain, ...apart];
      console.log(
        `| ${name} | ${[...figures, median(byTask.seen).toFixed(2), median(byTask.unseen).toFixed(2)].join(' | ')} |`,
      );
    }
  }

  /**
   * Remembers random halves of the groups.
   *
   * @param {Method} method
   * @param {Map<string, Run>} first
   * @param {Run[]} queries
   * @param {(run: Run) => unknown} groupOf
   */
  async function splitsOf(method, first, queries, groupOf) {
    const groups = [...new Set([...first.values()].map(groupOf))];
    const [aucs, seen, unseen] = [[], [], []].map((empty) => /** @type {number[]} */ (empty));
    for (let split = 0; split < SPLITS; split++) {
      const half = new Set(shuffled(groups, generator(split + 1)).slice(0, groups.length >> 1));
      const memory = [...first.values()].filter((run) => half.has(groupOf(run)));
      const judged = await method(memory, queries);
      const novelties = judged.map(({ novelty }) => novelty);
      const known = novelties.filter((_, index) => half.has(groupOf(queries[index])));
      const unknown = novelties.filter((_, index) => !half.has(groupOf(queries[index])));
      aucs.push(aucOf(unknown, known));
      seen.push(...known);
      unseen.push(...unknown);
    }
    return { aucs, seen, unseen };
  }

  /**
   * Near-duplicates and attacks: the first half of the tasks is remembered. A near-duplicate should be less new than a run of another
   * task that begins with 2,600 characters of a remembered one.
   *
   * @param {Run[]} runs
   */
  async function printEdits(runs) {
    const first = [...firstRuns(runs).values()];
    const memory = first.slice(0, first.length >> 1);
    const others = first.slice(first.length >> 1);
    const random = generator(7);
    const front = (/** @type {ReasoningTrace} */ trace) => piecesOf(trace).join('\n').slice(0, PREFIX);
    const unseen = runsOf(
      others.map(({ trace }, index) => withStep(trace, front(memory[index % memory.length].trace))),
    );
    /** @type {Record<string, (trace: ReasoningTrace, index: number) => ReasoningTrace>} */
    const edits = {
      '2,600 characters in front': (trace, index) =>
        withStep(trace, front(others[index % others.length].trace)),
      'steps shuffled': (trace) => ({ ...trace, steps: shuffled(trace.steps, random) }),
      'all steps joined': (trace) => joined(trace),
      'every 20th word replaced': (trace) =>
        mapWords(trace, (word, count) => (count % 20 === 19 ? randomWord(random) : word)),
      'first half': (trace) => ({ ...trace, steps: trace.steps.slice(0, Math.ceil(trace.steps.length / 2)) }),
    };
    /** @type {Record<string, (trace: ReasoningTrace, index: number) => ReasoningTrace>} */
    const attacks = {
      '2,600 characters of junk in one step': (trace) => withStep(trace, junk(random, PREFIX)),
      '25 junk steps of six words': (trace) => {
        let changed = trace;
        for (let count = 0; count < 25; count++)
          changed = withStep(changed, Array.from({ length: 6 }, () => randomWord(random)).join(' '));
        return changed;
      },
      'every fifth word random': (trace) =>
        mapWords(trace, (word, count) => (count % 5 === 4 ? randomWord(random) : word)),
      'Cyrillic letters for Latin ones': (trace) =>
        mapWords(trace, (word) => word.replaceAll('a', 'а').replaceAll('e', 'е').replaceAll('o', 'о')),
    };
    const names = Object.keys(methods);
    console.log(
      `\n| AUC of a near-duplicate | ${names.join(' | ')} |\n| --- |${' ---: |'.repeat(names.length)}`,
    );
    await printRows(edits, async (method, changed) =>
      aucOf(await noveltiesOf(method, unseen), await noveltiesOf(method, changed)),
    );
    console.log(`\n| median N | ${names.join(' | ')} |\n| --- |${' ---: |'.repeat(names.length)}`);
    await printRows(attacks, async (method, changed) => median(await noveltiesOf(method, changed)));

    /**
     * @param {Record<string, (trace: ReasoningTrace, index: number) => ReasoningTrace>} changes
     * @param {(method: Method, changed: Run[]) => Promise<number>} figureOf
     */
    async function printRows(changes, figureOf) {
      for (const [name, change] of Object.entries(changes)) {
        const changed = runsOf(memory.map(({ trace }, index) => change(trace, index)));
        const figures = [];
        for (const method of Object.values(methods))
          figures.push((await figureOf(method, changed)).toFixed(2));
        console.log(`| ${name} | ${figures.join(' | ')} |`);
      }
    }

    /**
     * @param {Method} method
     * @param {Run[]} queries
     */
    async function noveltiesOf(method, queries) {
      return (await method(memory, queries)).map(({ novelty }) => novelty);
    }

    /**
     * @param {ReasoningTrace[]} traces
     * @returns {Run[]}
     */
    function runsOf(traces) {
      return traces.map((trace) => ({ trace, task: '' }));
    }
  }
}

/** @param {ReasoningTrace} trace */
function piecesOf(trace) {
  return [trace.task.objective, ...trace.steps.map(({ content }) => content ?? '')];
}

/**
 * @param {ReasoningTrace} trace
 * @param {string} content
 * @returns {ReasoningTrace}
 */
function withStep(trace, content) {
  return { ...trace, steps: [{ step_id: 0, type: 'observation', content }, ...trace.steps] };
}

/**
 * @param {ReasoningTrace} trace
 * @returns {ReasoningTrace}
 */
function joined(trace) {
  const content = trace.steps.map(({ content }) => content ?? '').join('\n');
  return { ...trace, steps: [{ step_id: 0, type: 'observation', content }] };
}

/**
 * @param {ReasoningTrace} trace
 * @param {(word: string, count: number) => string} change
 * @returns {ReasoningTrace}
 */
function mapWords(trace, change) {
  let count = 0;
  const changed = (/** @type {string} */ text) => text.replace(/\w+/g, (word) => change(word, count++));
  return {
    ...trace,
    task: { ...trace.task, objective: changed(trace.task.objective) },
    steps: trace.steps.map((step) => ({ ...step, content: changed(step.content ?? '') })),
  };
}

/** @param {() => number} random */
function randomWord(random) {
  return Array.from({ length: 4 + Math.floor(random() * 5) }, () =>
    String.fromCharCode(97 + Math.floor(random() * 26)),
  ).join('');
}

/**
 * @param {() => number} random
 * @param {number} characters
 */
function junk(random, characters) {
  let text = '';
  while (text.length < characters) text += `${randomWord(random)} `;
  return text.slice(0, characters);
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
 * @template T
 * @param {readonly T[]} values
 * @param {() => number} random
 */
function shuffled(values, random) {
  const left = [...values];
  const chosen = [];
  while (left.length > 0) chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  return chosen;
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
