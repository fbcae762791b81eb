// The addon in WebAssembly for Node.js and its like: what `require('@knowledgepulse/native-wasm32')` gives, with the interface of
// lib/binding.d.ts.

import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';

import { instantiate } from './instance.mjs';
import { systemInterface } from './node-system.mjs';
import { connect } from './remote.mjs';

// It is bundled as CommonJS, which has this.
const directory = __dirname;
const module = new WebAssembly.Module(fs.readFileSync(path.join(directory, 'knowledgepulse.wasm')));

export default connect(instantiate(module, systemInterface()), (onAnswer, onEnd) => {
  const worker = new Worker(path.join(directory, 'node-worker.cjs'), { workerData: module, execArgv: [] });
  worker.on('message', onAnswer);
  worker.on('error', (error) => onEnd(String(error?.message ?? error)));
  worker.on('exit', (code) => onEnd(`exit code ${code}`));
  return {
    send: (question) => worker.postMessage(question),
    hold: (holds) => (holds ? worker.ref() : worker.unref()),
    stop: () => void worker.terminate(),
  };
});
