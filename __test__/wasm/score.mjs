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
  const scorer = new api.Scorer();
  // Some at a time, some one after another, some with a signal.
  const scores = await Promise.all(traces.slice(0, 5).map((trace) => scorer.evaluateValue(trace)));
  scores.push(...(await scorer.evaluateValues(traces.slice(5))));
  const again = await scorer.evaluateValues(traces.slice(0, 3), { signal: new AbortController().signal });
  const breakdowns = [];
  for (const trace of traces.slice(0, 5)) breakdowns.push(await scorer.explain(trace, { remember: false }));
  const embedder = new api.Embedder();
  const embeddings = await embedder.embedBatch(TEXTS);
  const cache = new api.VectorCache();
  for (const [index, embedding] of embeddings.entries()) cache.add(embedding, TEXTS[index].slice(0, 10));
  return {
    kernel: status.kernel,
    dtype: status.dtype,
    model: status.model,
    scores: [...scores, ...again],
    breakdowns,
    embeddings: embeddings.map((embedding) => Array.from(embedding)),
    neighbours: cache.nearest(embeddings[0], 3),
    cleaned: api.cleanPii('write to ada@example.org').cleaned,
    remembered: scorer.cache.size,
  };
}
