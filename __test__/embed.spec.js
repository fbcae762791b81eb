'use strict';

// Calls for embeddings, and the embedder that makes them. scores.node.spec.js compares them with the SDK's, and embedder.node.spec.js breaks it.

const fs = require('node:fs');
const path = require('node:path');

const { _getLocalCache, embed, embedderStatus } = require('..');
const { modelDirectory } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');

test('embed gives arrays of the caller, which are its own, and remembers nothing', async () => {
  const { size } = _getLocalCache();
  const text = 'This is an example sentence';
  const [first, second] = await embed([text, text]);
  expect(first).toBeInstanceOf(Float32Array);
  expect(first).toHaveLength(384);
  expect(Math.hypot(...first)).toBeCloseTo(1, 6);
  // As published with the model.
  expect(first[0]).toBeCloseTo(0.0676569, 6);
  expect(first).toEqual(second);
  first.fill(0);
  expect(await embed([text])).toEqual([second]);
  // In each JavaScript engine, which may make something else of it.
  expect(await embed(['\ud800 lone'])).toEqual(await embed(['\ufffd lone']));
  expect(_getLocalCache().size).toBe(size);
});

test('embed gives many texts the embeddings of one text after another, to the bit', async () => {
  const texts = Array.from({ length: 150 }, (_, at) => `text ${at} ${'and more '.repeat(at % 20)}`);
  const batch = await embed(texts);
  expect(batch).toHaveLength(150);
  for (const index of [0, 1, 63, 64, 149]) expect([batch[index]]).toEqual(await embed([texts[index]]));
  expect(await embed([])).toEqual([]);
});

test('embed rejects where there is no model, with the reason', async () => {
  const { result } = await runForResult(
    `
    const failure = ({ name, code, message }) => ({ name, code, message });
    console.log(JSON.stringify(await kp.embed(['a', 'b']).catch(failure)));
  `,
    { env: { KNOWLEDGEPULSE_MODEL_DIR: '/nowhere' } },
  );
  expect(result).toMatchObject({ name: 'Error', code: 'ERR_MODEL_NOT_FOUND' });
  expect(result.message).toContain('/nowhere');
});

test('embedderStatus tells everything about a working embedder', async () => {
  const status = await embedderStatus();
  const manifest = JSON.parse(fs.readFileSync(path.join(modelDirectory, 'manifest.json'), 'utf8'));
  expect(status).toEqual({
    available: true,
    code: null,
    reason: null,
    modelDirectory,
    model: 'sentence-transformers/all-MiniLM-L6-v2',
    modelSha256: manifest.files['model.safetensors'].sha256,
    dtype: 'fp32',
    dimensions: 384,
    engine: 'builtin',
    kernel: expect.stringMatching(
      /^(avx512-amx|avx512-vnni|avx512|avx-vnni|avx2|neon-i8mm|neon-dot|neon|portable)$/,
    ),
    runtimePath: null,
    runtimeVersion: null,
    threads: expect.any(Number),
  });
  expect(status.threads).toBeGreaterThanOrEqual(1);
});
