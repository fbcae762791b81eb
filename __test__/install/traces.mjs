// What is scored.

import path from 'node:path';

import { readTraces, root } from '../support/paths.js';

export const traces = readTraces(path.join(root, 'examples', 'traces.jsonl')).slice(0, 3);
