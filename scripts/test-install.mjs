// `npm run test:install`: packs the packages, installs them into empty projects as users do, and looks at what works
// there and how the rest fails. Nothing but the packages themselves can be reached meanwhile.
//
//   npm run test:install -- --only 'pnpm.*Node 18'     some of the cases, by a regular expression

import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { prepareTools } from '../__test__/install/tools.mjs';
import { root } from './platform.mjs';
import { runScript, setup } from './setup.mjs';

await runScript(() => {
  setup();
  prepareTools();
  const isolation = noNetwork();
  const how = isolation.length > 0 ? 'in a network of its own' : 'with the network of this machine, unused';
  console.log(`the packages, installed ${how}`);
  const main = path.join(root, '__test__', 'install', 'main.mjs');
  const [command, ...args] = [...isolation, process.execPath, '--test-reporter=spec', main];
  const tests = spawnSync(command, [...args, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
  process.exitCode = tests.status ?? 1;
});

/** What goes before a command so that it reaches nothing but this machine; empty where that is not permitted. */
function noNetwork() {
  const isolation = [
    'unshare',
    '--net',
    '--map-root-user',
    'sh',
    '-c',
    'ip link set lo up && exec "$@"',
    'sh',
  ];
  const [command, ...args] = [...isolation, 'true'];
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0 ? isolation : [];
}
