// `npm start`: sets up missing parts, then scores traces with the real model.
//
//   npm start                     the examples
//   npm start -- FILE.jsonl       another file

import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { root } from './platform.mjs';
import { NOT_TO_START, runScript, setup } from './setup.mjs';

await runScript(async () => {
  await setup({ without: NOT_TO_START });
  console.log();
  const example = path.join(root, 'examples', 'score-traces.mjs');
  const scored = spawnSync(process.execPath, [example, ...process.argv.slice(2)], { stdio: 'inherit' });
  process.exitCode = scored.status ?? 1;
});
