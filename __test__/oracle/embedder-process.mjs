// The SDK's embedder, transformers.js, in a process of its own: inside Jest's realm it fails, and next to the
// addon it would prove less. Reads `{ id, text, counts }` lines, writes `{ id, embedding, tokens }` lines, with `tokens` if it `counts`.

import { createInterface } from 'node:readline';

import * as transformers from '@huggingface/transformers';

import { loadPipeline } from './pipeline.mjs';

const [directory] = process.argv.slice(2);
const extract = await loadPipeline(transformers, directory);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, text, counts } = JSON.parse(line);
  try {
    const { data } = await extract(text, { pooling: 'mean', normalize: true });
    // A second time, which takes seconds for a megabyte.
    const tokens = counts && extract.tokenizer(text, { padding: true, truncation: true }).input_ids.dims[1];
    process.stdout.write(`${JSON.stringify({ id, embedding: Array.from(data), tokens })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ id, error: error.message })}\n`);
  }
}
