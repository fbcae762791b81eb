// `npm run test:install`: packs the packages, installs them into empty projects as users do, and checks that they work there
// and how they fail. Nothing but the packages themselves can be reached meanwhile.
//
//   npm run test:install -- --only 'pnpm.*Node 20'     some of the cases, by a regular expression

import { spawnSync } from 'node:child_process';

import { prepareTools } from '../__test__/install/tools.mjs';
import { runCases } from './run-cases.mjs';
import { runScript, setup } from './setup.mjs';

await runScript(async () => {
  await setup();
  prepareTools();
  const isolation = noNetwork();
  const how = isolation.length > 0 ? 'in a network of its own' : 'with the network of this machine, unused';
  console.log(`the packages, installed ${how}`);
  runCases('install/main.mjs', isolation);
});

/** Returns the prefix of a command that cuts it off from all other machines; empty if that is not permitted. */
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
