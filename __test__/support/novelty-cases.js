'use strict';

// What `novelty: 'full'` is to tell apart on real traces: for its tests, and for the table in docs/novelty.md.

const fc = require('fast-check');

/** @typedef {import('../../index.js').ReasoningTrace} Trace */

/** The first 512 tokens are about 2,200 characters of English. */
const PREFIX = 2_600;

/** A log is at least as long, which makes about 45 windows. */
const LOG = 24_000;

/** @param {Trace} trace */
const contentsOf = ({ steps }) => steps.map(({ content }) => content ?? '');

/**
 * @param {Trace} trace
 * @param {string} objective
 * @param {Trace['steps']} steps
 * @returns {Trace}
 */
const withSteps = (trace, objective, steps) => ({ ...trace, task: { objective }, steps });

/**
 * The step with which a trace reaches a number of characters.
 *
 * @param {Trace} trace
 * @param {number} characters
 */
function stepAt(trace, characters) {
  let length = 0;
  return contentsOf(trace).findIndex((content) => {
    length += content.length;
    return length >= characters;
  });
}

/** @param {Trace} trace */
const isLong = (trace) => stepAt(trace, PREFIX) >= 0;

/**
 * @param {Trace} trace
 * @param {number} seed
 */
function shuffled(trace, seed) {
  const order = fc.shuffledSubarray(trace.steps, { minLength: trace.steps.length });
  return withSteps(trace, trace.task.objective, fc.sample(order, { numRuns: 1, seed })[0]);
}

/**
 * `trace`, but for its first {@link PREFIX} characters, which are those of `start`.
 *
 * @param {Trace} trace
 * @param {Trace} start
 */
function withStart(trace, start) {
  const steps = [
    ...start.steps.slice(0, stepAt(start, PREFIX) + 1),
    ...trace.steps.slice(stepAt(trace, PREFIX)),
  ];
  return withSteps(trace, start.task.objective, steps);
}

/**
 * The first steps of `start`, then those of `trace`.
 *
 * @param {Trace} trace
 * @param {Trace} start
 * @param {number} count
 * @param {number} [from]
 */
const after = (trace, start, count, from = 0) =>
  withSteps(start, start.task.objective, [...start.steps.slice(0, count), ...trace.steps.slice(from)]);

/**
 * Traces of many steps, by what they have to do with those remembered. All have more than 512 tokens.
 *
 * @param {Trace[]} remembered
 * @param {Trace[]} unknown
 */
function tracesOfSteps(remembered, unknown) {
  const pairs = remembered
    .filter(isLong)
    .map((trace, index) => /** @type {const} */ ([trace, unknown.filter(isLong)[index]]))
    .filter(([, other]) => other !== undefined);
  return {
    unknown,
    remembered,
    shuffled: remembered.map(shuffled),
    'with another start': pairs.map(([trace, other]) => withStart(trace, other)),
    'half remembered': pairs.map(([trace, other]) =>
      after(other, trace, trace.steps.length >> 1, other.steps.length >> 1),
    ),
    'with a remembered start': pairs.map(([trace, other]) => after(other, trace, stepAt(trace, PREFIX) + 1)),
  };
}

/**
 * What traces say, one after another, in traces of one long step.
 *
 * @param {Trace[]} traces
 */
function logsOf(traces) {
  const logs = [];
  let content = '';
  for (const trace of traces) {
    content += `${contentsOf(trace).join('\n')}\n`;
    if (content.length >= LOG) {
      logs.push(withSteps(trace, trace.task.objective, [{ step_id: 0, type: 'observation', content }]));
      content = '';
    }
  }
  return logs;
}

/**
 * Logs by what they have to do with those remembered.
 *
 * @param {Trace[]} remembered
 * @param {Trace[]} unknown
 */
function tracesOfLogs(remembered, unknown) {
  const inserted = (/** @type {(text: string) => string} */ textOf) =>
    remembered.map((log, index) => {
      const text = textOf(unknown[index % unknown.length].steps[0].content ?? '');
      const content = `${text} ${log.steps[0].content}`;
      return withSteps(log, log.task.objective, [{ step_id: 0, type: 'observation', content }]);
    });
  return {
    unknown,
    remembered,
    'one word in front': inserted(() => 'Indeed'),
    '100 characters in front': inserted((text) => text.slice(1_000, 1_100)),
    '2,600 characters in front': inserted((text) => text.slice(0, PREFIX)),
  };
}

module.exports = { isLong, logsOf, tracesOfLogs, tracesOfSteps };
