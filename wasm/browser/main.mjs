// The package in a browser: the same names as on Node.js, where paths lead to no file. Nothing leaves the page: the model is what
// `configureEmbedder` was given. It computes where it is loaded, so a page loads it in a worker.

import { WASI } from '@tybys/wasm-util';

import { instantiateLater } from '../instance.mjs';
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

holder.addon = await instantiateLater(await compile(), new WASI({ version: 'preview1' }));

// The package takes its addon when it is evaluated, which an `import` would do too early.
/** @type {typeof import('../../index.js')} */
const api = require('../../index.js');
export const {
  KnowledgePulseError,
  Scorer,
  TraceMemory,
  VectorCache,
  _getLocalCache,
  clean,
  cleanPii,
  configureEmbedder,
  embed,
  embedderStatus,
  evaluateValue,
  readTraces,
  select,
  sessions,
  share,
  traceFromMessages,
} = api;
