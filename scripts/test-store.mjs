// `npm run test:store`: the tests of the stores alone, on Node.js and on Bun, with a PostgreSQL that is installed for them.

import { setupPostgres } from './postgres.mjs';
import { runScript, setup } from './setup.mjs';
import { onBun, onNode, runSuites, specsIn } from './suites.mjs';

await runScript(async () => {
  await setup();
  setupPostgres();
  const specs = specsIn('__test__/store');
  await runSuites([onNode(specs), onBun(specs)]);
});
