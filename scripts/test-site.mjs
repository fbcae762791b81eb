// `npm run test:site`: builds the site, and uses it in Chromium: by keyboard, in dark mode, on a narrow screen, with 50 MB, with garbage.
//
//   npm run test:site -- --built             with the site that was built before
//   npm run test:site -- --built PATTERN     the tests whose names match

import { run, runScript, setup } from './setup.mjs';

const [first, ...others] = process.argv.slice(2);
const isBuilt = first === '--built';

await runScript(async () => {
  await setup();
  if (!isBuilt) {
    const { buildSite } = await import('./site.mjs');
    await buildSite();
  }
  run(process.execPath, ['__test__/site/main.mjs', ...(isBuilt ? others : process.argv.slice(2))]);
});
