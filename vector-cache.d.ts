/**
 * The module `vector-cache` of `@knowledgepulse/sdk`: a bounded memory of vectors.
 *
 * @packageDocumentation
 */

export { VectorCache, type VectorCacheOptions } from './index.js';
