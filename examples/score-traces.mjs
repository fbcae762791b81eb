// Scores the reasoning traces of a JSONL file, one line of output for each.
//
//   node examples/score-traces.mjs [FILE.jsonl …]

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

// In your own program: from '@knowledgepulse/native'
import { embedderStatus, evaluateValue } from '../index.js';

const files = process.argv.slice(2);
if (files.length === 0) files.push(fileURLToPath(new URL('traces.jsonl', import.meta.url)));

const status = await embedderStatus();
console.log(
  status.available
    ? `${status.model} (${status.dtype}) on the engine ${status.engine}, ${status.threads} threads`
    : `no embedder, novelty is 0.5: ${status.reason}`,
);
console.log(`\n${'trace'.padEnd(14)}${'domain'.padEnd(18)}${'steps'.padStart(5)}  ${'score'.padEnd(7)}`);

/** @type {number[]} */
const scores = [];
let failures = 0;
const start = performance.now();
for (const file of files) {
  try {
    await scoreFile(file);
  } catch (error) {
    fail(file, error);
  }
}
summarize();

/** @param {string} file */
async function scoreFile(file) {
  let number = 0;
  for await (const line of createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    number++;
    if (line.trim() === '') continue;
    try {
      const trace = JSON.parse(line);
      const score = await evaluateValue(trace);
      scores.push(score);
      print(trace, score);
    } catch (error) {
      fail(`${file}:${number}`, error);
    }
  }
}

/**
 * @param {string} where
 * @param {unknown} error
 */
function fail(where, error) {
  failures++;
  console.error(`${where}: ${error instanceof Error ? error.message : error}`);
}

/**
 * @param {import('../index.js').ReasoningTrace} trace
 * @param {number} score
 */
function print({ id, metadata, steps }, score) {
  // It has no part in the score, so it may be anything.
  const name = (typeof id === 'string' ? id : '').slice(-12).padEnd(14);
  const domain = String(metadata.task_domain ?? 'default').padEnd(18);
  const bar = '█'.repeat(Math.round(score * 30));
  console.log(`${name}${domain}${String(steps.length).padStart(5)}  ${score.toFixed(4)}  ${bar}`);
}

function summarize() {
  const milliseconds = performance.now() - start;
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  console.log(
    scores.length === 0
      ? '\nno trace scored'
      : `\n${scores.length} ${scores.length === 1 ? 'trace' : 'traces'} in ${(milliseconds / 1000).toFixed(2)} s: ` +
          `mean ${mean.toFixed(4)}, lowest ${low.toFixed(4)}, highest ${high.toFixed(4)}`,
  );
  if (failures > 0) {
    console.error(`${failures} ${failures === 1 ? 'failure' : 'failures'}`);
    process.exitCode = 1;
  }
}
