// Traces of real sizes for a large memory, mixed from real ones.

import { random as generator } from '../__test__/support/random.js';

/** @typedef {import('../index.js').ReasoningTrace} ReasoningTrace */

/** Words that look like an identifier, a number or a date. */
const IDENTIFIER = /[A-Za-z_]*[0-9_][A-Za-z0-9_]{2,}/g;

/**
 * Returns what makes tasks and their runs. A task has the objective of a real trace and three fifths of its steps; the others are of three other traces
 * of the same source. Most of its identifiers are its own. Another run of it lacks a seventh of the steps, has others for a seventh, and
 * another word for every 20th.
 *
 * @param {ReasoningTrace[][]} sources
 * @param {number} seed
 */
export function traceMixer(sources, seed) {
  const random = generator(seed);
  const below = (/** @type {number} */ count) => Math.floor(random() * count);
  /** @template T @param {readonly T[]} list */
  const pick = (list) => list[below(list.length)];
  let number = 0;

  /**
   * @param {string} text
   * @param {Map<string, string>} names
   */
  const rename = (text, names) =>
    text.replace(IDENTIFIER, (name) => {
      if (!names.has(name))
        names.set(
          name,
          random() < 0.7
            ? name
                .replace(/[0-9]/g, () => String(below(10)))
                .replace(/[a-z]/g, () => String.fromCharCode(97 + below(26)))
            : name,
        );
      return /** @type {string} */ (names.get(name));
    });

  const task = () => {
    const source = pick(sources);
    const base = pick(source);
    const others = [pick(source), pick(source), pick(source)];
    /** @type {Map<string, string>} */
    const names = new Map();
    const step = (/** @type {ReasoningTrace} */ trace) => ({
      type: 'thought',
      content: rename(pick(trace.steps).content ?? '', names),
    });
    const steps = base.steps.map((own) =>
      random() < 0.6 ? { ...own, content: rename(own.content ?? '', names) } : step(pick(others)),
    );
    const words = pick(source)
      .steps.map(({ content = '' }) => content)
      .join(' ')
      .match(/\w+/g) ?? ['word'];
    const first = () => traceOf(base, rename(base.task.objective, names), steps);
    const again = () => {
      const kept = steps
        .filter(() => random() > 0.15)
        .map((own) => (random() < 0.15 ? step(pick(source)) : own));
      const edited = kept.map((own) => ({
        ...own,
        content: (own.content ?? '').replace(/\w+/g, (word) => (random() < 0.05 ? pick(words) : word)),
      }));
      return traceOf(base, rename(base.task.objective, names), edited);
    };
    return { first, again };
  };

  /**
   * @param {ReasoningTrace} base
   * @param {string} objective
   * @param {Array<{ type: string, content?: string }>} steps
   * @returns {ReasoningTrace}
   */
  const traceOf = (base, objective, steps) => {
    const numbered = steps.map(({ type, content }, index) => ({ step_id: index, type, content }));
    return /** @type {ReasoningTrace} */ ({
      ...{ ...base, id: `kp:trace:mixed-${number++}` },
      ...{ task: { objective }, steps: numbered },
    });
  };

  return task;
}
