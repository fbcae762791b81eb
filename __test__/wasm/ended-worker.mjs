// Prints what `replacementOf` gives with the addon in WebAssembly.

import { createRequire } from 'node:module';
import threads from 'node:worker_threads';

import { breaking, replacementOf } from './score.mjs';

const { Breaking, breakNext } = breaking(threads.Worker);
threads.Worker = Breaking;
const require = createRequire(import.meta.url);
console.log(JSON.stringify(await replacementOf(require('../..'), breakNext)));
