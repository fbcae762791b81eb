export { _getLocalCache, evaluateValue, type ScoringWeights } from '@knowledgepulse/native';
