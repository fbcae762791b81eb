// A side's end of the channel: takes `{ operation, … }`, answers with `{ result }` or `{ error }`.

/** @param {Record<string, (input: any) => unknown>} operations */
export function serve(operations) {
  process.on('message', async (/** @type {{ operation: string }} */ { operation, ...input }) => {
    try {
      process.send?.({ result: (await operations[operation](input)) ?? null });
    } catch (error) {
      process.send?.({ error: /** @type {Error} */ (error).stack });
    }
  });
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
