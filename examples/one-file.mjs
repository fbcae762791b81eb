// A program that is one file: it scores traces, one JSON object a line, wherever it is copied to.
//
//   bun build --compile examples/one-file.mjs --outfile score
//   ./score < examples/traces.jsonl

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import weights from '@knowledgepulse/all-minilm-l6-v2-q8/model.safetensors' with { type: 'file' };
import tokenizer from '@knowledgepulse/all-minilm-l6-v2-q8/tokenizer.json' with { type: 'file' };
import { configureEmbedder, evaluateValue } from '@knowledgepulse/native';

configureEmbedder({ model: { weights: readFileSync(weights), tokenizer: readFileSync(tokenizer) } });

for await (const line of createInterface({ input: process.stdin })) {
  console.log(await evaluateValue(JSON.parse(line)));
}
