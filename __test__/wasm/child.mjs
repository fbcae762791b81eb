// Prints what `scoresOf` gives with the addon that the environment names.

import { createRequire } from 'node:module';

import { scoresOf } from './score.mjs';

const require = createRequire(import.meta.url);
const { readTraces } = require('../support/paths.js');
const [file, count] = process.argv.slice(2);
console.log(JSON.stringify(await scoresOf(require('../..'), readTraces(file).slice(0, Number(count)))));
