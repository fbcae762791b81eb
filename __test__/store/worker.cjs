'use strict';

// A process that adds to a store as fast as it can: `node worker.cjs SETTINGS`, JSON. It prints what was acknowledged, a line
// each, before it goes on.

const fs = require('node:fs');
const { Pool } = require('pg');

const { PostgresVectorStore } = require('../../postgres.js');
const { clusteredVector } = require('../support/vectors.js');

const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };
const { name, connection, table, index, rounds, batch, patient } = JSON.parse(process.argv[2]);

(async () => {
  const pool = new Pool({ ...connection, max: 2 });
  const store = new PostgresVectorStore({ pool, table, index, timeoutMs: 30_000, sweepIntervalMs: 50 });
  // All begin together.
  if (process.send) await new Promise((resolve) => process.once('message', resolve));
  for (let round = 0; round < rounds; round++) {
    const entries = Array.from({ length: batch }, (_, nth) => {
      const seed = round * batch + nth;
      return { id: `${seed} ${name}`, vectors: [clusteredVector(seed, 20)], model: MODEL };
    });
    try {
      const comparisons = await store.compareAndAddBatch(entries);
      for (const [nth, [neighbour]] of comparisons.entries()) {
        const seed = round * batch + nth;
        const isNew = neighbour === null || neighbour.similarity < 0.9999;
        fs.writeSync(1, `${JSON.stringify({ seed, id: entries[nth].id, isNew })}\n`);
      }
    } catch (error) {
      fs.writeSync(1, `${JSON.stringify({ error: error.code })}\n`);
      if (!patient) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
      round--;
    }
  }
  store.close();
  await pool.end();
  process.exit();
})();
