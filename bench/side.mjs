// The parent's end of a side: a child process that does one thing at a time, when it is told to.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Thread pools may spin for a while after their work, and would slow down the next side. */
const PAUSE_MS = 30;

/** The variables that a shell may set: which traces are scored, and which instructions a processor is taken to have. */
const KEPT = ['KNOWLEDGEPULSE_TRACES', 'KNOWLEDGEPULSE_KERNEL'];

/** Returns the environment without the package's other variables: a shell's settings must not decide the comparison. */
function neutralEnvironment() {
  const isOurs = (/** @type {string} */ name) => name.startsWith('KNOWLEDGEPULSE_') && !KEPT.includes(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOurs(name)));
}

export class Side {
  #process;
  #exited;

  /**
   * @param {string} name the name in the table
   * @param {string} kind a file of `sides/`, without its ending
   * @param {string} which the one of the file's sides
   * @param {Record<string, string>} [env]
   */
  constructor(name, kind, which, env = {}) {
    this.name = name;
    const file = fileURLToPath(new URL(`sides/${kind}.mjs`, import.meta.url));
    this.#process = fork(file, [which], { env: { ...neutralEnvironment(), ...env } });
    this.#exited = once(this.#process, 'exit');
  }

  /**
   * Has the side do something, and lets the machine come to rest afterwards.
   *
   * @param {string} operation
   * @param {object} [input]
   * @returns {Promise<any>} the operation's result, in JSON
   */
  async ask(operation, input = {}) {
    this.#process.send({ operation, ...input });
    const [answer, signal] = await Promise.race([once(this.#process, 'message'), this.#exited]);
    if (answer?.result === undefined)
      throw new Error(`${this.name}: ${answer?.error ?? `it ended with ${signal ?? `code ${answer}`}`}`);
    await sleep(PAUSE_MS);
    return answer.result;
  }

  async close() {
    if (this.#process.connected) this.#process.disconnect();
    await this.#exited;
  }
}

/**
 * Runs `use` with the sides and closes them, also after an error.
 *
 * @template T
 * @param {Side[]} sides
 * @param {(sides: Side[]) => Promise<T>} use
 */
export async function withSides(sides, use) {
  try {
    return await use(sides);
  } finally {
    await Promise.all(sides.map((side) => side.close()));
  }
}

/**
 * Gives each side a turn, again and again (A B A B …), so that changes of the machine's load affect all alike. The first
 * round only warms up.
 *
 * @param {Side[]} sides
 * @param {number} rounds
 * @param {(side: Side, round: number) => Promise<number[]>} turn returns the samples of one turn
 * @returns {Promise<Record<string, number[][]>>} the rounds of each side, by its name
 */
export async function interleave(sides, rounds, turn) {
  /** @type {Record<string, number[][]>} */
  const samples = Object.fromEntries(sides.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const side of sides) {
      const turnSamples = await turn(side, round);
      if (round > 0) samples[side.name].push(turnSamples);
    }
  }
  return samples;
}

/**
 * Throws unless the numbers of a side are those expected.
 *
 * @param {string} name
 * @param {number[]} numbers
 * @param {number[]} expected
 * @param {number} tolerance
 */
export function assertClose(name, numbers, expected, tolerance) {
  if (numbers.length !== expected.length) throw new Error(`${name} gives another number of results`);
  for (const [index, number] of numbers.entries()) {
    // NaN fails every comparison.
    if (!(Math.abs(number - expected[index]) <= tolerance)) {
      throw new Error(`${name} disagrees: ${number} for ${expected[index]} (result ${index})`);
    }
  }
}
