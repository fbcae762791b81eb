// The SDK's embedder, transformers.js, in a process of its own: inside Jest's realm it fails, and next to the
// addon it would prove less. Reads `{ id, text }` lines, writes `{ id, embedding, tokens }` lines.

import path from 'node:path';
import { createInterface } from 'node:readline';

import { env, pipeline } from '@huggingface/transformers';

const [directory] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(directory);

const extract = await pipeline('feature-extraction', path.basename(directory), {
  dtype: 'fp32',
  // The model package has its files side by side, not in an `onnx` folder.
  subfolder: '',
});

for await (const line of createInterface({ input: process.stdin })) {
  const { id, text } = JSON.parse(line);
  try {
    const { data } = await extract(text, { pooling: 'mean', normalize: true });
    const tokens = extract.tokenizer(text, { padding: true, truncation: true }).input_ids.dims[1];
    process.stdout.write(`${JSON.stringify({ id, embedding: Array.from(data), tokens })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ id, error: error.message })}\n`);
  }
}
