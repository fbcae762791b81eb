'use strict';

// Runs in a project that has the package installed: scores the traces of traces.json one after another, and prints
// everything that a user could see.

const traces = require('./traces.json');

const warnings = [];
process.on('warning', ({ name, code, message }) => {
  if (name === 'KnowledgePulseWarning') warnings.push({ code, message });
});

/** @param {Pick<typeof import('../../..'), 'evaluateValue' | 'embedderStatus'>} package */
async function report({ evaluateValue, embedderStatus }) {
  const scores = [];
  for (const trace of traces) scores.push(await evaluateValue(trace));
  const status = await embedderStatus();
  // Warnings are emitted after the promise is settled.
  await new Promise((resolve) => setTimeout(resolve, 20));
  console.log(JSON.stringify({ scores, status, warnings }));
}

module.exports = { report };
