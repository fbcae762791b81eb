/**
 * The module `vector-cache` of `@knowledgepulse/sdk`: a bounded memory of vectors.
 *
 * @packageDocumentation
 */

export {
  type Neighbour,
  VectorCache,
  type VectorCacheEntry,
  type VectorCacheLoadOptions,
  type VectorCacheOptions,
} from './index.js';
