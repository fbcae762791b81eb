// `npm run test:store`: the tests of the stores alone, on Node.js and on Bun, with a PostgreSQL that is installed for them.

import { setupPostgres } from './postgres.mjs';
import { runScript, setup } from './setup.mjs';
import { onBun, onNode, runSuites } from './test.mjs';

await runScript(() => {
  setup();
  setupPostgres();
  runSuites([onNode('__test__/store'), onBun('./__test__/store', 120_000)]);
});
