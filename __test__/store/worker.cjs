'use strict';

// A process that adds to a store as fast as it can: `node worker.cjs SETTINGS`, JSON. It prints what was acknowledged, a line
// each, before it goes on.

const { randomUUID } = require('node:crypto');
const fs = require('node:fs');
const { Pool } = require('pg');

const { PostgresStore } = require('../../postgres.js');
const { clusteredVector } = require('../support/vectors.js');

const MODEL = { model: 'all-MiniLM-L6-v2', dtype: 'fp32' };
const { name, connection, table, hnsw, rounds, batch, patient } = JSON.parse(process.argv[2]);

(async () => {
  const pool = new Pool({ ...connection, max: 2 });
  const store = new PostgresStore({ pool, table, method: 'prefix', hnsw });
  // All begin together.
  if (process.send) await new Promise((resolve) => process.once('message', resolve));
  for (let round = 0; round < rounds; round++) {
    const entries = Array.from({ length: batch }, (_, nth) => {
      const seed = round * batch + nth;
      return { id: `${seed} ${name}`, vector: clusteredVector(seed, 20), packed: null, model: MODEL };
    });
    const call = randomUUID();
    for (let isDone = false; !isDone; ) {
      try {
        const found = await store.compare(entries, call);
        for (const [nth, neighbour] of found.entries()) {
          const isNew = neighbour === null || neighbour.similarity < 0.9999;
          fs.writeSync(1, `${JSON.stringify({ seed: round * batch + nth, id: entries[nth].id, isNew })}\n`);
        }
        isDone = true;
      } catch (error) {
        fs.writeSync(1, `${JSON.stringify({ error: error.code })}\n`);
        if (!patient) process.exit(1);
        // The same call again: it is stored once, whatever became of the first attempt.
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
  await pool.end();
  process.exit();
})();
