// What the SDK declares, by hand.

export const CONTEXT = 'https://openknowledgepulse.org/schema/v1' as const;

export type PrivacyLevel = 'aggregated' | 'federated' | 'private';
export type Visibility = 'private' | 'org' | 'network';

export interface Metadata {
  created_at: string;
  agent_id?: string;
  framework?: string;
  task_domain: string;
  success: boolean;
  quality_score: number;
  visibility: Visibility;
  privacy_level: PrivacyLevel;
  validated_by?: string[];
}

export interface Step {
  step_id: number;
  type: 'thought' | 'tool_call' | 'observation' | 'error_recovery';
  content?: string;
  tool?: { name: string; mcp_server?: string };
  input?: Record<string, unknown>;
  output_summary?: string;
  latency_ms?: number;
}

export interface Trace {
  '@context': typeof CONTEXT;
  '@type': 'ReasoningTrace';
  id: string;
  source_skill?: string;
  metadata: Metadata;
  task: { objective: string; input_schema?: Record<string, unknown> };
  steps: Step[];
  outcome: { result_summary: string; confidence: number };
  knowledge_graph_delta?: {
    entities: Array<{ name: string; type: string }>;
    relationships: Array<{ fact: string; valid_from: string }>;
  };
}

export interface Weights {
  complexity: number;
  novelty: number;
  toolDiversity: number;
  outcomeConfidence: number;
}

export interface CleanResult {
  cleaned: string;
  redactions: { type: string; count: number }[];
}

export interface Cache {
  add(vector: ArrayLike<number>): void;
  maxCosineSimilarity(query: ArrayLike<number>): number;
  readonly size: number;
  evictExpired(): void;
  clear(): void;
}

/** Another kind of unit that the registry takes. */
export interface Procedure {
  '@context': typeof CONTEXT;
  '@type': 'ExpertSOP';
  id: string;
  name: string;
  metadata: Metadata;
}
