// The worker of the embedder in a browser. The first message is the module.

import { WASI } from '@tybys/wasm-util';

import { instantiate } from '../instance.mjs';
import { answer } from '../remote.mjs';

/** @type {import('../remote.mjs').Addon | undefined} */
let addon;
addEventListener('message', ({ data }) => {
  if (addon === undefined) addon = instantiate(data, new WASI({ version: 'preview1' }));
  else postMessage(answer(addon, data));
});
