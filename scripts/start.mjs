// `npm start`: sets up missing parts, then scores traces with the real model.
//
//   npm start                     the examples
//   npm start -- FILE.jsonl       another file

import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { root } from './platform.mjs';
import { runScript, setup, WITHOUT } from './setup.mjs';

await runScript(async () => {
  await setup(WITHOUT.start);
  console.log();
  const example = path.join(root, 'examples', 'score-traces.mjs');
  const scored = spawnSync(process.execPath, [example, ...process.argv.slice(2)], { stdio: 'inherit' });
  process.exitCode = scored.status ?? 1;
});
