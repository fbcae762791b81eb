// Runs in a process of its own: takes turns with a neighbour, and prints what both give.
//
//   node beside.mjs NEIGHBOUR first|last     whether we are loaded before or after it

import { createRequire } from 'node:module';

import { traces } from '../install/traces.mjs';
import { root } from '../support/paths.js';
import { loadNeighbour } from './neighbours.mjs';

const [name, turn] = process.argv.slice(2);
const warnings = [];
process.on('warning', (warning) => {
  if (warning.name === 'KnowledgePulseWarning') warnings.push(warning);
});

let embed;
const embeddings = [];
async function theirs() {
  embed ??= await loadNeighbour(name);
  embeddings.push(await embed());
}

let ours;
const scores = [];
async function score() {
  ours ??= createRequire(import.meta.url)(root);
  scores.push(await ours.evaluateValue(traces[scores.length]));
}

if (turn === 'last') await theirs();
for (const _ of traces) {
  await score();
  await theirs();
}
console.log(JSON.stringify({ scores, embeddings, status: await ours.embedderStatus(), warnings }));
