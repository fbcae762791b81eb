// `npm run test:wasm`: builds the package for WebAssembly, and runs with it the specs of the public interface that need no system
// of their own, the transcripts of `kp-score`, and a comparison with the native addon on Node.js and in Chromium.
//
//   npm run test:wasm -- --built     with what was built before

import { readdirSync } from 'node:fs';
import path from 'node:path';

import { buildWasm } from './build-wasm.mjs';
import { root } from './platform.mjs';
import { runScript, setup } from './setup.mjs';
import { onNode, runSuites, transcripts } from './suites.mjs';

/** Specs about results, inputs and memories of the addon. */
const SPECS = ['clean', 'invalid-traces.node', 'scorer', 'trace-memory', 'vector-cache'].map(
  (name) => `./__test__/${name}.spec.js`,
);

/** The tests of behaviour that differs in WebAssembly, where a call ends before the next begins: see docs/installing.md. */
const DIFFERENT = [
  'clean leaves the event loop free',
  'refuses steps: a (proxy of a )?revoked proxy',
  'score that is aborted leaves nothing in the memory',
  'an abort after the replies changes nothing',
];

/** The transcripts of behaviour that differs in WebAssembly. */
const DIFFERENT_TRANSCRIPTS = ['links.md'];

await runScript(async () => {
  await setup();
  if (!process.argv.includes('--built')) await buildWasm();
  const comparison = {
    name: 'WebAssembly and the native addon',
    command: process.execPath,
    args: ['__test__/wasm/main.mjs'],
  };
  const specs = onNode(SPECS, 'the specs in WebAssembly');
  const args = [...specs.args, '--testNamePattern', `^(?!.*(${DIFFERENT.join('|')})).*$`];
  const env = { KNOWLEDGEPULSE_NATIVE_ADDON: 'wasm32' };
  const topics = readdirSync(path.join(root, 'crates', 'command', 'tests', 'transcripts')).filter(
    (name) => name.endsWith('.md') && !DIFFERENT_TRANSCRIPTS.includes(name),
  );
  const command = path.join(root, 'bin', 'kp-score.js');
  const ofCommand = transcripts(command, 'the transcripts of kp-score in WebAssembly', topics);
  await runSuites([comparison, { ...specs, args, env }, { ...ofCommand, env: { ...env, ...ofCommand.env } }]);
});
