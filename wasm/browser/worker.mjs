// The worker of the embedder in a browser. The first message is the module.

import { WASI } from '@tybys/wasm-util';

import { instantiate } from '../instance.mjs';
import { answer } from '../remote.mjs';

/** @type {import('../remote.mjs').Addon | undefined} */
let addon;
/** An error does not end a worker here, but the instance that has trapped must not answer any more until the page ends the worker. */
let failed = false;
addEventListener('message', ({ data }) => {
  if (failed) return;
  try {
    if (addon === undefined) addon = instantiate(data, new WASI({ version: 'preview1' }));
    else postMessage(answer(addon, data));
  } catch (error) {
    failed = true;
    throw error;
  }
});
