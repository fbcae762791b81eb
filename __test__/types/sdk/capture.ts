// An agent that scores, cleans and contributes what it has done, in modules of its own.

import { contributeKnowledge } from './contribute.js';
import { evaluateValue } from './scoring.js';
import { CONTEXT, type PrivacyLevel, type Step, type Trace } from './types.js';
import { cleanPii } from './utils/pii-cleaner.js';

export interface CaptureConfig {
  domain: string;
  threshold: number;
  level: PrivacyLevel;
}

export class Capture {
  private readonly config: CaptureConfig;

  constructor(config: CaptureConfig) {
    this.config = config;
  }

  async contribute(steps: Step[]): Promise<string | undefined> {
    const trace: Trace = {
      '@context': CONTEXT,
      '@type': 'ReasoningTrace',
      id: 'kp:trace:1',
      metadata: {
        created_at: '2026-01-01T00:00:00Z',
        task_domain: this.config.domain,
        success: true,
        quality_score: 0,
        visibility: 'network',
        privacy_level: this.config.level,
      },
      task: { objective: 'Run' },
      steps,
      outcome: { result_summary: 'Completed', confidence: 0.8 },
    };
    trace.metadata.quality_score = await evaluateValue(trace);
    if (trace.metadata.quality_score < this.config.threshold) return undefined;
    for (const step of trace.steps) {
      if (step.content) step.content = cleanPii(step.content, trace.metadata.privacy_level).cleaned;
      if (step.input) step.input = JSON.parse(cleanPii(JSON.stringify(step.input)).cleaned);
    }
    return contributeKnowledge(trace);
  }
}
