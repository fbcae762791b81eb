// `npm run test:wheels`: builds the wheels of this machine and the npm package of the same program, installs them into empty
// environments, the wheels without Node.js, and runs the transcripts with that program and with the command of `@knowledgepulse/native`,
// and the commands of README.md and docs/walk.md from a registry.

import { rmSync } from 'node:fs';
import path from 'node:path';

import { prepareTools } from '../__test__/install/tools.mjs';
import { commandPackages, pack } from './pack.mjs';
import { assertToldSize, builtProgram, root, temporaryDirectory, venvPython } from './platform.mjs';
import { run, runScript, setup } from './setup.mjs';
import { smokeTest } from './smoke-test.mjs';
import { runSuites, transcripts } from './suites.mjs';
import { buildWheels } from './wheels.mjs';

await runScript(async () => {
  await setup();
  prepareTools();
  const wheels = path.join(root, 'target', 'wheels');
  rmSync(wheels, { recursive: true, force: true });
  buildWheels(wheels);
  assertToldSize(builtProgram(), 'bring the program, ');
  const tarballs = temporaryDirectory('tarballs');
  pack(tarballs, commandPackages());
  smokeTest(tarballs, { commandOnly: true });
  run(venvPython, ['scripts/try-wheels.py', wheels]);
  await runSuites([
    {
      name: 'README.md and docs/walk.md, word for word',
      command: process.execPath,
      args: ['--test-reporter=spec', '__test__/install/walk.mjs'],
    },
    transcripts(builtProgram(), 'the transcripts with the program of the wheel'),
    transcripts(
      path.join(root, 'bin', 'kp-score.js'),
      'the transcripts with the command of @knowledgepulse/native',
    ),
  ]);
});
