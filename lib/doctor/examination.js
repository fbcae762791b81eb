'use strict';

// The part of `doctor` that loads things, as a process of its own. It tells its parent what it is about to do,
// and each finding at once: it may not live to tell it later.

const fs = require('node:fs');
const path = require('node:path');

const { version } = require('../../package.json');

/** @import { Finding } from './doctor.js' */

/**
 * What loading the addon fails with.
 *
 * @typedef {Error & { code?: string, summary?: string, remedy?: string,
 *   attempts?: import('../installation/obstacle.js').LoadFailure[] }} LoadError
 */

/** A text whose embedding is published, and the beginning of it. */
const TEXT = 'This is an example sentence';
const PUBLISHED = [0.0676569, 0.0634959, 0.0487131, 0.079305, 0.037448, 0.0026528, 0.039375, -0.0070984];

/** How far a component may be off: the values are published with seven digits, and int8 is coarser. */
const TOLERANCES = { fp32: 1e-5, q8: 1e-2 };

/**
 * Resolves once the parent has it.
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

async function main() {
  if (await examineAddon()) await examineEmbedder();
}

/** Whether there is an addon. */
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
  await tell({ stage: 'loading ONNX Runtime and the model' });
  const start = performance.now();
  const status = await embedderStatus();
  const loadMilliseconds = rounded(performance.now() - start);
  const { dimensions, dtype, modelDirectory, modelSha256, runtimePath, runtimeVersion, threads } = status;
  const expectedSha256 = modelDirectory === null ? null : sha256InManifest(modelDirectory);
  await tell({
    threads,
    runtime: { path: runtimePath, version: runtimeVersion },
    model: {
      directory: modelDirectory,
      dtype,
      dimensions,
      sha256: modelSha256,
      expectedSha256,
      verified: expectedSha256 !== null && modelSha256 === expectedSha256,
    },
  });
  if (!status.available || dtype === null) {
    await fail(status.code ?? 'ERR_INTERNAL', status.reason ?? 'the embedder does not say why it is missing');
    return;
  }

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
 * @param {string} directory
 * @returns {string | null}
 */
function sha256InManifest(directory) {
  try {
    const manifest = JSON.parse(fs.readFileSync(path.join(directory, 'manifest.json'), 'utf8'));
    return manifest.files['model.onnx'].sha256;
  } catch {
    // A model may come without a manifest; what is wrong with a malformed one, the embedder tells.
    return null;
  }
}

/** @param {number} milliseconds */
function rounded(milliseconds) {
  return Math.round(milliseconds * 10) / 10;
}

process.on('warning', (/** @type {Error & { code?: string }} */ { name, code, message }) => {
  if (name === 'KnowledgePulseWarning') tell({ warning: { code, message } });
});

main()
  .catch((error) => fail(error.code ?? 'ERR_INTERNAL', error.stack))
  .then(() => tell({ finished: true }))
  .then(() => process.disconnect());
