// This package. Environment variables choose the model and the addon.

import { serveScorer } from './scorer.mjs';

/** @type {typeof import('../../index.js')} */
let native;

await serveScorer({
  async load() {
    native = await import('../../index.js');
  },
  about: () => native.embedderStatus(),
  evaluate: (trace) => native.evaluateValue(trace),
  evaluateAll: (traces) =>
    native.evaluateValues?.(traces) ?? Promise.all(traces.map((trace) => native.evaluateValue(trace))),
  clear: () => native._getLocalCache().clear(),
});
