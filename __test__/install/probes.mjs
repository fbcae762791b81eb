// The programs that run in the projects, and what they must print.

import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OracleEmbedder } from '../oracle/embedder.js';
import { OracleScorer, scoreOf, textOf } from '../oracle/score.js';
import { modelDirectory } from '../support/paths.js';
import { run } from './processes.mjs';
import { traces } from './traces.mjs';

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), 'probes');

/** The scripts, by how they load the package. */
export const SCRIPTS = ['require.cjs', 'import.mjs'];

/** How far the int8 model's scores may be from those of the other. */
const Q8_TOLERANCE = 0.01;

export function writeProbes(directory) {
  cpSync(folder, directory, { recursive: true });
  writeFileSync(path.join(directory, 'traces.json'), JSON.stringify(traces));
}

/**
 * Runs a command that prints a report.
 *
 * @returns {Promise<object>} the report: see probes/report.cjs
 */
export async function probe(command, options) {
  const { code, signal, stdout, stderr } = await run(command, options);
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr);
  return JSON.parse(stdout);
}

let reference;

/** The scores by the SDK's own embedder. */
async function referenceScores() {
  const embedder = new OracleEmbedder(modelDirectory);
  const scorer = new OracleScorer();
  const scores = [];
  for (const trace of traces) scores.push(scorer.evaluate(trace, await embedder.embed(textOf(trace))));
  embedder.close();
  return scores;
}

/** Expects the scores of a working embedder. */
export async function expectScores({ scores, status, warnings }, dtype) {
  assert.equal(status?.available, true, status?.reason);
  assert.equal(status.dtype, dtype);
  assert.deepEqual(warnings, []);
  reference ??= referenceScores();
  const tolerance = dtype === 'fp32' ? 1e-5 : Q8_TOLERANCE;
  for (const [index, expected] of (await reference).entries()) {
    assert.ok(
      Math.abs(scores[index] - expected) < tolerance,
      `trace ${index}: ${scores[index]}, not ${expected}`,
    );
  }
}

/** Expects a novelty of 0.5, silently, because the library of ONNX Runtime is absent. */
export function expectNeutral({ scores, status, warnings }) {
  assert.deepEqual(
    scores,
    traces.map((trace) => scoreOf(trace, 0.5)),
  );
  assert.deepEqual([status.available, status.code], [false, 'ERR_RUNTIME_UNUSABLE']);
  assert.match(status.reason, /does not exist; reinstall .*KNOWLEDGEPULSE_ONNXRUNTIME/);
  assert.deepEqual(warnings, []);
}
