/**
 * The module `scoring` of `@knowledgepulse/sdk`: scores of reasoning traces.
 *
 * @packageDocumentation
 */

export {
  _getLocalCache,
  evaluateValue,
  evaluateValues,
  type KnowledgeUnitMeta,
  type PrivacyLevel,
  type ReadonlyReasoningTrace,
  type ReasoningTrace,
  type ReasoningTraceStep,
  type ScoringWeights,
  type Visibility,
} from './index.js';
