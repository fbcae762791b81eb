'use strict';

// The part of the doctor that loads the addon and the model, in a process of its own. It sends each finding to its parent at once,
// because it may crash.

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const { version } = require('../../package.json');

/** @import { Finding } from './doctor.js' */

/**
 * @typedef {Error & { code?: string, summary?: string, remedy?: string,
 *   attempts?: import('../installation/obstacle.js').LoadFailure[] }} LoadError
 */

/** A text, and the beginning of its published embedding. */
const TEXT = 'This is an example sentence';
const PUBLISHED = [0.0676569, 0.0634959, 0.0487131, 0.079305, 0.037448, 0.0026528, 0.039375, -0.0070984];

/** The tolerance of a component: published values have seven digits, and int8 is coarser. */
const TOLERANCES = { fp32: 1e-5, q8: 1e-2 };

/**
 * Sends a finding; resolves once the parent has it.
 *
 * @param {Finding} finding
 */
function tell(finding) {
  return new Promise((resolve) => process.send?.(finding, resolve));
}

/**
 * @param {string} code
 * @param {string} message
 * @param {{ remedy?: string }} [more]
 */
function fail(code, message, more) {
  return tell({ problem: { code, message, ...more } });
}

async function examineAddon() {
  await tell({ stage: 'loading the addon' });
  let loaded;
  try {
    loaded = require('../loader.js');
  } catch (thrown) {
    const error = /** @type {LoadError} */ (thrown);
    const attempts = error.attempts?.map(({ name, reason }) => ({ name, reason }));
    await tell({ addon: { attempts: attempts ?? [] } });
    await fail(error.code ?? 'ERR_INTERNAL', error.summary ?? String(error.stack), { remedy: error.remedy });
    return false;
  }
  const { addon, file } = loaded;
  const addonVersion = addon.version();
  await tell({ addon: { path: file, version: addonVersion } });
  if (addonVersion !== version) {
    await fail('ERR_VERSION_MISMATCH', `the addon is version ${addonVersion}, the package ${version}`);
  }
  return true;
}

async function examineEmbedder() {
  const { embed, embedderStatus } = require('../embedder.js');
  await tell({ stage: 'loading the model' });
  const start = performance.now();
  const status = await embedderStatus();
  const loadMilliseconds = rounded(performance.now() - start);
  const { dimensions, dtype, engine, kernel, modelDirectory, runtimePath, runtimeVersion, threads } = status;
  await tell({
    threads,
    inference: { engine, kernel },
    runtime: { path: runtimePath, version: runtimeVersion },
    model: { directory: modelDirectory, dtype, dimensions, files: [], verified: false },
  });
  if (!status.available || dtype === null) {
    await fail(status.code ?? 'ERR_INTERNAL', status.reason ?? 'the embedder does not say why it is missing');
    return;
  }

  if (modelDirectory !== null && !(await examineFiles(modelDirectory))) return;

  await tell({ stage: 'the test embedding' });
  const begin = performance.now();
  const embedding = await embed(TEXT);
  const milliseconds = rounded(performance.now() - begin);
  const differences = PUBLISHED.map((component, index) => Math.abs(component - embedding[index]));
  const largestDifference = Math.max(...differences);
  const tolerance = TOLERANCES[dtype];
  const correct = largestDifference <= tolerance;
  await tell({
    embedding: { text: TEXT, loadMilliseconds, milliseconds, largestDifference, tolerance, correct },
    memory: { residentBytes: process.memoryUsage().rss },
  });
  if (!correct) {
    await fail(
      'ERR_EMBEDDING_WRONG',
      `the embedding of "${TEXT}" differs from the published one by ${largestDifference}; ${tolerance} is allowed`,
    );
  }
}

/**
 * Compares the checksums of a model's files with its manifest, if there is one; the embedder reports a malformed one. Loading compares sizes
 * only, because reading 90 MB twice would take longer than the rest.
 *
 * @param {string} directory
 */
async function examineFiles(directory) {
  await tell({ stage: 'reading the files of the model' });
  const manifest = path.join(directory, 'manifest.json');
  /** @type {{ files: Record<string, { sha256: string }> }} */
  const { files: listed } = fs.existsSync(manifest)
    ? JSON.parse(fs.readFileSync(manifest, 'utf8'))
    : { files: {} };
  const files = Object.entries(listed).map(([name, { sha256: expectedSha256 }]) => {
    const sha256 = createHash('sha256')
      .update(fs.readFileSync(path.join(directory, name)))
      .digest('hex');
    return { name, sha256, expectedSha256 };
  });
  const damaged = files.filter(({ sha256, expectedSha256 }) => sha256 !== expectedSha256);
  await tell({ model: { files, verified: files.length > 0 && damaged.length === 0 } });
  for (const { name, sha256, expectedSha256 } of damaged) {
    const file = path.join(directory, name);
    await fail(
      'ERR_MODEL_DAMAGED',
      `${file} is damaged: its SHA-256 is ${sha256} instead of ${expectedSha256}`,
    );
  }
  return damaged.length === 0;
}

/** @param {number} milliseconds */
function rounded(milliseconds) {
  return Math.round(milliseconds * 10) / 10;
}

process.on('warning', (/** @type {Error & { code?: string }} */ { name, code, message }) => {
  if (name === 'KnowledgePulseWarning') tell({ warning: { code, message } });
});

examineAddon()
  .then((isLoaded) => (isLoaded ? examineEmbedder() : undefined))
  .catch((error) => fail(error.code ?? 'ERR_INTERNAL', error.stack))
  .then(() => tell({ finished: true }))
  .then(() => process.disconnect());
