'use strict';

// The part of the doctor that loads the addon and the model, in a process of its own. It sends each finding to its parent at once,
// because it may crash.

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const { codedError } = require('../calls/errors.js');
const { version } = require('../../package.json');

/** @import { Message } from './doctor.js' */

/** A text, and the beginning of its published embedding. */
const TEXT = 'This is an example sentence';
const PUBLISHED = [0.0676569, 0.0634959, 0.0487131, 0.079305, 0.037448, 0.0026528, 0.039375, -0.0070984];

/** The tolerance of a component: published values have seven digits, and int8 is coarser. */
const TOLERANCES = { fp32: 1e-5, q8: 1e-2 };

/** @param {Message} message */
const tell = (message) => fs.writeSync(1, `${JSON.stringify(message)}\n`);

/** Examines the addon, then the model. Rejects with the first problem, which has a code. */
async function examine() {
  tell({ stage: 'loading the addon' });
  const { addon, file } = require('../loader.js');
  tell({ addon: file });
  const found = addon.version();
  if (found !== version) {
    const message = `the addon is version ${found}, the package ${version}`;
    throw codedError(Error, 'ERR_ADDON_LOAD', message);
  }

  const { embed, embedderStatus } = require('../embedder.js');
  tell({ stage: 'loading the model' });
  const start = performance.now();
  const embedder = await embedderStatus();
  const loadMilliseconds = rounded(performance.now() - start);
  tell({ embedder });
  const { code, dtype, modelDirectory, reason } = embedder;
  if (dtype === null || code !== null) throw codedError(Error, code ?? 'ERR_INTERNAL', String(reason));
  tell({ stage: 'reading the files of the model' });
  if (modelDirectory !== null) examineFiles(modelDirectory);

  tell({ stage: 'the test embedding' });
  const begin = performance.now();
  const [embedding] = await embed([TEXT]);
  const milliseconds = rounded(performance.now() - begin);
  const differences = PUBLISHED.map((component, index) => Math.abs(component - embedding[index]));
  const largestDifference = Math.max(...differences);
  const tolerance = TOLERANCES[dtype];
  tell({
    embedding: { text: TEXT, loadMilliseconds, milliseconds, largestDifference, tolerance },
    residentBytes: process.memoryUsage().rss,
  });
  if (largestDifference > tolerance) {
    const message = `the embedding of "${TEXT}" differs from the published one by ${largestDifference}; ${tolerance} is allowed`;
    throw codedError(Error, 'ERR_MODEL_UNUSABLE', message);
  }
}

/**
 * Compares the checksums of a model's files with its manifest, if there is one. Loading compares sizes only, because reading 90 MB twice
 * would take longer than the rest.
 *
 * @param {string} directory
 */
function examineFiles(directory) {
  const manifest = path.join(directory, 'manifest.json');
  if (!fs.existsSync(manifest)) return;
  /** @type {{ files: Record<string, { sha256: string }> }} */
  const { files } = JSON.parse(fs.readFileSync(manifest, 'utf8'));
  /** @type {Record<string, string>} */
  const checksums = {};
  for (const [name, { sha256: expected }] of Object.entries(files)) {
    const file = path.join(directory, name);
    const found = createHash('sha256').update(fs.readFileSync(file)).digest('hex');
    checksums[name] = found;
    if (found === expected) continue;
    const message = `${file} is damaged: its SHA-256 is ${found} instead of ${expected}`;
    throw codedError(Error, 'ERR_MODEL_UNUSABLE', message);
  }
  tell({ checksums });
}

/** @param {number} milliseconds */
const rounded = (milliseconds) => Math.round(milliseconds * 10) / 10;

/** @type {NonNullable<Message['warnings']>} */
const warnings = [];
process.on('warning', (/** @type {Error & { code?: string }} */ { name, code, message }) => {
  if (name === 'KnowledgePulseWarning') warnings.push({ code, message });
});

examine()
  .catch(({ code = 'ERR_INTERNAL', message, stack }) =>
    tell({ problem: { code, message: code === 'ERR_INTERNAL' ? stack : message } }),
  )
  .then(() => tell({ warnings, finished: true }));
