import type { Procedure, Trace } from './types.js';

export async function contributeKnowledge(unit: Trace | Procedure): Promise<string> {
  return JSON.stringify(unit);
}
