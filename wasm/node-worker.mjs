// The worker of the embedder on Node.js.

import { parentPort, workerData } from 'node:worker_threads';

import { instantiate } from './instance.mjs';
import { systemInterface } from './node-system.mjs';
import { answer } from './remote.mjs';

const addon = instantiate(workerData, systemInterface());
parentPort?.on('message', (question) => {
  parentPort?.postMessage(answer(addon, question));
});
