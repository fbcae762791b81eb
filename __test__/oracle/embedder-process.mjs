// The SDK's embedder, transformers.js, in a process of its own: inside Jest's realm it fails, and next to the
// addon it would prove less. Takes `{ text, counts }`, and answers `{ embedding, tokens }`, with `tokens` if it `counts`.

import * as transformers from '@huggingface/transformers';

import { loadPipeline } from './pipeline.mjs';

const loading = loadPipeline(transformers, process.argv[2]);

process.on('message', async ({ text, counts }) => {
  try {
    const extract = await loading;
    const { data } = await extract(text, { pooling: 'mean', normalize: true });
    // A second time, which takes seconds for a megabyte.
    const tokens = counts && extract.tokenizer(text, { padding: true, truncation: true }).input_ids.dims[1];
    process.send({ embedding: Array.from(data), tokens });
  } catch (error) {
    process.send({ error: error.message });
  }
});
