// What the public interface gives for some traces, whatever computes it: it runs on Node.js with either addon, and in a page.

/** Texts that differ in length and script, the last longer than the model takes. */
export const TEXTS = [
  'This is an example sentence',
  '',
  'Grüße aus München – 東京 – 🚀',
  'The answer depends on the last line of the log, which nobody has read. '.repeat(60),
];

/**
 * @param {typeof import('../../index.js')} api
 * @param {import('../../index.js').ReasoningTrace[]} traces
 */
export async function scoresOf(api, traces) {
  const status = await api.embedderStatus();
  const memory = new api.TraceMemory({ method: 'prefix' });
  const scorer = new api.Scorer({ memory });
  // Some at a time, some one after another, some with a signal.
  const valuesOf = (/** @type {Array<{ value: number }>} */ all) => all.map(({ value }) => value);
  const scores = valuesOf(await Promise.all(traces.slice(0, 5).map((trace) => scorer.score(trace))));
  scores.push(...valuesOf(await scorer.scoreAll(traces.slice(5))));
  const { signal } = new AbortController();
  const again = valuesOf(await scorer.scoreAll(traces.slice(0, 3), { signal }));
  const breakdowns = [];
  for (const trace of traces.slice(0, 5)) breakdowns.push(await scorer.score(trace, { remember: false }));
  const embeddings = await api.embed(TEXTS);
  const cache = new api.VectorCache();
  for (const embedding of embeddings.slice(1)) cache.add(embedding);
  return {
    kernel: status.kernel,
    dtype: status.dtype,
    model: status.model,
    scores: [...scores, ...again],
    breakdowns,
    embeddings: embeddings.map((embedding) => Array.from(embedding)),
    neighbours: await memory.nearest(traces[0], 3),
    similarity: cache.maxCosineSimilarity(embeddings[0]),
    cleaned: api.cleanPii('write to ada@example.org').cleaned,
    remembered: memory.size,
  };
}
