'use strict';

// What the scripts of exits.spec.js have, in the main thread and in worker threads.

const path = require('node:path');
const { Worker } = require('node:worker_threads');

const { makeTrace } = require('./make-trace.js');

/** The package. It is not loaded here: some scripts leave that to a worker. */
const native = path.join(__dirname, '..', '..');

/** A trace of more than 512 tokens. */
const long = (i) => makeTrace({ objective: `${i} ${'word '.repeat(600)}` });

const within = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Runs code in a worker that has loaded the package as `kp`; settles when it has exited. `end`: at its first message. */
function inWorker(code, end) {
  const script = `
    const { long, makeTrace, native } = require(${JSON.stringify(__filename)});
    const { parentPort } = require('node:worker_threads');
    const kp = require(native);
    (async () => { ${code} })();
  `;
  return new Promise((resolve, reject) => {
    const worker = new Worker(script, { eval: true });
    worker.on('error', reject).on('exit', resolve);
    if (end) worker.on('message', () => worker.terminate());
  });
}

module.exports = { inWorker, long, makeTrace, native, within };
