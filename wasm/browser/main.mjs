// The package in a browser: the same interface as on Node.js, without files and stores. Nothing leaves the page: the model is what
// `configureEmbedder` was given.

import { WASI } from '@tybys/wasm-util';

import { instantiateLater } from '../instance.mjs';
import { connect } from '../remote.mjs';
import { holder } from './holder.mjs';

const file = new URL('./knowledgepulse.wasm', import.meta.url);

/** Servers that do not know the type of the file are answered by compiling it in one piece. */
async function compile() {
  const response = await fetch(file);
  if (!response.ok) throw new Error(`${file} cannot be fetched: ${response.status}`);
  try {
    return await WebAssembly.compileStreaming(response.clone());
  } catch {
    return WebAssembly.compile(await response.arrayBuffer());
  }
}

const module = await compile();
const addon = await instantiateLater(module, new WASI({ version: 'preview1' }));
holder.addon = connect(addon, (onAnswer, onEnd) => {
  const worker = new Worker(new URL('./browser-worker.js', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }) => onAnswer(data);
  worker.onerror = ({ message }) => onEnd(message ?? 'its program could not be loaded');
  worker.postMessage(module);
  return {
    send: (question) => worker.postMessage(question),
    hold: () => {},
    stop: () => worker.terminate(),
  };
});

// The package takes its addon when it is evaluated, which an `import` would do too early.
/** @type {typeof import('../../index.js')} */
const api = require('../../index.js');
export const {
  KnowledgePulseError,
  Scorer,
  TraceMemory,
  VectorCache,
  clean,
  cleanPii,
  configureEmbedder,
  embed,
  embedderStatus,
  evaluateValue,
  readTraces,
  select,
  traceFromMessages,
} = api;
