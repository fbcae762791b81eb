// The packages, installed: packs and publishes them, installs them as users do, and looks at what works and how the rest fails.
// Run by `npm run test:install`.

import { after } from 'node:test';

import { temporaryDirectory } from '../../scripts/platform.mjs';
import { checkFailures } from './failures.mjs';
import { checkInstalls } from './installs.mjs';
import { startRegistry } from './registry.mjs';

const scratch = temporaryDirectory('install');
const registry = await startRegistry(scratch);
after(() => registry.close());

checkInstalls({ registry, scratch });
checkFailures({ registry, scratch });
