// The packages, installed: packs and publishes them, installs them as users do, and looks at what works and how the rest fails.
// Run by `npm run test:install`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';

import { checkFailures } from './failures.mjs';
import { checkInstalls } from './installs.mjs';
import { startRegistry } from './registry.mjs';

const scratch = mkdtempSync(path.join(tmpdir(), 'knowledgepulse-install-'));
const registry = await startRegistry(scratch);
after(() => {
  registry.close();
  rmSync(scratch, { recursive: true });
});

checkInstalls({ registry, scratch });
checkFailures({ registry, scratch });
