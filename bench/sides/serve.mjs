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
