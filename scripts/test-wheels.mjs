// `npm run test:wheels`: builds the wheels of this machine, installs them into empty environments without Node.js, and
// compares their kp-score with the command of the npm package and the int8 model.

import { rmSync } from 'node:fs';
import path from 'node:path';

import { root, venvPython } from './platform.mjs';
import { run, runScript, setup } from './setup.mjs';
import { buildWheels } from './wheels.mjs';

await runScript(async () => {
  await setup();
  const wheels = path.join(root, 'target', 'wheels');
  rmSync(wheels, { recursive: true, force: true });
  buildWheels(wheels);
  const reference = [process.execPath, path.join(root, 'bin', 'kp-score.js')];
  run(venvPython, ['scripts/try-wheels.py', wheels, '--compare', ...reference], {
    env: { ...process.env, KNOWLEDGEPULSE_DTYPE: 'q8' },
  });
});
