// The sides that score, and that they agree.

import { existsSync } from 'node:fs';
import path from 'node:path';

import { modelDirectory, ONNXRUNTIME } from '../../__test__/support/paths.js';
import { unavailable } from '../measure.mjs';
import { Side, withSides } from '../side.mjs';

export const ORACLE = 'transformers.js';
export const DTYPES = /** @type {const} */ (['fp32', 'q8']);

/** @typedef {typeof DTYPES[number]} Dtype */

/**
 * @template T
 * @param {(dtype: Dtype) => T} make
 * @returns {Record<Dtype, T>}
 */
export const forDtypes = (make) => ({ fp32: make('fp32'), q8: make('q8') });

/** How far a score may be from the oracle's. */
const TOLERANCES = { fp32: 1e-5, q8: 0.01 };

export const MODELS = { fp32: modelDirectory, q8: `${modelDirectory}-q8` };

/** @param {Dtype} dtype */
const isBuilt = (dtype) => existsSync(path.join(MODELS[dtype], 'manifest.json'));

/** @param {Dtype} dtype */
export function missing(dtype) {
  return isBuilt(dtype) ? undefined : `no model in npm/${path.basename(MODELS[dtype])}`;
}

/**
 * Returns a row for each dtype, or the reason why it could not be measured.
 *
 * @param {Record<Dtype, string>} names
 * @param {(dtype: Dtype) => import('../measure.mjs').Row} row
 */
export function rowsFor(names, row) {
  return DTYPES.map((dtype) => (isBuilt(dtype) ? row(dtype) : unavailable(names[dtype], missing(dtype))));
}

/** @type {import('../workload.mjs').Description} */
const FIRST = { kind: 'short' };

/** @param {Dtype} dtype */
export const onOnnxRuntime = (dtype) => `${dtype} on ONNX Runtime`;

/** @param {string} name */
const dtypeOf = (name) => /** @type {Dtype} */ (name.split(' ', 1)[0]);

/**
 * Runs `use` with the sides that score and there are, each in a fresh process: the oracle last, so that the
 * others are compared with it side by side. `bothEngines` adds a side for each dtype on ONNX Runtime.
 *
 * @template T
 * @param {(sides: Side[]) => Promise<T>} use
 * @param {{ bothEngines?: boolean }} [options]
 */
export function withScorers(use, { bothEngines = false } = {}) {
  const built = DTYPES.filter(isBuilt);
  /** @returns {Side} */
  const side = (/** @type {string} */ name, /** @type {Dtype} */ dtype, /** @type {object} */ env) =>
    new Side(name, 'ours.mjs', { env: { ...env, KNOWLEDGEPULSE_MODEL_DIR: MODELS[dtype] } });
  const ours = built.map((dtype) => side(dtype, dtype, { KNOWLEDGEPULSE_ENGINE: 'builtin' }));
  const others = bothEngines ? built.map((dtype) => side(onOnnxRuntime(dtype), dtype, ONNXRUNTIME)) : [];
  return withSides([...ours, ...others, new Side(ORACLE, 'oracle.mjs')], use);
}

/**
 * @param {Side[]} sides
 * @returns {Promise<Array<{ milliseconds: number, score: number }>>}
 */
export async function load(sides) {
  const loaded = [];
  for (const side of sides) {
    loaded.push(await side.ask('load', { trace: FIRST }));
    if (side.name !== ORACLE) checkStatus(side.name, await side.ask('about'));
  }
  assertScores(
    sides,
    loaded.map(({ score }) => [score]),
  );
  return loaded;
}

/**
 * @param {string} name
 * @param {import('../../index.js').EmbedderStatus} status
 */
function checkStatus(name, status) {
  const dtype = dtypeOf(name);
  if (!status.available) throw new Error(`no embedder for ${dtype}: ${status.reason}`);
  if (status.dtype !== dtype) throw new Error(`expected a model in ${dtype}, got ${status.dtype}`);
  const engine = name === dtype ? 'builtin' : 'onnxruntime';
  if (status.engine !== engine) throw new Error(`expected the engine ${engine}, got ${status.engine}`);
}

/**
 * Scores traces on every side from an empty memory, and throws unless they agree. The oracle, which reads all
 * of a text, may get shorter ones: `forOracle`.
 *
 * @param {Side[]} sides
 * @param {import('../workload.mjs').Description[]} traces
 * @param {import('../workload.mjs').Description[]} [forOracle]
 */
export async function assertAgreement(sides, traces, forOracle = traces) {
  const scores = [];
  for (const side of sides) {
    await side.ask('clear');
    const reply = await side.ask('score', { traces: side.name === ORACLE ? forOracle : traces });
    scores.push(reply.scores);
  }
  assertScores(sides, scores);
}

/**
 * @param {Side[]} sides
 * @param {number[][]} scores
 */
export function assertScores(sides, scores) {
  const expected = scores[sides.findIndex((side) => side.name === ORACLE)];
  for (const [index, { name }] of sides.entries()) {
    if (name !== ORACLE) assertClose(name, scores[index], expected, TOLERANCES[dtypeOf(name)]);
  }
}

/**
 * @param {string} name
 * @param {number[]} numbers
 * @param {number[]} expected
 * @param {number} tolerance
 */
export function assertClose(name, numbers, expected, tolerance) {
  if (numbers.length !== expected.length) throw new Error(`${name} gives another number of results`);
  for (const [index, number] of numbers.entries()) {
    const difference = Math.abs(number - expected[index]);
    // NaN fails every comparison.
    if (!(difference <= tolerance)) {
      throw new Error(`${name} disagrees: ${number} for ${expected[index]} (result ${index})`);
    }
  }
}
