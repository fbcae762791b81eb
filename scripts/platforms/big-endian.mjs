// Big-endian machines, such as s390x: not supported, and nobody can compile the encoder for them by mistake.

import { readFileSync } from 'node:fs';
import path from 'node:path';

import { attempt, debianCompiler, logFile, workshop } from './tools.mjs';

const platform = 'big-endian';

/** @type {import('./tools.mjs').Platform} */
export default {
  platform,
  checks: [
    {
      name: 'the encoder does not compile for s390x',
      run: () => {
        const log = logFile(`${platform}-check`);
        const env = {
          ...debianCompiler({ sources: true }),
          CARGO_TARGET_DIR: path.join(workshop, platform, 'target'),
        };
        const args = [
          'check',
          '--locked',
          '-p',
          'knowledgepulse-encoder',
          '--target',
          's390x-unknown-linux-gnu',
        ];
        const { status } = attempt('cargo', args, { env, log, minutes: 60 });
        const refused = readFileSync(log, 'utf8').includes('error: weights are read, and packed');
        if (status === 0 || !refused) throw new Error(`cargo check ended with ${status}; see ${log}`);
      },
    },
  ],
};
