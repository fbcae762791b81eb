'use strict';

// Texts to embeddings, and the embedder that makes them. What becomes of a broken one is in embedder.node.spec.js.

const fs = require('node:fs');
const path = require('node:path');

const { _getLocalCache, embed, embedderStatus } = require('..');
const { OracleEmbedder } = require('./oracle/embedder.js');
const { modelDirectory } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');

test('embed gives what the SDK gives, in arrays of its own, and remembers nothing', async () => {
  const oracle = new OracleEmbedder(modelDirectory);
  const { size } = _getLocalCache();
  const texts = ['This is an example sentence', '', 'naïve [MASK] 你好', 'word '.repeat(600), '\ud800 lone'];
  try {
    for (const [at, ours] of (await embed(texts)).entries()) {
      const theirs = await oracle.embed(texts[at]);
      expect(ours).toBeInstanceOf(Float32Array);
      expect(ours).toHaveLength(384);
      expect(Math.hypot(...ours)).toBeCloseTo(1, 6);
      for (const [index, component] of ours.entries()) {
        expect(Math.abs(component - theirs[index])).toBeLessThan(1e-5);
      }
    }
  } finally {
    await oracle.close();
  }
  const [first, second] = await embed([texts[0], texts[0]]);
  expect(first).toEqual(second);
  first.fill(0);
  const [again] = await embed([texts[0]]);
  expect(again).toEqual(second);
  // As published with the model.
  expect(again[0]).toBeCloseTo(0.0676569, 6);
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
