/**
 * The module `pii` of `@knowledgepulse/sdk`: cleaning texts and traces of secrets and personal data.
 *
 * @packageDocumentation
 */

export {
  type CleanedText,
  type CleanedTrace,
  type CleanOptions,
  cleanPii,
  cleanPiiAsync,
  cleanTrace,
  type PrivacyLevel,
  type ReadonlyReasoningTrace,
  type ReasoningTrace,
  type Redaction,
} from './index.js';
