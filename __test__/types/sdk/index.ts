export { VectorCache } from './hnsw-cache.js';
export { _getLocalCache, evaluateValue, type ScoringWeights } from './scoring.js';
export { CONTEXT, type Procedure, type Trace } from './types.js';
export { cleanPii, type PiiCleanResult } from './utils/pii-cleaner.js';
