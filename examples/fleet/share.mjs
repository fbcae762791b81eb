// A machine of a fleet: scores a few traces, with a memory that all machines share.
//
//   DATABASE_URL=postgres://… node share.mjs NAME
//
// Run it twice under different names: what the first has shared is no longer new to the second.

import { Scorer, TraceMemory } from '@knowledgepulse/native';
import { PostgresStore } from '@knowledgepulse/native/postgres';
import pg from 'pg';

const name = process.argv[2] ?? 'machine';
const tasks = [
  'Find out why customers cannot upload invoices larger than 1 MB',
  'Move the nightly report from cron to a queue',
  'Explain a double charge to a customer and refund it',
];

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
// The first call creates the tables.
const store = new PostgresStore({
  pool,
  method: 'lexical',
  fallback: new TraceMemory({ method: 'lexical' }),
});
const scorer = new Scorer({ memory: store });

for (const [index, objective] of tasks.entries()) {
  const { value, dimensions, nearest } = await scorer.score(makeTrace(index, objective));
  const resembles = nearest ? `${nearest.similarity.toFixed(3)} like ${nearest.id}` : 'the first of all';
  console.log(`${name}: score ${value.toFixed(3)}, novelty ${dimensions.novelty.toFixed(3)}, ${resembles}`);
}
// What was scored while the database was away.
await store.flush();
console.log(`${name}: the fleet remembers ${await store.size()} traces`);

await pool.end();

/**
 * @param {number} index
 * @param {string} objective
 * @returns {import('@knowledgepulse/native').ReasoningTrace}
 */
function makeTrace(index, objective) {
  return {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id: `${name}-${index + 1}`,
    metadata: {
      created_at: new Date().toISOString(),
      task_domain: 'default',
      success: true,
      quality_score: 0,
      visibility: 'network',
      privacy_level: 'aggregated',
    },
    task: { objective },
    steps: [
      { step_id: 0, type: 'thought', content: 'Look for what changed last.' },
      { step_id: 1, type: 'tool_call', content: 'Read the log', tool: { name: 'read_log' } },
      { step_id: 2, type: 'observation', content: 'The cause is in the configuration.' },
    ],
    outcome: { result_summary: 'done', confidence: 0.9 },
  };
}
