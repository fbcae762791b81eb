// Company in one process: packages that bring an ONNX Runtime of their own, loaded before and after ours, and both give
// right answers. This is about the library that the packages for arm64 carry, so it is what computes here on every platform.
// Run by `npm test`; `npm run test:all` installs all of them.

import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { expectScores, probe } from '../install/probes.mjs';
import { ONNXRUNTIME, root, runtimeLibrary } from '../support/paths.js';
import { neighbours } from './neighbours.mjs';

/** How the embedding of the sentence begins, as published with the model. */
const PUBLISHED = [0.0676569, 0.0634959, 0.0487131, 0.079305, 0.037448, 0.0026528, 0.039375, -0.0070984];

const script = path.join(root, '__test__', 'coexistence', 'beside.mjs');

for (const { name, isThere } of neighbours) {
  const skip = !isThere && 'not installed; npm run test:all does that';
  for (const turn of ['first', 'last']) {
    const body = async () => {
      const options = { cwd: root, home: tmpdir(), env: ONNXRUNTIME };
      const report = await probe([process.execPath, script, name, turn], options);
      assert.equal(report.status.runtimePath, runtimeLibrary);
      for (const embedding of report.embeddings) {
        assert.equal(embedding.length, 384);
        for (const [index, expected] of PUBLISHED.entries()) {
          assert.ok(Math.abs(embedding[index] - expected) < 1e-5, `component ${index}: ${embedding[index]}`);
        }
      }
      await expectScores(report, 'fp32');
    };
    test(`${name} beside us, who are loaded ${turn}`, { skip }, body);
  }
}
