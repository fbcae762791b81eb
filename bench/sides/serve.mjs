// A side's end of the pipe: reads `{ operation, … }` lines, writes `{ result }` or `{ error }` lines.

import { createInterface } from 'node:readline';

/** @param {Record<string, (input: any) => unknown>} operations */
export async function serve(operations) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { operation, ...input } = JSON.parse(line);
    process.stdout.write(`${JSON.stringify(await attempt(() => operations[operation](input)))}\n`);
  }
}

/** @param {() => unknown} action */
async function attempt(action) {
  try {
    return { result: (await action()) ?? null };
  } catch (error) {
    return { error: /** @type {Error} */ (error).stack };
  }
}

/**
 * Repeats `work` for about `milliseconds`, in `batches`; returns the milliseconds of one call in each.
 *
 * @param {(call: number) => unknown} work
 * @param {{ milliseconds: number, batches: number }} options
 */
export function timeBatches(work, { milliseconds, batches }) {
  const timed = (/** @type {number} */ calls) => {
    const start = performance.now();
    for (let call = 0; call < calls; call++) work(call);
    return (performance.now() - start) / calls;
  };
  const calls = Math.max(1, Math.round(milliseconds / timed(1)));
  return Array.from({ length: batches }, () => timed(calls));
}
